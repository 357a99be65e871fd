//! Where artifacts lie in a bundle, and what else lies there.

use std::fs;
use std::path::{Component, Path};

use anyhow::{Context, Result};

/// The directories of artifacts. Nothing else in a bundle is ever removed.
pub const DIRECTORIES: [&str; 3] = ["files", "images", "os"];

/// Whether it is a path that stays below the directory that it is joined to.
pub fn is_below(path: &str) -> bool {
    !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

/// Where a program or an archive lies. `ending` with its dot, or empty.
pub fn file(name: &str, version: &str, arch: &str, ending: &str) -> String {
    format!("files/{name}-{version}-linux-{arch}{ending}")
}

/// Where an image's archive lies. By its whole name: the last parts of two images may be the same.
pub fn image(name: &str, version: &str, arch: &str) -> String {
    format!("images/{name}-{version}-linux-{arch}.tar")
}

/// The files in the directories of artifacts, as the index would name them, sorted. Drafts and parts of downloads are
/// among them.
pub fn files(bundle: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for directory in DIRECTORIES {
        if bundle.join(directory).is_dir() {
            collect(bundle, directory, &mut found)?;
        }
    }
    found.sort();
    Ok(found)
}

fn collect(bundle: &Path, directory: &str, found: &mut Vec<String>) -> Result<()> {
    let path = bundle.join(directory);
    let reading = || format!("failed to look through {}", path.display());
    for entry in fs::read_dir(&path).with_context(reading)? {
        let entry = entry.with_context(reading)?;
        let name = format!("{directory}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().with_context(reading)?.is_dir() {
            collect(bundle, &name, found)?;
        } else {
            found.push(name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_not_leave_the_bundle() {
        assert!(is_below("images/registry.k8s.io/pause-3.10.1-linux-amd64.tar"));
        for wrong in ["", "/etc/passwd", "../x", "files/../../x", "./x"] {
            assert!(!is_below(wrong), "{wrong}");
        }
    }

    #[test]
    fn images_with_the_same_last_part_lie_apart() {
        assert_ne!(image("quay.io/a/proxy", "1", "amd64"), image("quay.io/b/proxy", "1", "amd64"));
    }

    #[test]
    fn files_below_the_directories_are_found_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["files/b", "images/registry.k8s.io/a.tar", "bundle.lock"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert_eq!(files(dir.path()).unwrap(), ["files/b", "images/registry.k8s.io/a.tar"]);
    }
}
