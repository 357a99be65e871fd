//! Backups of etcd: a snapshot is read from one member over a byte stream that the caller connects, encrypted, and kept
//! in an S3 bucket or a directory. Nothing here knows of SSH, of Kubernetes' API or of runs.
//!
//! What was stored is read again, decrypted and checked, by whoever has the identity.
//!
//! A backup is a directory of three objects: the snapshot, a bundle of what the cluster needs beside it, and a manifest
//! that is written last. Without the manifest it is none.
#![deny(missing_docs)]

mod alert;
mod bundle;
mod catalog;
mod channel;
mod credentials;
mod decryption;
mod digest;
mod directory;
mod encryption;
mod error;
mod fetch;
mod identities;
mod location;
mod manifest;
mod member;
mod pace;
mod probe;
mod ranges;
mod read_back;
mod remove;
mod s3;
mod snapshot;
mod source;
mod storage_answer;
mod store;
mod take;
mod text;
mod unpack;
mod upload;

pub use bundle::BundleFile;
pub use catalog::{Found, list};
pub use channel::EtcdTls;
pub use credentials::Credentials;
pub use error::{BackupError, EtcdFailure, StorageFailure};
pub use fetch::fetch;
pub use identities::Identities;
pub use manifest::{read_manifest, verify};
pub use probe::probe;
pub use remove::{remove, remove_backup};
pub use source::Source;
pub use store::Store;
pub use take::{Task, take};
pub use unpack::unpack;
