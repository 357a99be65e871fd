//! Backups of etcd as they lie in a storage, and what a run gets to take one. The layout is documented in
//! `docs/backup.md`: a backup can be read with `etcdutl`, `age` and `tar` alone.

mod inputs;
mod keys;
mod look;
mod manifest;
mod removal;
mod subject;
mod verification;

pub use inputs::{
    BUNDLE_PREFIX, BackupInputs, ETCD_SECRETS, EtcdInputs, HOST_KUBECONFIG_SECRET, IDENTITY_SECRET, MOUNT_PATH,
    PKI_SECRET, S3Inputs, SNAPSHOT_KEY, STORAGE_PREFIX, STORAGE_SECRETS, StagingInputs, StorageInputs,
};
pub use keys::{FetchedBackup, FetchedPlane, KeysFetched};
pub use look::StorageLook;
pub use manifest::{
    BUNDLE_FILE, BackupManifest, FORMAT, InvalidManifest, MANIFEST_FILE, ObjectManifest, PlaneManifest, SNAPSHOT_FILE,
};
pub use removal::BackupRemoval;
pub use verification::{ProgramsInputs, VerificationInputs, VerificationReport};
