//! Checks of bytes that stream by.

use sha2::{Digest, Sha256};

/// Bytes of the SHA-256 that etcd appends to a snapshot.
const TRAILER: usize = 32;
/// The pages of a database are multiples of it.
const SECTOR: u64 = 512;

/// Size and SHA-256 of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// In bytes.
    pub size: u64,
    /// Hexadecimal.
    pub sha256: String,
}

/// An object that streams by.
#[derive(Default)]
pub struct Summing {
    size: u64,
    hash: Sha256,
}

/// A snapshot that streams by: its last 32 bytes are the SHA-256 of all before them.
#[derive(Default)]
pub struct SnapshotCheck {
    body: Summing,
    /// The last bytes, up to 32: they may be the trailer.
    tail: Vec<u8>,
}

impl Summing {
    /// The next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        self.hash.update(bytes);
    }

    /// What they were.
    pub fn finish(self) -> Sum {
        Sum { size: self.size, sha256: hex::encode(self.hash.finalize()) }
    }
}

impl SnapshotCheck {
    /// The next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        let kept = self.tail.len();
        let surplus = (kept + bytes.len()).saturating_sub(TRAILER);
        let (of_tail, of_bytes) = (surplus.min(kept), surplus.saturating_sub(kept));
        self.body.update(&self.tail[..of_tail]);
        self.tail.drain(..of_tail);
        self.body.update(&bytes[..of_bytes]);
        self.tail.extend_from_slice(&bytes[of_bytes..]);
    }

    /// Size and SHA-256 of the whole snapshot with its trailer; an error says why it is none.
    pub fn finish(self) -> Result<Sum, String> {
        let size = self.body.size + self.tail.len() as u64;
        if size % SECTOR != TRAILER as u64 || size == TRAILER as u64 {
            return Err(format!("it ended after {size} bytes, which is the size of no whole snapshot"));
        }
        let (expected, found) = (hex::encode(&self.tail), self.body.hash.clone().finalize());
        if found.as_slice() != self.tail {
            let found = hex::encode(found);
            return Err(format!("its SHA-256 is {found}, and the member announced {expected} for its {size} bytes"));
        }
        let mut whole = self.body;
        whole.update(&self.tail);
        Ok(whole.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(size: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
        let hash = Sha256::digest(&bytes);
        bytes.extend_from_slice(&hash);
        bytes
    }

    fn checked(bytes: &[u8], piece: usize) -> Result<Sum, String> {
        let mut check = SnapshotCheck::default();
        bytes.chunks(piece).for_each(|piece| check.update(piece));
        check.finish()
    }

    #[test]
    fn a_whole_snapshot_passes_however_it_is_cut_into_messages() {
        let bytes = snapshot(20 * 512);
        let expected = Sum { size: bytes.len() as u64, sha256: hex::encode(Sha256::digest(&bytes)) };
        for piece in [1, 7, 31, 32, 33, 512, 10_240, 20_000] {
            assert_eq!(checked(&bytes, piece), Ok(expected.clone()), "{piece}");
        }
    }

    #[test]
    fn a_changed_byte_anywhere_is_noticed() {
        let bytes = snapshot(4 * 512);
        for at in (0..bytes.len()).step_by(13).chain([bytes.len() - 1]) {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(checked(&changed, 100).unwrap_err().contains("SHA-256"), "{at}");
        }
    }

    #[test]
    fn a_snapshot_that_ends_early_is_noticed() {
        let bytes = snapshot(4 * 512);
        for end in [0, 1, 31, 32, 33, 512, 544, bytes.len() - 32, bytes.len() - 1] {
            assert!(checked(&bytes[..end], 100).is_err(), "{end}");
        }
    }
}
