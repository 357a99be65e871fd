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
mod connector;
mod credentials;
mod decryption;
mod digest;
mod directory;
mod encryption;
mod endpoints;
mod error;
mod fetch;
mod growth;
mod identities;
mod location;
mod manifest;
mod member;
mod object_key;
mod pace;
mod probe;
mod programs;
mod ranges;
mod read_back;
mod remove;
mod restored;
mod s3;
mod sealing;
mod snapshot;
mod source;
mod spooled;
mod storage_answer;
mod store;
mod take;
mod text;
mod unpack;
mod upload;
mod verification;

pub use bundle::BundleFile;
pub use catalog::{Found, list};
pub use channel::EtcdTls;
pub use credentials::Credentials;
pub use decryption::object_key;
pub use endpoints::choose;
pub use error::{BackupError, EtcdFailure, ProgramsFailure, StorageFailure};
pub use fetch::fetch;
pub use identities::Identities;
pub use manifest::{read_manifest, verify};
pub use object_key::ObjectKey;
pub use probe::probe;
pub use programs::{Login, Programs};
pub use remove::{remove, remove_backup};
pub use restored::{Restored, verify_restored};
pub use source::Source;
pub use spooled::SPOOL_FULL;
pub use store::Store;
pub use take::{SpooledSnapshot, Task, take};
pub use unpack::unpack;
pub use verification::{verify_decrypted, verify_stored};
