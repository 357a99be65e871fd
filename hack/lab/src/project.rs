//! Where the project's own files are: this crate is always run from a checkout.

use std::path::{Path, PathBuf};

/// A path inside the checkout.
pub fn path(of: impl AsRef<Path>) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(of)
}
