//! What the Pods of such Jobs are given beside a storage: keys of Secrets, and access to the API.

use crds::etcd_restore::IDENTITY_KEY;
use k8s_openapi::api::core::v1::{KeyToPath, SecretVolumeSource, Volume, VolumeMount};

use crate::job::restricted::mount;
use crate::job::{API_ACCESS, volumes};

/// Directory with the age identity, in the file `identity`.
pub(crate) const IDENTITY: &str = "/identity";

/// The age identity in its Secret, and nothing else that is there.
pub(crate) fn identity_volume(secret: &str) -> (Volume, VolumeMount) {
    secret_keys("identity", secret, &[IDENTITY_KEY], IDENTITY)
}

/// The way to the API, and a token for it.
pub(crate) fn api_access() -> (Volume, VolumeMount) {
    let volume = Volume { name: "api-access".into(), projected: Some(volumes::api_access()), ..Volume::default() };
    (volume, mount("api-access", API_ACCESS, true))
}

/// These keys of a Secret, each in a file of its name in the directory.
pub(crate) fn secret_keys(volume: &str, secret: &str, keys: &[&str], directory: &str) -> (Volume, VolumeMount) {
    let item = |key: &&str| KeyToPath { key: (*key).to_owned(), path: (*key).to_owned(), mode: None };
    (secret_volume(volume, secret, keys.iter().map(item).collect()), mount(volume, directory, true))
}

/// A volume with these keys of a Secret.
pub(super) fn secret_volume(volume: &str, secret: &str, items: Vec<KeyToPath>) -> Volume {
    Volume {
        name: volume.into(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret.into()),
            items: Some(items),
            default_mode: Some(0o440),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}
