//! Signs entries of a bundle: Ed25519 over what the entry is, so that it cannot stand for another one.

use std::fs;
use std::path::Path;

use ::bundle::index::{Artifact, Kind};
use anyhow::{Context, Result, anyhow};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{Ed25519KeyPair, KeyPair};

/// How a public key begins in DER.
const DER: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";

/// A private key.
pub struct Signer(Ed25519KeyPair);

impl Signer {
    /// The key in that file.
    pub fn read(file: &Path) -> Result<Self> {
        let pem = fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
        let no_key =
            || anyhow!("{} is no Ed25519 key in PEM: make one with openssl genpkey -algorithm ed25519", file.display());
        let body = pem.trim().strip_prefix(BEGIN).and_then(|body| body.strip_suffix(END)).ok_or_else(no_key)?;
        let body: String = body.split_whitespace().collect();
        let der = STANDARD.decode(body).map_err(|_| no_key())?;
        Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map(Self).map_err(|_| no_key())
    }

    /// The signature of the entry.
    pub fn sign(&self, entry: &Artifact) -> String {
        let kind = if entry.kind == Kind::Chart { "chart" } else { "manifests" };
        let version = entry.version.strip_prefix('v').unwrap_or(&entry.version);
        let (name, sha256) = (&entry.name, entry.sha256.to_lowercase());
        let message = format!("clusterwright bundle entry v1\n{kind}\n{name}\n{version}\n{sha256}\n");
        STANDARD.encode(self.0.sign(message.as_bytes()))
    }

    /// The public key, as an Addon's `signedBy` has it.
    pub fn public_key(&self) -> String {
        let der = [&DER[..], self.0.public_key().as_ref()].concat();
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der))
    }
}
