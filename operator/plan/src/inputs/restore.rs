//! The restore that a run is part of, and the backup that it brings to the machines.

use crds::backup::StagingInputs;
use crds::etcd_restore::IDENTITY_KEY;
use crds::step::{Intent, Step};
use crds::{BackupStorage, ClusterDeployment, ObjectExt, PlaybookRun, Reason};
use k8s_openapi::api::core::v1::Secret;

use super::observed::{ClusterSeen, RestoreSeen};
use super::problem::InputsProblem;
use super::storage::storage;
use crate::etcd_restore::id_of;

/// What the run brings to the machines; none for a run that brings nothing. A run that no EtcdRestore has asked for is
/// refused: only that has been approved.
pub(super) fn staging(
    run: &PlaybookRun,
    seen: Option<&RestoreSeen>,
    cluster: Option<&ClusterSeen<'_>>,
) -> Result<Option<StagingInputs>, InputsProblem> {
    let Some(reference) = &run.spec.restore_ref else {
        return match [Intent::Stage, Intent::Restore].contains(&run.spec.intent) {
            true => Err(refused("restoreRef is missing: make an EtcdRestore".into())),
            false => Ok(None),
        };
    };
    let name = &reference.name;
    let (Some(seen), Some(cluster)) = (seen, cluster) else {
        return Err(refused(format!("EtcdRestore {name} is not there any more: nobody needs this run")));
    };
    if !run.is_owned_by(seen.restore.uid()) {
        return Err(refused(format!("EtcdRestore {name} has not asked for this run: make an EtcdRestore, which does")));
    }
    let deployment = cluster.deployment;
    if seen.restore.spec.cluster_name != deployment.name() {
        let of = &seen.restore.spec.cluster_name;
        return Err(refused(format!("EtcdRestore {name} is of cluster {of}, and this run of {}", deployment.name())));
    }
    if !run.spec.steps.contains(&Step::StageBackup) {
        return Ok(None);
    }
    let (of_backup, location) = place(seen)?;
    check_identity(seen)?;
    Ok(Some(StagingInputs {
        storage: storage(of_backup, &seen.seen)?,
        volume_claim: of_backup.spec.volume.as_ref().map(|volume| volume.claim_name.clone()),
        location,
        id: id_of(&seen.restore),
        restore: name.clone(),
        cluster: deployment.name().to_owned(),
        kubernetes_version: version(deployment),
    }))
}

fn version(deployment: &ClusterDeployment) -> Option<crds::KubernetesVersion> {
    deployment.status.as_ref()?.kubernetes_version.as_deref()?.parse().ok()
}

/// The storage, and the backup's directory in it.
fn place(seen: &RestoreSeen) -> Result<(&BackupStorage, String), InputsProblem> {
    let source = &seen.restore.spec.source;
    let location = match (&source.stored, &seen.backup) {
        (Some(stored), _) => Some(stored.location.clone()),
        (None, Some(backup)) => {
            backup.status.as_ref().and_then(|status| status.backup.as_ref()).map(|backup| backup.location.clone())
        }
        (None, None) => None,
    };
    let Some(location) = location else {
        let name = source.backup_ref.as_ref().map(|backup| backup.name.as_str()).unwrap_or_default();
        let message = format!("EtcdBackup {name} is not there, or holds nothing: make a new EtcdRestore");
        return Err(InputsProblem::waits(Reason::BackupNotFound, message));
    };
    match &seen.storage {
        Some(storage) => Ok((storage, location)),
        None => {
            let message = "the BackupStorage of the backup is not there: make it".to_owned();
            Err(InputsProblem::waits(Reason::StorageNotFound, message))
        }
    }
}

fn check_identity(seen: &RestoreSeen) -> Result<(), InputsProblem> {
    let name = &seen.restore.spec.identity_ref.name;
    let message = match &seen.identity {
        None => format!("Secret {name} of spec.identityRef is not there: make it, with the key {IDENTITY_KEY}"),
        Some(secret) if identity(secret).is_none() => {
            format!("Secret {name} of spec.identityRef lacks {IDENTITY_KEY}: add it, as age-keygen wrote it")
        }
        Some(_) => return Ok(()),
    };
    Err(InputsProblem::waits(Reason::SecretNotFound, message))
}

/// The identity in its Secret; none where it is empty.
fn identity(secret: &Secret) -> Option<&[u8]> {
    let value = &secret.data.as_ref()?.get(IDENTITY_KEY)?.0;
    (!value.trim_ascii().is_empty()).then_some(value)
}

