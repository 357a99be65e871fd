//! The backup that a run is asked for.

use crds::backup::{BackupInputs, EtcdInputs};
use crds::cluster_deployment::EtcdTopology;
use crds::{ClusterDeployment, EtcdBackup, ObjectExt, PlaybookRun, Reason};

use super::etcd_client::etcd_client_values;
use super::observed::{BackupSeen, ClusterSeen};
use super::problem::InputsProblem;
use super::storage::storage;
use crate::naming::short_hash;

/// Where backups of etcds without a cluster are, below the prefix: no cluster's name begins so.
const WITHOUT_CLUSTER: &str = "_etcd";

/// What the run is asked for; none for a run that takes no backup.
pub(super) fn inputs(
    run: &PlaybookRun,
    seen: Option<&BackupSeen>,
    cluster: Option<&ClusterSeen<'_>>,
) -> Result<Option<BackupInputs>, InputsProblem> {
    let Some(reference) = &run.spec.backup_ref else {
        return Ok(None);
    };
    let Some(seen) = seen else {
        let message = format!("EtcdBackup {} is not there any more: nobody needs this run", reference.name);
        return Err(InputsProblem::refused(Reason::StorageNotFound, message));
    };
    let (backup, spec) = (&seen.backup, &seen.backup.spec);
    if spec.cluster_name != run.spec.cluster_name {
        let of = |cluster: &Option<String>| match cluster {
            Some(cluster) => format!("of cluster {cluster}"),
            None => "of no cluster".to_owned(),
        };
        let (backups, runs) = (of(&spec.cluster_name), of(&run.spec.cluster_name));
        let message = format!("EtcdBackup {} is {backups}, and this run {runs}: make a new run", reference.name);
        return Err(InputsProblem::refused(Reason::InputsRefused, message));
    }
    let Some(of_backup) = &seen.storage else {
        let message = format!("BackupStorage {} is not there: make it", spec.storage_ref.name);
        return Err(InputsProblem::waits(Reason::StorageNotFound, message));
    };
    let deployment = cluster.map(|cluster| cluster.deployment);
    let etcd = over_endpoints(run, seen, deployment)?;
    let status = deployment.and_then(|deployment| deployment.status.as_ref());
    let name = |deployment: &ClusterDeployment| (deployment.name().to_owned(), deployment.uid().to_owned());
    let (cluster, cluster_uid) = deployment.map(name).unwrap_or_default();
    let directory = match &etcd {
        Some(etcd) if cluster.is_empty() => {
            let mut endpoints: Vec<&str> = etcd.endpoints.iter().map(String::as_str).collect();
            endpoints.sort_unstable();
            format!("{WITHOUT_CLUSTER}/{}", short_hash(&endpoints, 8))
        }
        _ => format!("{cluster}/{cluster_uid}"),
    };
    Ok(Some(BackupInputs {
        storage: storage(of_backup, &seen.seen)?,
        volume_claim: of_backup.spec.volume.as_ref().map(|volume| volume.claim_name.clone()),
        location: location(run, &directory),
        recipients: spec.encryption.recipients.clone(),
        bytes_per_second: spec.bytes_per_second.and_then(|bytes| u64::try_from(bytes).ok()),
        etcd,
        spool: spec.spool,
        backup: backup.name().to_owned(),
        cluster,
        cluster_uid,
        kubernetes_version: status.and_then(|status| status.kubernetes_version.as_deref()?.parse().ok()),
    }))
}

