//! The files of one layer, listed before anything is read: what goes where, with which mode and owner.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

/// One entry's content.
#[derive(Debug, Clone)]
enum Node {
    Directory,
    File(PathBuf),
    Text(String),
    Link(String),
}

#[derive(Debug, Clone)]
struct Entry {
    path: String,
    node: Node,
    mode: u32,
    owner: u32,
}

/// A layer to be written. Directories come before what is in them, as they were added.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    entries: Vec<Entry>,
}

impl Tree {
    /// An empty layer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a directory.
    pub fn directory(&mut self, path: &str, mode: u32, owner: u32) {
        self.add(path, Node::Directory, mode, owner);
    }

    /// Adds an executable with the content of `source`.
    pub fn program(&mut self, path: &str, source: impl Into<PathBuf>) {
        self.add(path, Node::File(source.into()), 0o755, 0);
    }

    /// Adds a file of these words.
    pub fn text(&mut self, path: &str, text: impl Into<String>) {
        self.add(path, Node::Text(text.into()), 0o644, 0);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.add(path, Node::Link(target.to_owned()), 0o777, 0);
    }

    /// Adds what is below `source`, sorted, but for names that `skip` refuses. All belongs to root.
    pub fn copy(&mut self, path: &str, source: &Path, skip: fn(&str) -> bool) -> Result<()> {
        self.directory(path, 0o755, 0);
        let reading = || format!("failed to read {}", source.display());
        let mut found =
            fs::read_dir(source).and_then(|entries| entries.collect::<Result<Vec<_>, _>>()).with_context(reading)?;
        found.sort_by_key(fs::DirEntry::file_name);
        for entry in found {
            let name = entry.file_name().to_string_lossy().into_owned();
            if skip(&name) {
                continue;
            }
            let (path, source) = (format!("{path}/{name}"), entry.path());
            let metadata = fs::symlink_metadata(&source).with_context(reading)?;
            if metadata.is_dir() {
                self.copy(&path, &source, skip)?;
            } else if metadata.is_symlink() {
                let target = fs::read_link(&source).with_context(reading)?;
                self.link(&path, &target.to_string_lossy());
            } else {
                // What its author could run stays executable; nothing is left unreadable or writable.
                let mode = if metadata.permissions().mode() & 0o100 == 0 { 0o644 } else { 0o755 };
                self.add(&path, Node::File(source), mode, 0);
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &str, node: Node, mode: u32, owner: u32) {
        self.entries.push(Entry { path: path.trim_start_matches('/').to_owned(), node, mode, owner });
    }

    /// A text that changes with the layer: files count by path, size and time of change.
    pub fn fingerprint(&self) -> Result<String> {
        let mut hash = Sha256::new();
        for entry in &self.entries {
            let Entry { path, node, mode, owner } = entry;
            hash.update(format!("{path}\0{mode:o}\0{owner}\0"));
            hash.update(match node {
                Node::File(source) => file_fingerprint(source)?,
                Node::Directory => "directory".to_owned(),
                Node::Text(text) => format!("text\0{text}"),
                Node::Link(target) => format!("link\0{target}"),
            });
        }
        Ok(hex::encode(hash.finalize()))
    }

    /// Writes the layer as a tar. Times are zero, so that the same files give the same layer.
    pub fn write(&self, into: impl Write) -> Result<()> {
        let mut tar = Builder::new(into);
        for entry in &self.entries {
            entry.write(&mut tar).with_context(|| format!("failed to write {} into a layer", entry.path))?;
        }
        tar.finish().context("failed to end a layer")
    }
}

impl Entry {
    fn write(&self, tar: &mut Builder<impl Write>) -> Result<()> {
        let mut header = Header::new_gnu();
        header.set_mode(self.mode);
        header.set_uid(self.owner.into());
        header.set_gid(self.owner.into());
        header.set_mtime(0);
        header.set_size(0);
        match &self.node {
            Node::Directory => {
                header.set_entry_type(EntryType::Directory);
                tar.append_data(&mut header, format!("{}/", self.path), std::io::empty())?;
            }
            Node::Link(target) => {
                header.set_entry_type(EntryType::Symlink);
                tar.append_link(&mut header, &self.path, target)?;
            }
            Node::Text(text) => {
                header.set_size(text.len() as u64);
                tar.append_data(&mut header, &self.path, text.as_bytes())?;
            }
            Node::File(source) => {
                let file = File::open(source).with_context(|| format!("failed to open {}", source.display()))?;
                let size = file.metadata()?.len();
                header.set_size(size);
                tar.append_data(&mut header, &self.path, file.take(size))?;
            }
        }
        Ok(())
    }
}

/// A text that changes with a file, without reading it.
pub fn file_fingerprint(path: &Path) -> Result<String> {
    let metadata = fs::metadata(path).with_context(|| format!("failed to look at {}", path.display()))?;
    Ok(format!("{}\0{}\0{}.{}", path.display(), metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(tree: &Tree) -> Vec<String> {
        let mut bytes = Vec::new();
        tree.write(&mut bytes).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let entries = archive.entries().unwrap();
        entries.map(|it| it.unwrap().path().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_copied_directory_keeps_links_and_loses_what_is_skipped() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("roles")).unwrap();
        fs::write(dir.path().join("roles/main.yml"), "---").unwrap();
        fs::create_dir(dir.path().join(".ansible")).unwrap();
        std::os::unix::fs::symlink("roles", dir.path().join("also")).unwrap();
        let mut tree = Tree::new();
        tree.copy("/opt", dir.path(), |name| name.starts_with('.')).unwrap();
        assert_eq!(paths(&tree), ["opt/", "opt/also", "opt/roles/", "opt/roles/main.yml"]);
    }

    #[test]
    fn a_changed_file_changes_the_fingerprint() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("program");
        fs::write(&file, "one").unwrap();
        let mut tree = Tree::new();
        tree.program("/program", &file);
        let before = tree.fingerprint().unwrap();
        assert_eq!(before, tree.fingerprint().unwrap());
        fs::write(&file, "three").unwrap();
        assert_ne!(before, tree.fingerprint().unwrap());
    }

    #[test]
    fn the_same_files_give_the_same_layer() {
        let mut tree = Tree::new();
        tree.directory("/work", 0o755, 65532);
        tree.text("/etc/passwd", "root:x:0:0::/:/bin/sh\n");
        let (mut one, mut two) = (Vec::new(), Vec::new());
        tree.write(&mut one).unwrap();
        tree.write(&mut two).unwrap();
        assert_eq!(one, two);
    }
}
