//! A storage of backups, as a Pod gets it: where it is, and with which keys of which Secret.

use crds::backup::{MOUNT_PATH, S3Inputs, STORAGE_SECRETS, StorageInputs};
use crds::backup_storage::S3;
use crds::{BackupStorage, ObjectExt, Reason};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use super::artifacts::ca_of;
use super::problem::InputsProblem;

/// The field that refers to the authorities of an S3 server.
const CA_FIELD: &str = "spec.s3.caRef";

/// What the references of a BackupStorage lead to; `None`: it has none, or what it names is not there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StorageSeen {
    /// The Secret of `s3.credentialsRef`.
    pub credentials: Option<Secret>,
    /// The ConfigMap of `s3.caRef`.
    pub authorities: Option<ConfigMap>,
}

/// The storage.
pub fn storage(storage: &BackupStorage, seen: &StorageSeen) -> Result<StorageInputs, InputsProblem> {
    if let Some(volume) = &storage.spec.volume {
        let path = volume.path.as_ref().map_or_else(|| MOUNT_PATH.to_owned(), |path| format!("{MOUNT_PATH}/{path}"));
        return Ok(StorageInputs::Directory(path));
    }
    let Some(s3) = &storage.spec.s3 else {
        let message = format!("BackupStorage {} has neither spec.s3 nor spec.volume: give one of them", storage.name());
        return Err(InputsProblem::waits(Reason::StorageNotFound, message));
    };
    credentials(s3, seen.credentials.as_ref())?;
    let authorities = s3.ca_ref.as_ref().map(|ca| ca_of(CA_FIELD, &ca.name, seen.authorities.as_ref()));
    Ok(StorageInputs::S3(S3Inputs {
        endpoint: s3.endpoint.clone(),
        bucket: s3.bucket.clone(),
        prefix: s3.prefix.clone().unwrap_or_default(),
        region: s3.region.clone(),
        path_style: s3.path_style,
        authorities: authorities.transpose()?,
        server_side_encryption: s3.server_side_encryption.clone(),
    }))
}

fn credentials(s3: &S3, secret: Option<&Secret>) -> Result<(), InputsProblem> {
    let name = &s3.credentials_ref.name;
    let [id, key, _] = STORAGE_SECRETS;
    let lacks = |key: &&str| {
        let data = secret.and_then(|secret| secret.data.as_ref());
        data.and_then(|data| data.get(*key)).is_none_or(|value| value.0.trim_ascii().is_empty())
    };
    let missing: Vec<&str> = [id, key].into_iter().filter(lacks).collect();
    match (secret, missing.as_slice()) {
        (Some(_), []) => Ok(()),
        (None, _) => {
            let message = format!("Secret {name} of spec.s3.credentialsRef is not there: make it, with {id} and {key}");
            Err(InputsProblem::waits(Reason::SecretNotFound, message))
        }
        (Some(_), missing) => {
            let message = format!("Secret {name} of spec.s3.credentialsRef lacks {}: add it", missing.join(" and "));
            Err(InputsProblem::waits(Reason::SecretNotFound, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use crds::backup::StorageInputs;
    use k8s_openapi::ByteString;
    use k8s_openapi::api::core::v1::Secret;
    use serde_json::{Value, json};

    use super::{BackupStorage, StorageSeen, storage};

    fn storage_with(spec: &Value) -> BackupStorage {
        serde_json::from_value(json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "BackupStorage", "metadata": { "name": "s" }, "spec": spec
        }))
        .unwrap()
    }

    fn seen(keys: &[(&str, &str)]) -> StorageSeen {
        let data = keys.iter().map(|(key, value)| ((*key).to_owned(), ByteString((*value).into())));
        let secret = Secret { data: Some(data.collect()), ..Secret::default() };
        StorageSeen { credentials: Some(secret), authorities: None }
    }

    fn s3() -> BackupStorage {
        storage_with(
            &json!({ "s3": { "endpoint": "https://s3:9000", "bucket": "etcd", "credentialsRef": { "name": "login" } } }),
        )
    }

    #[test]
    fn a_volume_is_a_directory_of_the_pod() {
        let check = |spec: Value, expected: &str| {
            let found = storage(&storage_with(&spec), &StorageSeen::default()).unwrap();
            assert_eq!(found, StorageInputs::Directory(expected.into()));
        };
        check(json!({ "volume": { "claimName": "nfs" } }), "/backups");
        check(json!({ "volume": { "claimName": "nfs", "path": "etcd/paris" } }), "/backups/etcd/paris");
    }

    #[test]
    fn a_bucket_needs_both_keys_and_a_message_names_what_is_missing_and_no_value() {
        let whole = seen(&[("accessKeyID", "a"), ("secretAccessKey", "canary")]);
        assert!(
            matches!(storage(&s3(), &whole).unwrap(), StorageInputs::S3(s3) if s3.region == "us-east-1" && s3.path_style)
        );
        let lacks = seen(&[("accessKeyID", " \n"), ("secretAccessKey", "canary")]);
        let problem = storage(&s3(), &lacks).unwrap_err();
        assert_eq!(problem.message, "Secret login of spec.s3.credentialsRef lacks accessKeyID: add it");
        let problem = storage(&s3(), &StorageSeen::default()).unwrap_err();
        assert!(problem.message.contains("is not there") && !problem.permanent, "{}", problem.message);
    }
}