fn refused(message: String) -> InputsProblem {
    InputsProblem::refused(Reason::InputsRefused, message)
}

#[cfg(test)]
mod tests {
    use crds::backup::StorageInputs;
    use crds::{BackupStorage, EtcdRestore, PlaybookRun};
    use k8s_openapi::ByteString;
    use k8s_openapi::api::core::v1::Secret;
    use serde_json::json;

    use super::super::artifacts::ArtifactsSeen;
    use super::{ClusterSeen, RestoreSeen, staging};

    fn object<K: serde::de::DeserializeOwned>(kind: &str, name: &str, spec: serde_json::Value) -> K {
        let meta = json!({ "name": name, "namespace": "fleet", "uid": format!("{name}-uid-x") });
        let api = "clusterwright.dev/v1alpha1";
        serde_json::from_value(json!({ "apiVersion": api, "kind": kind, "metadata": meta, "spec": spec })).unwrap()
    }

    fn seen() -> RestoreSeen {
        let stored = json!({ "storageRef": { "name": "nfs" }, "location": "paris/u/1" });
        let restore: EtcdRestore = object(
            "EtcdRestore",
            "back",
            json!({ "clusterName": "paris", "source": { "stored": stored }, "identityRef": { "name": "i" } }),
        );
        let data = [("identity".to_owned(), ByteString(b"AGE-SECRET-KEY-1\n".to_vec()))].into();
        RestoreSeen {
            restore,
            backup: None,
            storage: Some(object::<BackupStorage>("BackupStorage", "nfs", json!({ "volume": { "claimName": "c" } }))),
            seen: Default::default(),
            identity: Some(Secret { data: Some(data), ..Secret::default() }),
        }
    }

    /// The location that is staged, or the refusal.
    fn check(change: impl Fn(&mut RestoreSeen, &mut PlaybookRun)) -> String {
        let mut seen = seen();
        let mut run: PlaybookRun = object(
            "PlaybookRun",
            "run",
            json!({ "clusterName": "paris", "intent": "Stage", "steps": ["stage-backup"], "hosts": ["a"],
                "restoreRef": { "name": "back" } }),
        );
        run.metadata.owner_references = crds::references::controller_ref(&seen.restore).map(|owner| vec![owner]);
        change(&mut seen, &mut run);
        let deployment = object(
            "ClusterDeployment",
            "paris",
            json!({ "kubernetesVersion": "1.35.4", "controlPlane": { "replicas": 1 },
                "networking": { "podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16", "plugin": { "name": "bridge" } } }),
        );
        let cluster = ClusterSeen {
            deployment: &deployment,
            machines: Vec::new(),
            ca_cert_hash: None,
            etcd_client: None,
            artifacts: ArtifactsSeen::default(),
            addon_manifests: Default::default(),
            network_manifests: Default::default(),
        };
        match staging(&run, Some(&seen), Some(&cluster)) {
            Ok(Some(inputs)) => {
                assert_eq!(inputs.storage, StorageInputs::Directory("/backups".into()));
                format!("{} as {}", inputs.location, inputs.id)
            }
            Ok(None) => "nothing".into(),
            Err(problem) => problem.message,
        }
    }

    #[test]
    fn a_run_brings_the_backup_of_its_own_restore() {
        assert_eq!(check(|_, _| {}), "paris/u/1 as backuidx");
        let released = |_: &mut RestoreSeen, run: &mut PlaybookRun| run.spec.steps = vec![crds::Step::RestoreEtcd];
        assert_eq!(check(released), "nothing");
    }

    #[test]
    fn a_run_that_no_restore_has_asked_for_is_refused() {
        assert!(check(|_, run| run.metadata.owner_references = None).contains("has not asked for this run"));
        assert!(check(|_, run| run.spec.restore_ref = None).contains("restoreRef is missing"));
        assert!(check(|seen, _| seen.restore.spec.cluster_name = "rome".into()).contains("of cluster rome"));
        assert!(check(|seen, _| seen.restore.metadata.uid = Some("made anew".into())).contains("has not asked"));
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(check(|seen, _| seen.identity = None).contains("Secret i of spec.identityRef is not there"));
        assert!(check(|seen, _| seen.identity = Some(Secret::default())).contains("lacks identity"));
        assert!(check(|seen, _| seen.storage = None).contains("BackupStorage"));
        assert!(check(|seen, _| seen.restore.spec.source.stored = None).contains("holds nothing"));
    }
}
