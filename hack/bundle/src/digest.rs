//! SHA-256 digests as the index has them: 64 lower-case hexadecimal digits.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// The digest of a file.
pub fn of_file(path: &Path) -> Result<String> {
    let reading = || format!("failed to read {}", path.display());
    let mut file = BufReader::with_capacity(1 << 20, File::open(path).with_context(reading)?);
    let mut hash = Sha256::new();
    std::io::copy(&mut file, &mut hash).with_context(reading)?;
    Ok(hex::encode(hash.finalize()))
}

/// The digest of these bytes.
pub fn of_bytes(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Whether the text is a digest, in lower or upper case.
pub fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Passes on what is read of another reader, and has its digest and size at the end.
#[derive(Debug)]
pub struct Hashing<R> {
    inner: R,
    hash: Sha256,
    size: u64,
}

impl<R: Read> Hashing<R> {
    /// Reads from `inner`.
    pub fn new(inner: R) -> Self {
        Self { inner, hash: Sha256::new(), size: 0 }
    }

    /// Digest and size in bytes of what was read.
    pub fn finish(self) -> (String, u64) {
        (hex::encode(self.hash.finalize()), self.size)
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hash.update(&buffer[..count]);
        self.size += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_file_its_bytes_and_its_stream_have_one_digest() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("abc");
        std::fs::write(&file, "abc").unwrap();
        let mut stream = Hashing::new("abc".as_bytes());
        stream.read_to_end(&mut Vec::new()).unwrap();
        assert_eq!(of_file(&file).unwrap(), ABC);
        assert_eq!(of_bytes(b"abc"), ABC);
        assert_eq!(stream.finish(), (ABC.to_owned(), 3));
    }

    #[test]
    fn a_digest_has_64_hexadecimal_digits() {
        assert!(is_digest(ABC) && is_digest(&ABC.to_uppercase()));
        assert!(!is_digest(&ABC[1..]) && !is_digest(&ABC.replace('b', "g")));
    }
}
