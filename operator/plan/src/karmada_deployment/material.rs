//! What is secret: keys, certificates, and Secrets that people give.

use std::collections::BTreeMap;

use crds::backup::{SNAPSHOT_KEY, STORAGE_PREFIX, STORAGE_SECRETS, StorageInputs};
use crds::{KarmadaDeployment, ObjectExt};
use jiff::Timestamp;

use super::contents::Files;
use super::given_estimator::GivenEstimator;
use crate::inputs::{InputsProblem, storage};
use crate::key_transfer::RestoringSeen;
use crate::rotation::Authorities;
use crate::rotation::own::OwnAuthorities;

/// What is secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Material {
    /// The authorities and keys of the Secret `<name>-pki` (`pki::TABLE`): `ca.crt`, `front-proxy-ca.crt` and
    /// `etcd-ca.crt` with all that is trusted, `sa.key`, `sa.pub`; and `encryption.yaml`, the EncryptionConfiguration.
    /// No key of an authority. `None`: the Secret is not there.
    pub keys: Option<Files>,
    /// The certificates of the Secret `<name>-certificates`: `<stem>.crt` and `<stem>.key` of each of `leaves()`.
    pub leaves: Files,
    /// Whether one of `leaves()` is missing there, is for other names, or is to be renewed.
    pub leaves_due: bool,
    /// When the first of them ends.
    pub first_end: Option<Timestamp>,
    /// The Secrets of `sources()` that are there, by their names.
    pub secrets: BTreeMap<String, Files>,
    /// What everybody may know of the authorities and keys.
    pub authorities: Authorities,
    /// What the Secret of `certificates.caRef` holds, or what is wrong with it; `None`: the spec refers to none.
    pub own_authorities: Option<Result<OwnAuthorities, InputsProblem>>,
    /// What the estimators of members are given, by their members; nothing of a plane in Pods.
    pub estimators: BTreeMap<String, GivenEstimator>,
    /// What Pods that make etcd's data of a backup are given. `None`: it is not there, or not needed.
    pub restore: Option<RestoreMaterial>,
}

/// What the Pods that restore are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreMaterial {
    /// The key of the snapshot, and the credentials of the storage.
    pub files: Files,
    /// The storage that the backup is in.
    pub storage: StorageInputs,
    /// The PersistentVolumeClaim that it is, where it is a volume.
    pub claim: Option<String>,
    /// Image of the executor.
    pub image: String,
}

impl RestoreMaterial {
    /// What was fetched; none: the key or the storage is not there.
    pub fn find(seen: &RestoringSeen) -> Option<Self> {
        let (key, of_backup) = (seen.snapshot_key.as_ref()?, seen.storage.as_ref()?);
        let given = seen.seen.credentials.as_ref().and_then(|secret| secret.data.as_ref());
        let given = |name: &&str| Some((format!("{STORAGE_PREFIX}{name}"), given?.get(*name)?.0.clone()));
        let is_bucket = of_backup.spec.s3.is_some();
        let credentials = STORAGE_SECRETS.iter().filter(|_| is_bucket).filter_map(given);
        let files = credentials.chain([(SNAPSHOT_KEY.to_owned(), key.0.clone())]).collect();
        Some(Self {
            files: Files(files),
            storage: storage(of_backup, &seen.seen).ok()?,
            claim: of_backup.spec.volume.as_ref().map(|volume| volume.claim_name.clone()),
            image: seen.image.clone(),
        })
    }
}

/// A Secret in the object's namespace that the spec refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// The field that refers to it.
    pub field: &'static str,
    /// The keys that it must have.
    pub keys: &'static [&'static str],
}

/// The Secrets that are to be read.
pub fn sources(object: &KarmadaDeployment) -> Vec<Source> {
    let spec = &object.spec;
    let etcd = spec.etcd.external.iter().map(|external| Source {
        name: external.secret_ref.name.clone(),
        field: "spec.etcd.external.secretRef",
        keys: &["ca.crt", "tls.crt", "tls.key"],
    });
    let pull = spec.images.pull_secret_refs.iter().map(|reference| Source {
        name: reference.name.clone(),
        field: "spec.images.pullSecretRefs",
        keys: &[PULL_SECRET_KEY],
    });
    etcd.chain(pull).collect()
}

/// The key of a Secret with which images are pulled.
pub(super) const PULL_SECRET_KEY: &str = ".dockerconfigjson";

/// Name of the copy on the host of a Secret with which images are pulled.
pub(super) fn pull_secret(object: &KarmadaDeployment, name: &str) -> String {
    format!("{}-pull-{name}", object.name())
}
