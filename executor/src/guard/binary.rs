//! The guard's program, as it is sent to machines.

use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

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
        let hash = Sha256::digest(&content);
        let sha256 = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { content, sha256 })
    }
}
