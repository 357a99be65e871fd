//! The restore that a run is part of, and the backup that it brings to the machines.

use crds::backup::{PlaneManifest, StagingInputs};
use crds::names::pki_secret;
use crds::references::LocalRef;
use crds::step::{Intent, Step};
use crds::{BackupStorage, ClusterDeployment, EtcdRestore, KarmadaDeployment, ObjectExt, PlaybookRun, Reason};

use super::identity::identity;
use super::observed::{ClusterSeen, Formed, RestoreSeen};
use super::problem::InputsProblem;
use super::storage::storage;
use crate::cluster_deployment::restoring;
use crate::etcd_restore::id_of;
use crate::karmada_deployment::restore as plane_restore;

/// What the run brings to the machines; none for a run that brings nothing. A run that no EtcdRestore has asked for is
/// refused: only that has been approved.
pub(super) fn staging(
    run: &PlaybookRun,
    seen: Option<&RestoreSeen>,
    formed: Option<Formed<'_>>,
) -> Result<Option<StagingInputs>, InputsProblem> {
    let cluster = match formed {
        Some(Formed::Cluster(cluster)) => Some(cluster),
        Some(Formed::Plane(_)) | None => None,
    };
    if run.spec.intent == Intent::Install && run.spec.steps.contains(&Step::StageBackup) {
        let inputs = match formed {
            Some(Formed::Plane(plane)) => of_plane(run, seen, plane.object),
            Some(Formed::Cluster(_)) | None => of_install(run, seen, cluster),
        };
        return inputs.map(Some);
    }
    let Some(reference) = &run.spec.restore_ref else {
        return match [Intent::Stage, Intent::Restore].contains(&run.spec.intent) {
            true => Err(refused("restoreRef is missing: make an EtcdRestore".into())),
            false => Ok(None),
        };
    };
    let name = &reference.name;
    let gone = || refused(format!("EtcdRestore {name} is not there any more: nobody needs this run"));
    let Some((seen, restore)) = seen.and_then(|seen| Some((seen, seen.restore.as_ref()?))) else {
        return Err(gone());
    };
    let cluster = match formed {
        Some(Formed::Plane(plane)) => return in_place(run, (seen, restore), plane.object),
        Some(Formed::Cluster(cluster)) => cluster,
        None => return Err(gone()),
    };
    if !run.is_owned_by(restore.uid()) {
        return Err(refused(format!("EtcdRestore {name} has not asked for this run: make an EtcdRestore, which does")));
    }
    let deployment = cluster.deployment;
    if restore.spec.cluster_name.as_deref() != Some(deployment.name()) {
        let of = restore.spec.subject();
        return Err(refused(format!("EtcdRestore {name} is of {of}, and this run of {}", deployment.name())));
    }
    if !run.spec.steps.contains(&Step::StageBackup) {
        return Ok(None);
    }
    let (of_backup, location) = place(seen, restore)?;
    identity(&restore.spec.identity_ref.name, seen.identity.as_ref())?;
    let inputs = inputs((of_backup, seen), deployment.name(), (location, id_of(restore)))?;
    Ok(Some(StagingInputs { restore: name.clone(), kubernetes_version: version(deployment), ..inputs }))
}

