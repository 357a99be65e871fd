//! The workspace's Rust files.

use std::io;
use std::path::{Path, PathBuf};

/// Every Rust file below these directories of the workspace, with its text, in the order of their paths.
pub fn sources(rooms: &[&str]) -> io::Result<Vec<(PathBuf, String)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut directories: Vec<PathBuf> = rooms.iter().map(|name| root.join(name)).collect();
    let mut files = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path)?;
                files.push((path, text));
            }
        }
    }
    files.sort();
    Ok(files)
}
