//! Files with secrets, for Helm.

use std::path::{Path, PathBuf};

/// A directory of our own.
pub(super) fn directory_in(work: &Path) -> std::io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    let place = work.join(format!("chart-{}", std::process::id()));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&place)?;
    Ok(place)
}

/// Writes a file that nobody else reads.
pub(super) fn write(place: &Path, name: &str, content: &[u8]) -> std::io::Result<PathBuf> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let file = place.join(name);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(&file)?.write_all(content)?;
    Ok(file)
}