/// The backup that a cluster begins with, once that is settled and, where it must be, approved.
fn of_install(
    run: &PlaybookRun,
    seen: Option<&RestoreSeen>,
    cluster: Option<&ClusterSeen<'_>>,
) -> Result<StagingInputs, InputsProblem> {
    let (Some(seen), Some(cluster)) = (seen, cluster) else {
        return Err(refused("its cluster begins with no backup: nobody needs this run".into()));
    };
    let deployment = cluster.deployment;
    let name = deployment.name();
    if !run.is_owned_by(deployment.uid()) {
        let message =
            format!("ClusterDeployment {name} has not asked for this run: set its spec.restoreFrom when it is made");
        return Err(refused(message));
    }
    let Some(pending) = restoring::pending(deployment) else {
        return Err(refused(format!("ClusterDeployment {name} begins with no backup: nobody needs this run")));
    };
    if pending.cluster_uid != deployment.uid() && pending.approved_at.is_none() {
        return Err(refused(format!("backup {} was not approved for ClusterDeployment {name}", pending.backup)));
    }
    let Some(reference) = restoring::identity(deployment, pending) else {
        let message =
            "neither spec.restoreFrom nor spec.recovery names an identity: set spec.recovery.identityRef".to_owned();
        return Err(InputsProblem::waits(Reason::SecretNotFound, message));
    };
    let of_backup = begun_with(seen, reference, &pending.storage_ref)?;
    let id = restoring::id(deployment, pending);
    let inputs = inputs((of_backup, seen), name, (pending.location.clone(), id))?;
    let kubernetes_version = Some(deployment.spec.kubernetes_version);
    Ok(StagingInputs { cluster: pending.cluster.clone(), kubernetes_version, ..inputs })
}

/// The backup that a plane begins with, once that is settled. Nobody is asked before: nothing acts by the data.
fn of_plane(
    run: &PlaybookRun,
    seen: Option<&RestoreSeen>,
    object: &KarmadaDeployment,
) -> Result<StagingInputs, InputsProblem> {
    let name = object.name();
    if !run.is_owned_by(object.uid()) {
        let message =
            format!("KarmadaDeployment {name} has not asked for this run: set its spec.restoreFrom when it is made");
        return Err(refused(message));
    }
    let (Some(seen), Some(record), Some(from)) =
        (seen, plane_restore::installed_from(object), object.spec.restore_from.as_ref())
    else {
        return Err(refused(format!("KarmadaDeployment {name} begins with no backup: nobody needs this run")));
    };
    let of_backup = begun_with(seen, &from.identity_ref, &record.storage_ref)?;
    let id = plane_restore::id(object, record);
    let inputs = inputs((of_backup, seen), name, (record.location.clone(), id))?;
    let of = PlaneManifest { name: record.plane.clone(), uid: record.plane_uid.clone(), version: None };
    Ok(StagingInputs { cluster: String::new(), karmada_deployment: Some(of), ..inputs })
}

/// The backup that a plane on machines is set back to, once that was handed over to it; none: the run brings nothing.
fn in_place(
    run: &PlaybookRun,
    (seen, restore): (&RestoreSeen, &EtcdRestore),
    object: &KarmadaDeployment,
) -> Result<Option<StagingInputs>, InputsProblem> {
    let (name, plane) = (restore.name(), object.name());
    // What it leaves on machines it removes itself.
    let removes = run.spec.steps == [Step::RemoveOldData] && run.is_owned_by(restore.uid());
    let record = plane_restore::set_back_by(object, restore);
    if removes && restore.spec.is_for_plane(plane) {
        return Ok(None);
    }
    let Some(record) = record.filter(|_| run.is_owned_by(object.uid())) else {
        let message = format!(
            "EtcdRestore {name} has not asked for this run of KarmadaDeployment {plane}: make an EtcdRestore, which does"
        );
        return Err(refused(message));
    };
    if !run.spec.steps.contains(&Step::StageBackup) {
        return Ok(None);
    }
    let of_backup = begun_with(seen, &restore.spec.identity_ref, &record.storage_ref)?;
    let inputs = inputs((of_backup, seen), plane, (record.location.clone(), id_of(restore)))?;
    let of = PlaneManifest { name: record.plane.clone(), uid: record.plane_uid.clone(), version: None };
    Ok(Some(StagingInputs { restore: name.to_owned(), cluster: String::new(), karmada_deployment: Some(of), ..inputs }))
}

