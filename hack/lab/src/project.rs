//! Where the project's own files are: this crate is always run in a checkout.

use std::path::{Path, PathBuf};

/// A path inside the checkout that the process works in.
pub fn path(of: impl AsRef<Path>) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    root(&here).unwrap_or(here).join(of)
}

/// The checkout that a directory is in. Checkouts share builds, so none can be compiled in.
fn root(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().find(|it| it.join("hack/lab/Cargo.toml").is_file()).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::root;

    #[test]
    fn the_checkout_that_one_stands_in_is_the_one() {
        let other = tempfile::tempdir().unwrap();
        fs::create_dir_all(other.path().join("hack/lab/src")).unwrap();
        fs::write(other.path().join("hack/lab/Cargo.toml"), "").unwrap();
        assert_eq!(root(&other.path().join("hack/lab/src")).as_deref(), Some(other.path()));
        assert_eq!(root(std::path::Path::new("/")), None);
    }
}
