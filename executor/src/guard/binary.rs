//! The guard's program, as it is sent to machines.

use std::io;
use std::path::Path;

use crate::inputs;

/// A static program of ours is smaller.
const LIMIT: u64 = 64 << 20;

/// The program and its digest.
#[derive(Clone)]
pub struct Binary {
    /// Its bytes.
    pub content: Vec<u8>,
    /// Their SHA-256, in hex.
    pub sha256: String,
}

impl Binary {
    /// Reads it.
    pub fn read(file: &Path) -> io::Result<Self> {
        if std::fs::metadata(file)?.len() > LIMIT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let content = std::fs::read(file)?;
        let sha256 = inputs::hex_sha256(&content);
        Ok(Self { content, sha256 })
    }
}