/// What is brought to the machines of the cluster or plane of this name, where it is a backup of the same: from which
/// storage, and where in it.
fn inputs(
    (of_backup, seen): (&BackupStorage, &RestoreSeen),
    name: &str,
    (location, id): (String, String),
) -> Result<StagingInputs, InputsProblem> {
    Ok(StagingInputs {
        storage: storage(of_backup, &seen.seen)?,
        volume_claim: of_backup.spec.volume.as_ref().map(|volume| volume.claim_name.clone()),
        location,
        id,
        restore: name.to_owned(),
        cluster: name.to_owned(),
        karmada_deployment: None,
        keys: pki_secret(name),
        kubernetes_version: None,
    })
}

/// The storage of a backup that something begins with; the identity is there.
fn begun_with<'a>(
    seen: &'a RestoreSeen,
    of_identity: &LocalRef,
    of_storage: &LocalRef,
) -> Result<&'a BackupStorage, InputsProblem> {
    identity(&of_identity.name, seen.identity.as_ref())?;
    seen.storage.as_ref().ok_or_else(|| {
        let message = format!("BackupStorage {} is not there: make it", of_storage.name);
        InputsProblem::waits(Reason::StorageNotFound, message)
    })
}

fn version(deployment: &ClusterDeployment) -> Option<crds::KubernetesVersion> {
    deployment.status.as_ref()?.kubernetes_version.as_deref()?.parse().ok()
}