/// The etcd that is read over its endpoints, once its Secret can be used; none: it is on the run's Hosts.
fn over_endpoints(
    run: &PlaybookRun,
    seen: &BackupSeen,
    deployment: Option<&ClusterDeployment>,
) -> Result<Option<EtcdInputs>, InputsProblem> {
    let etcd = etcd_without_machine(&seen.backup, deployment);
    if etcd.is_some() != run.spec.hosts.is_empty() {
        let message = match etcd {
            Some(_) => "hosts is not empty, and the etcd is on none of them: make an EtcdBackup, which makes its run",
            None => "hosts is empty, and the etcd is on machines: make an EtcdBackup, which makes its run",
        };
        return Err(InputsProblem::refused(Reason::InputsRefused, message.to_owned()));
    }
    let Some((etcd, secret)) = etcd else {
        return Ok(None);
    };
    etcd_client_values(secret, seen.etcd_client.as_ref())?;
    Ok(Some(etcd))
}

/// The endpoints of the etcd of a backup, and the name of the Secret by which it is read; none: it is on machines of
/// its cluster.
pub fn etcd_without_machine<'a>(
    backup: &'a EtcdBackup,
    deployment: Option<&'a ClusterDeployment>,
) -> Option<(EtcdInputs, &'a str)> {
    if let Some(etcd) = &backup.spec.etcd {
        let inputs = EtcdInputs { endpoints: etcd.endpoints.clone(), prefix: etcd.prefix.clone() };
        return Some((inputs, &etcd.secret_ref.name));
    }
    let etcd = &deployment?.spec.etcd;
    let inputs = EtcdInputs { endpoints: etcd.endpoints.clone(), prefix: Some(etcd.prefix().to_owned()) };
    let secret = etcd.secret_ref.as_ref().map(|secret| secret.name.as_str()).unwrap_or_default();
    (etcd.topology == EtcdTopology::External).then_some((inputs, secret))
}

/// A place that no other run has: the cluster's, then the moment and the run. A name alone would be another cluster's
/// after this one is gone.
fn location(run: &PlaybookRun, directory: &str) -> String {
    let made = run.created_at().map(|time| time.0.strftime("%Y%m%dT%H%M%SZ").to_string()).unwrap_or_default();
    let of_run = run.uid().get(..8).unwrap_or(run.uid());
    format!("{directory}/{made}-{of_run}")
}

#[cfg(test)]
mod tests {
    use crds::{BackupStorage, ClusterDeployment, EtcdBackup, PlaybookRun};
    use serde_json::{Value, json};

    use super::super::artifacts::ArtifactsSeen;
    use super::super::etcd_client::tests::secret;
    use super::{BackupSeen, ClusterSeen, inputs};

    fn object<K: serde::de::DeserializeOwned>(kind: &str, name: &str, spec: Value) -> K {
        let meta = json!({ "name": name, "namespace": "fleet", "uid": format!("uid-{name}"),
            "creationTimestamp": "2026-03-01T12:00:00Z" });
        let api = "clusterwright.dev/v1alpha1";
        serde_json::from_value(json!({ "apiVersion": api, "kind": kind, "metadata": meta, "spec": spec })).unwrap()
    }

    fn backup(of: Value) -> EtcdBackup {
        let mut spec = json!({ "storageRef": { "name": "nfs" }, "encryption": { "recipients": ["age1x"] } });
        spec.as_object_mut().unwrap().extend(of.as_object().unwrap().clone());
        object("EtcdBackup", "nightly", spec)
    }

    fn bare() -> Value {
        let endpoints = ["https://10.0.0.6:2379", "https://10.0.0.5:2379"];
        json!({ "etcd": { "endpoints": endpoints, "secretRef": { "name": "etcd" }, "prefix": "/registry" } })
    }

    struct World {
        backup: EtcdBackup,
        run: PlaybookRun,
        deployment: Option<ClusterDeployment>,
        has_secret: bool,
    }

    impl World {
        fn new(of: Value, hosts: &[&str], etcd: Option<Value>) -> Self {
            let spec = json!({ "intent": "Backup", "steps": ["backup-etcd"], "hosts": hosts,
                "backupRef": { "name": "nightly" }, "clusterName": etcd.as_ref().map(|_| "paris") });
            let deployment = etcd.map(|etcd| {
                let spec = json!({ "kubernetesVersion": "1.35.4", "controlPlane": { "replicas": 1 }, "etcd": etcd });
                object("ClusterDeployment", "paris", spec)
            });
            Self { backup: backup(of), run: object("PlaybookRun", "run", spec), deployment, has_secret: true }
        }

