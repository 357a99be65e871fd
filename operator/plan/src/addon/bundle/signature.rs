//! The signature of an entry: Ed25519 over what the entry is, so that it cannot stand for another one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, UnparsedPublicKey};

use super::entry::{EntryWanted, plain};

/// How the key begins in DER: an Ed25519 key of 32 bytes follows.
pub(super) const DER: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Whether the entry with this SHA-256 has the signature of this key; an error says why not.
pub(super) fn is_signed(key: &str, entry: &EntryWanted, sha256: &str, signature: &str) -> Result<(), &'static str> {
    let key = public_key(key).ok_or("it has no signature of an Ed25519 key in PEM")?;
    if signature.is_empty() {
        return Err("it has no signature of the key");
    }
    let signature = STANDARD.decode(signature).map_err(|_| "its signature is no base64, and none of the key")?;
    let signed = UnparsedPublicKey::new(&ED25519, key).verify(message(entry, sha256).as_bytes(), &signature);
    signed.map_err(|_| "its signature is not that of the key")
}

/// What is signed.
fn message(entry: &EntryWanted, sha256: &str) -> String {
    let (kind, version) = (entry.kind.name(), plain(&entry.version));
    format!("clusterwright bundle entry v1\n{kind}\n{}\n{version}\n{sha256}\n", entry.name)
}

fn public_key(pem: &str) -> Option<Vec<u8>> {
    let body = pem.trim().strip_prefix("-----BEGIN PUBLIC KEY-----")?.strip_suffix("-----END PUBLIC KEY-----")?;
    let der = STANDARD.decode(body.trim()).ok()?;
    let key = der.strip_prefix(&DER)?;
    (key.len() == 32).then(|| key.to_vec())
}
