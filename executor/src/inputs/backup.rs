//! Checks what a run gets of the backup that it takes: it is there where a step makes one, with the secrets that it
//! needs.

use crds::backup::{ETCD_SECRETS, STORAGE_PREFIX, STORAGE_SECRETS, StorageInputs};
use crds::inputs::RunInputs;
use crds::step::Step;

use super::error::InputsError;
use crate::secrets::{Secrets, without_newline};

pub(super) fn check(model: &RunInputs, secrets: &Secrets) -> Result<(), InputsError> {
    let invalid = |problem: &str| Err(InputsError::Invalid { at: "backup".to_owned(), problem: problem.to_owned() });
    let backup = match (&model.backup, model.steps.contains(&Step::BackupEtcd)) {
        (None, false) => return Ok(()),
        (None, true) => return invalid("step backup-etcd needs to be told of the backup that it makes"),
        (Some(_), false) => return invalid("there is no step that makes it: backup-etcd is missing"),
        (Some(backup), true) => backup,
    };
    let mut needed: Vec<String> = ETCD_SECRETS.map(str::to_owned).into();
    needed.extend(of_storage(&backup.storage));
    all_there("backup", &needed, secrets)
}

/// The secrets that a storage is opened with.
pub(super) fn of_storage(storage: &StorageInputs) -> impl Iterator<Item = String> {
    let needed = match storage {
        // The session token may be missing.
        StorageInputs::S3(_) => 2,
        StorageInputs::Directory(_) => 0,
    };
    STORAGE_SECRETS.iter().take(needed).map(|name| format!("{STORAGE_PREFIX}{name}"))
}

/// An error that names the first of these secrets that is missing or empty.
pub(super) fn all_there(at: &'static str, needed: &[String], secrets: &Secrets) -> Result<(), InputsError> {
    let is_there = |key: &&String| !secrets.get(key).map(without_newline).unwrap_or_default().is_empty();
    match needed.iter().find(|key| !is_there(key)) {
        Some(key) => Err(InputsError::BackupSecretMissing { at, key: key.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crds::inputs::RunInputs;
    use crds::step::{Intent, Step};
    use serde_json::{Value, json};

    use super::super::examples::{self, s3};
    use super::check;

    const SECRETS: [&str; 5] = [
        "pki.etcd-ca.crt",
        "etcd.backup-client.crt",
        "etcd.backup-client.key",
        "storage.accessKeyID",
        "storage.secretAccessKey",
    ];

    fn model(storage: Value) -> RunInputs {
        let backup = json!({"storage": storage, "location": "a/b", "recipients": ["age1"], "backup": "b", "cluster": "c",
            "clusterUid": "u"});
        let mut model = crate::example::model();
        (model.intent, model.steps) = (Intent::Backup, vec![Step::BackupEtcd]);
        model.backup = Some(serde_json::from_value(backup).unwrap());
        model
    }

    fn refused(model: &RunInputs, without: &str) -> String {
        examples::refused(check, model, &SECRETS, without)
    }

    #[test]
    fn a_backup_has_its_step_and_a_step_its_backup() {
        let mut model = model(s3());
        assert_eq!(refused(&model, ""), "");
        let backup = model.backup.take();
        assert!(refused(&model, "").contains("backup-etcd needs"));
        (model.backup, model.steps) = (backup, vec![Step::ProbeHost]);
        assert!(refused(&model, "").contains("backup-etcd is missing"));
        model.backup = None;
        assert_eq!(refused(&model, ""), "");
    }

    #[test]
    fn the_secrets_that_it_needs_are_named_where_they_are_missing() {
        for name in SECRETS {
            assert_eq!(refused(&model(s3()), name), format!("backup: the secret {name} is missing or empty"));
        }
        let volume = model(json!({"directory": "/backups"}));
        assert_eq!(refused(&volume, "storage.accessKeyID"), "");
        assert!(refused(&volume, "pki.etcd-ca.crt").contains("pki.etcd-ca.crt"));
    }
}
