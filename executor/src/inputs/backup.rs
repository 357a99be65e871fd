//! Checks what a run gets of the backup that it takes: it is there where a step makes one, with the secrets that it
//! needs.

use crds::backup::{ETCD_SECRETS, HOST_KUBECONFIG_SECRET, STORAGE_PREFIX, STORAGE_SECRETS, StorageInputs};
use crds::inputs::RunInputs;
use crds::step::Step;

use super::error::InputsError;
use crate::secrets::{Secrets, without_newline};

/// Whether the run reads an etcd over its endpoints: it has no hosts.
pub(super) fn needs_no_machine(model: &RunInputs) -> bool {
    model.backup.as_ref().is_some_and(|backup| backup.etcd.is_some())
}

pub(super) fn check(model: &RunInputs, secrets: &Secrets) -> Result<(), InputsError> {
    let invalid = |problem: &str| Err(InputsError::Invalid { at: "backup".to_owned(), problem: problem.to_owned() });
    let backup = match (&model.backup, model.steps.contains(&Step::BackupEtcd)) {
        (None, false) => return Ok(()),
        (None, true) => return invalid("step backup-etcd needs to be told of the backup that it makes"),
        (Some(_), false) => return invalid("there is no step that makes it: backup-etcd is missing"),
        (Some(backup), true) => backup,
    };
    if let Some(etcd) = &backup.etcd {
        if etcd.endpoints.is_empty() || etcd.endpoints.iter().any(|url| address(url).is_none()) {
            return invalid("etcd.endpoints: URLs of the form https://HOST:PORT are needed");
        }
        if backup.spool {
            return invalid("spool: an etcd that is read over its endpoints has no machine to write to");
        }
        if !model.hosts.is_empty() || model.steps.len() != 1 {
            return invalid("an etcd that is read over its endpoints needs no hosts, and no other step");
        }
    }
    let mut needed: Vec<String> = ETCD_SECRETS.map(str::to_owned).into();
    let is_forwarded = backup.etcd.as_ref().is_some_and(|etcd| etcd.forwarded_in.is_some());
    needed.extend(is_forwarded.then(|| HOST_KUBECONFIG_SECRET.to_owned()));
    needed.extend(of_storage(&backup.storage));
    all_there("backup", &needed, secrets)
}

/// `HOST:PORT` of a client URL; none where it is none of https.
pub(crate) fn address(url: &str) -> Option<&str> {
    let address = url.strip_prefix("https://")?.trim_end_matches('/');
    let (host, port) = address.rsplit_once(':')?;
    let is_plain = !host.is_empty() && !host.contains(['/', '@', '?', '#']);
    (is_plain && port.parse::<u16>().is_ok_and(|port| port > 0)).then_some(address)
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
    fn an_etcd_that_is_read_over_its_endpoints_has_no_hosts_and_all_others_have_some() {
        let read_over = |endpoints: Value| {
            let mut model = model(s3());
            let etcd = json!({ "endpoints": endpoints });
            model.backup.as_mut().unwrap().etcd = Some(serde_json::from_value(etcd).unwrap());
            model
        };
        let mut model = read_over(json!(["https://10.0.0.5:2379", "https://etcd-1.example:2379"]));
        assert!(super::needs_no_machine(&model) && refused(&model, "").contains("needs no hosts"));
        model.hosts.clear();
        assert_eq!(refused(&model, ""), "");
        model.steps.push(Step::ProbeHost);
        assert!(refused(&model, "").contains("no other step"));
        for wrong in ["http://10.0.0.5:2379", "https://10.0.0.5", "https://:2379", "https://a@b:1", "https://a/b:1"] {
            let mut model = read_over(json!([wrong]));
            model.hosts.clear();
            assert!(refused(&model, "").contains("https://HOST:PORT"), "{wrong}");
        }
        assert!(refused(&read_over(json!([])), "").contains("https://HOST:PORT"));
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