        fn inputs(&self) -> Result<crds::backup::BackupInputs, String> {
            let seen = BackupSeen {
                backup: self.backup.clone(),
                storage: Some(object::<BackupStorage>(
                    "BackupStorage",
                    "nfs",
                    json!({ "volume": { "claimName": "c" } }),
                )),
                seen: Default::default(),
                etcd_client: self.has_secret.then(|| secret(&[])),
            };
            let cluster = self.deployment.as_ref().map(|deployment| ClusterSeen {
                deployment,
                machines: Vec::new(),
                ca_cert_hash: None,
                authorities: crate::rotation::Authorities::default(),
                etcd_client: None,
                artifacts: ArtifactsSeen::default(),
                registries: Default::default(),
                network_manifests: Default::default(),
                configuration_files: Default::default(),
            });
            let inputs = inputs(&self.run, Some(&seen), cluster.as_ref());
            inputs.map(Option::unwrap).map_err(|problem| problem.message)
        }
    }

    fn external() -> Option<Value> {
        Some(json!({ "topology": "External", "endpoints": ["https://10.0.0.5:2379"], "secretRef": { "name": "etcd" },
            "prefix": "/lab/paris" }))
    }

    #[test]
    fn an_etcd_without_a_cluster_has_a_place_of_its_own_whatever_the_order_of_its_endpoints() {
        let mut world = World::new(bare(), &[], None);
        let first = world.inputs().unwrap();
        let etcd = first.etcd.unwrap();
        assert_eq!((etcd.endpoints.len(), etcd.prefix.as_deref()), (2, Some("/registry")));
        assert_eq!((first.cluster.as_str(), first.cluster_uid.as_str()), ("", ""));
        assert!(first.location.starts_with("_etcd/"), "{}", first.location);
        assert!(first.location.ends_with("/20260301T120000Z-uid-run"), "{}", first.location);
        world.backup.spec.etcd.as_mut().unwrap().endpoints.reverse();
        assert_eq!(world.inputs().unwrap().location, first.location);
    }

    #[test]
    fn an_external_etcd_is_read_over_the_endpoints_of_its_cluster() {
        let world = World::new(json!({ "clusterName": "paris" }), &[], external());
        let inputs = world.inputs().unwrap();
        let etcd = inputs.etcd.unwrap();
        assert_eq!((etcd.endpoints[0].as_str(), etcd.prefix.as_deref()), ("https://10.0.0.5:2379", Some("/lab/paris")));
        assert_eq!(
            (inputs.cluster.as_str(), inputs.location.as_str()),
            ("paris", "paris/uid-paris/20260301T120000Z-uid-run")
        );
        let stacked = World::new(json!({ "clusterName": "paris" }), &["a"], Some(json!({})));
        assert_eq!(stacked.inputs().unwrap().etcd, None);
    }

    #[test]
    fn a_run_that_does_not_fit_its_backup_or_lacks_its_secret_is_told_so() {
        let check = |world: World, words: &str| {
            let message = world.inputs().unwrap_err();
            assert!(message.contains(words), "{message}");
        };
        check(
            World { has_secret: false, ..World::new(bare(), &[], None) },
            "Secret etcd of spec.etcd.secretRef is not",
        );
        check(World::new(bare(), &["a"], None), "hosts is not empty");
        check(World::new(json!({ "clusterName": "paris" }), &[], Some(json!({}))), "hosts is empty");
        check(
            World::new(bare(), &[], external()),
            "EtcdBackup nightly is of no cluster, and this run of cluster paris",
        );
        check(World::new(json!({ "clusterName": "rome" }), &[], external()), "of cluster rome");
    }
}