/// The storage, and the backup's directory in it.
fn place<'a>(seen: &'a RestoreSeen, restore: &EtcdRestore) -> Result<(&'a BackupStorage, String), InputsProblem> {
    let source = &restore.spec.source;
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

fn refused(message: String) -> InputsProblem {
    InputsProblem::refused(Reason::InputsRefused, message)
}

#[cfg(test)]
mod tests {
    use crds::backup::StorageInputs;
    use crds::step::{Intent, Step};
    use crds::{BackupStorage, EtcdRestore, PlaybookRun};
    use k8s_openapi::ByteString;
    use k8s_openapi::api::core::v1::Secret;
    use serde_json::json;

    use super::super::PlaneMachines;
    use super::super::artifacts::ArtifactsSeen;
    use super::{ClusterSeen, Formed, RestoreSeen, staging};

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
            restore: Some(restore),
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
        run.metadata.owner_references =
            seen.restore.as_ref().and_then(crds::references::controller_ref).map(|owner| vec![owner]);
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
            authorities: crate::rotation::Authorities::default(),
            etcd_client: None,
            artifacts: ArtifactsSeen::default(),
            registries: Default::default(),
            network_manifests: Default::default(),
            configuration_files: Default::default(),
        };
        match staging(&run, Some(&seen), Some(Formed::Cluster(&cluster))) {
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
        assert!(
            check(|seen, _| seen.restore.as_mut().unwrap().spec.cluster_name = Some("rome".into()))
                .contains("of cluster rome")
        );
        assert!(
            check(|seen, _| seen.restore.as_mut().unwrap().metadata.uid = Some("made anew".into()))
                .contains("has not asked")
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(check(|seen, _| seen.identity = None).contains("Secret i of identityRef is not there"));
        assert!(check(|seen, _| seen.identity = Some(Secret::default())).contains("lacks identity"));
        assert!(check(|seen, _| seen.storage = None).contains("BackupStorage"));
        assert!(check(|seen, _| seen.restore.as_mut().unwrap().spec.source.stored = None).contains("holds nothing"));
    }

    /// The location that an install brings, or the refusal; of a cluster that begins with the backup of another one.
    fn install(change: impl Fn(&mut crds::ClusterDeployment, &mut RestoreSeen, &mut PlaybookRun)) -> String {
        let mut seen = RestoreSeen { restore: None, ..seen() };
        let mut deployment: crds::ClusterDeployment = object(
            "ClusterDeployment",
            "lyon",
            json!({ "kubernetesVersion": "1.35.4", "controlPlane": { "replicas": 1 }, "restoreFrom": {
                "source": { "stored": { "storageRef": { "name": "nfs" }, "location": "paris/u/1" } },
                "identityRef": { "name": "i" } } }),
        );
        let restored = json!({ "backup": "b", "cluster": "paris", "clusterUID": "u", "storageRef": { "name": "nfs" },
            "location": "paris/u/1", "takenAt": "2026-01-01T00:00:00Z", "revision": 7, "size": 9, "sha256": "a0",
            "etcdVersion": "3.6.16", "approvedAt": "2026-01-02T00:00:00Z" });
        deployment.status.get_or_insert_default().restored_from = serde_json::from_value(restored).unwrap();
        let mut run: PlaybookRun = object(
            "PlaybookRun",
            "run",
            json!({ "clusterName": "lyon", "intent": "Install", "steps": ["stage-backup", "etcd"], "hosts": ["a"] }),
        );
        run.metadata.owner_references = crds::references::controller_ref(&deployment).map(|owner| vec![owner]);
        change(&mut deployment, &mut seen, &mut run);
        let cluster = ClusterSeen {
            deployment: &deployment,
            machines: Vec::new(),
            ca_cert_hash: None,
            authorities: crate::rotation::Authorities::default(),
            etcd_client: None,
            artifacts: ArtifactsSeen::default(),
            registries: Default::default(),
            network_manifests: Default::default(),
            configuration_files: Default::default(),
        };
        match staging(&run, Some(&seen), Some(Formed::Cluster(&cluster))) {
            Ok(Some(inputs)) => format!("{} of {} with {}", inputs.location, inputs.cluster, inputs.keys),
            Ok(None) => "nothing".into(),
            Err(problem) => problem.message,
        }
    }

    #[test]
    fn an_install_brings_what_was_approved_for_its_cluster_and_nothing_else() {
        assert_eq!(install(|_, _, _| {}), "paris/u/1 of paris with lyon-pki");
        let pending = |deployment: &mut crds::ClusterDeployment,
                       change: fn(&mut crds::cluster_deployment::RestoredFrom)| {
            change(deployment.status.as_mut().unwrap().restored_from.as_mut().unwrap());
        };
        let unapproved = install(|deployment, _, _| pending(deployment, |known| known.approved_at = None));
        assert!(unapproved.contains("was not approved for ClusterDeployment lyon"), "{unapproved}");
        let again =
            install(|deployment, _, _| pending(deployment, |known| known.restored_at = known.approved_at.clone()));
        assert!(again.contains("begins with no backup"), "{again}");
        let by_hand = install(|_, _, run| run.metadata.owner_references = None);
        assert!(by_hand.contains("has not asked for this run"), "{by_hand}");
        let locked = install(|_, seen, _| seen.identity = None);
        assert!(locked.contains("Secret i of identityRef is not there"), "{locked}");
        assert!(install(|_, seen, _| seen.storage = None).contains("BackupStorage nfs is not there"));
    }

    /// What an install of a plane brings, or the refusal.
    fn of_plane(
        change: impl Fn(&mut crds::KarmadaDeployment, &mut RestoreSeen, &mut PlaybookRun),
    ) -> Result<crds::backup::StagingInputs, String> {
        let mut seen = RestoreSeen { restore: None, ..seen() };
        let url = json!({ "url": "https://bundle.example.com" });
        let from = json!({ "source": { "stored": { "storageRef": { "name": "nfs" }, "location": "_karmada/k0/u/1" } },
            "identityRef": { "name": "i" } });
        let mut plane: crds::KarmadaDeployment = object(
            "KarmadaDeployment",
            "k1",
            json!({ "version": "1.18.2", "crds": { "bundle": url }, "mode": "Binary", "restoreFrom": from,
                "binary": { "controlPlane": { "replicas": 1 }, "artifacts": url } }),
        );
        let record = json!({ "backup": "b", "plane": "k0", "planeUID": "u", "storageRef": { "name": "nfs" },
            "location": "_karmada/k0/u/1", "takenAt": "2026-01-01T00:00:00Z", "revision": 7, "size": 9, "sha256": "a0",
            "etcdVersion": "3.6.16", "dnsDomain": "cluster.local", "step": "Data" });
        plane.status.get_or_insert_default().restored_from = serde_json::from_value(record).unwrap();
        let mut run: PlaybookRun = object(
            "PlaybookRun",
            "run",
            json!({ "clusterName": "k1", "clusterKind": "KarmadaDeployment", "intent": "Install",
                "steps": ["stage-backup", "etcd"], "hosts": ["a"] }),
        );
        run.metadata.owner_references = crds::references::controller_ref(&plane).map(|owner| vec![owner]);
        change(&mut plane, &mut seen, &mut run);
        let binary = plane.spec.binary.as_ref().unwrap();
        let machines =
            PlaneMachines { object: &plane, binary, machines: Vec::new(), artifacts: ArtifactsSeen::default() };
        let inputs = staging(&run, Some(&seen), Some(Formed::Plane(&machines))).map_err(|problem| problem.message)?;
        Ok(inputs.expect("the run stages"))
    }

    #[test]
    fn an_install_of_a_plane_brings_the_backup_that_was_settled_on_of_the_plane_that_was_backed_up() {
        let inputs = of_plane(|_, _, _| {}).unwrap();
        let plane = inputs.karmada_deployment.unwrap();
        assert_eq!((plane.name.as_str(), plane.uid.as_str(), inputs.cluster.as_str()), ("k0", "u", ""));
        assert_eq!((inputs.location.as_str(), inputs.keys.as_str()), ("_karmada/k0/u/1", "k1-pki"));
        assert!(inputs.id.len() == 8 && inputs.kubernetes_version.is_none(), "its version is Karmada's");
        let refusal = |change: &dyn Fn(&mut crds::KarmadaDeployment, &mut RestoreSeen, &mut PlaybookRun)| {
            of_plane(|plane, seen, run| change(plane, seen, run)).unwrap_err()
        };
        let by_hand = refusal(&|_, _, run| run.metadata.owner_references = None);
        assert!(by_hand.contains("KarmadaDeployment k1 has not asked for this run"), "{by_hand}");
        let serving = Some(crds::karmada_deployment::KarmadaRestoreStep::Serve);
        let later = refusal(&|plane, _, _| {
            plane.status.as_mut().unwrap().restored_from.as_mut().unwrap().step = serving;
        });
        assert!(later.contains("begins with no backup"), "{later}");
        let locked = refusal(&|_, seen, _| seen.identity = None);
        assert!(locked.contains("Secret i of identityRef is not there"), "{locked}");
        assert!(refusal(&|_, seen, _| seen.storage = None).contains("BackupStorage nfs is not there"));
    }

    /// What a run is given of a plane on machines that this EtcdRestore sets back, or the refusal.
    fn of_plane_in_place(
        change: impl Fn(&mut crds::KarmadaDeployment, &mut RestoreSeen, &mut PlaybookRun),
    ) -> Result<Option<crds::backup::StagingInputs>, String> {
        let mut seen = seen();
        let restore: EtcdRestore = object(
            "EtcdRestore",
            "back",
            json!({ "karmadaDeploymentRef": { "name": "k1" }, "identityRef": { "name": "i" },
                "source": { "stored": { "storageRef": { "name": "nfs" }, "location": "_karmada/k1/u/1" } } }),
        );
        seen.restore = Some(restore);
        let url = json!({ "url": "https://bundle.example.com" });
        let mut plane: crds::KarmadaDeployment = object(
            "KarmadaDeployment",
            "k1",
            json!({ "version": "1.18.2", "crds": { "bundle": url }, "mode": "Binary",
                "binary": { "controlPlane": { "replicas": 1 }, "artifacts": url } }),
        );
        let record = json!({ "backup": "b", "plane": "k1", "planeUID": "k1-uid-x", "storageRef": { "name": "nfs" },
            "location": "_karmada/k1/u/1", "takenAt": "2026-01-01T00:00:00Z", "revision": 7, "size": 9, "sha256": "a0",
            "etcdVersion": "3.6.16", "dnsDomain": "cluster.local", "step": "Stage", "restoreRef": { "name": "back" },
            "restoreUID": "back-uid-x" });
        plane.status.get_or_insert_default().restored_from = serde_json::from_value(record).unwrap();
        let mut run: PlaybookRun = object(
            "PlaybookRun",
            "run",
            json!({ "clusterName": "k1", "clusterKind": "KarmadaDeployment", "intent": "Stage",
                "steps": ["stage-backup"], "hosts": ["a"], "restoreRef": { "name": "back" } }),
        );
        run.metadata.owner_references = crds::references::controller_ref(&plane).map(|owner| vec![owner]);
        change(&mut plane, &mut seen, &mut run);
        let binary = plane.spec.binary.as_ref().unwrap();
        let machines =
            PlaneMachines { object: &plane, binary, machines: Vec::new(), artifacts: ArtifactsSeen::default() };
        staging(&run, Some(&seen), Some(Formed::Plane(&machines))).map_err(|problem| problem.message)
    }

    #[test]
    fn a_plane_is_set_back_by_runs_of_its_own_for_the_restore_that_it_has_taken_over() {
        let inputs = of_plane_in_place(|_, _, _| {}).unwrap().unwrap();
        let plane = inputs.karmada_deployment.unwrap();
        assert_eq!((plane.name.as_str(), plane.uid.as_str(), inputs.restore.as_str()), ("k1", "k1-uid-x", "back"));
        assert_eq!((inputs.location.as_str(), inputs.id.as_str()), ("_karmada/k1/u/1", "backuidx"));
        let swap = |run: &mut PlaybookRun| {
            (run.spec.intent, run.spec.steps) = (Intent::Restore, vec![Step::KarmadaService, Step::RestoreEtcd]);
        };
        assert_eq!(of_plane_in_place(|_, _, run| swap(run)), Ok(None), "what is swapped lies on the machines");
        let refusal = |change: &dyn Fn(&mut crds::KarmadaDeployment, &mut RestoreSeen, &mut PlaybookRun)| {
            of_plane_in_place(|plane, seen, run| change(plane, seen, run)).unwrap_err()
        };
        let asked = "EtcdRestore back has not asked for this run of KarmadaDeployment k1";
        assert!(refusal(&|_, _, run| run.metadata.owner_references = None).contains(asked));
        let over = refusal(&|plane, _, run| {
            plane.status.as_mut().unwrap().restored_from.as_mut().unwrap().step = None;
            swap(run);
        });
        assert!(over.contains(asked), "{over}");
        assert!(refusal(&|_, seen, _| seen.restore = None).contains("EtcdRestore back is not there any more"));
        assert!(refusal(&|_, seen, _| seen.identity = None).contains("Secret i of identityRef is not there"));
    }

    #[test]
    fn what_a_restore_left_on_the_machines_of_a_plane_it_removes_itself() {
        let removal = |is_own: bool| {
            of_plane_in_place(|plane, seen, run| {
                plane.status.as_mut().unwrap().restored_from = None;
                (run.spec.intent, run.spec.steps) = (Intent::Restore, vec![Step::RemoveOldData]);
                let owner = seen.restore.as_ref().and_then(crds::references::controller_ref).filter(|_| is_own);
                run.metadata.owner_references = owner.map(|owner| vec![owner]);
            })
        };
        assert_eq!(removal(true), Ok(None));
        assert!(removal(false).unwrap_err().contains("has not asked for this run"));
    }
}
