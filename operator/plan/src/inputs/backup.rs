//! The backup that a run is asked for.

use crds::backup::{BackupInputs, EtcdInputs, PlaneManifest};
use crds::cluster_deployment::EtcdTopology;
use crds::{ClusterDeployment, FormerRef, KarmadaDeployment, KubernetesVersion, ObjectExt, PlaybookRun, Reason};

use super::etcd_client::etcd_client_values;
use super::observed::{BackupSeen, ClusterSeen, PlaneSeen};
use super::problem::InputsProblem;
use super::storage::storage;
use crate::addon::Problem;
use crate::karmada_deployment::backup_source::{self, forwarding_host, has_etcd_on_machines};
use crate::karmada_deployment::pki;
use crate::naming::short_hash;

/// Where backups of etcds without a cluster are, below the prefix: no cluster's name begins so.
const WITHOUT_CLUSTER: &str = "_etcd";
/// The same of planes.
const OF_PLANES: &str = "_karmada";

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
    if former(seen) != run.spec.former() {
        let of = |former: Option<FormerRef<'_>>| match former {
            Some(former) => format!("of {former}"),
            None => "of no cluster".to_owned(),
        };
        let (backups, runs) = (of(former(seen)), of(run.spec.former()));
        let message = format!("EtcdBackup {} is {backups}, and this run {runs}: make a new run", reference.name);
        return Err(InputsProblem::refused(Reason::InputsRefused, message));
    }
    let Some(of_backup) = &seen.storage else {
        let message = format!("BackupStorage {} is not there: make it", spec.storage_ref.name);
        return Err(InputsProblem::waits(Reason::StorageNotFound, message));
    };
    let deployment = cluster.map(|cluster| cluster.deployment);
    let plane = plane(seen)?;
    let etcd = over_endpoints(run, seen, deployment)?;
    let name = |deployment: &ClusterDeployment| (deployment.name().to_owned(), deployment.uid().to_owned());
    let (cluster, cluster_uid) = deployment.map(name).unwrap_or_default();
    let directory = match (plane, &etcd) {
        (Some(plane), _) => format!("{OF_PLANES}/{}/{}", plane.name(), plane.uid()),
        (None, Some(etcd)) if cluster.is_empty() => {
            let mut endpoints: Vec<&str> = etcd.endpoints.iter().map(String::as_str).collect();
            endpoints.sort_unstable();
            format!("{WITHOUT_CLUSTER}/{}", short_hash(&endpoints, 8))
        }
        (None, _) => format!("{cluster}/{cluster_uid}"),
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
        karmada_deployment: plane.map(described),
        kubernetes_version: kubernetes_version(deployment, plane),
    }))
}

/// Whose run takes it: on whose machines the etcd is, or which cluster says how it is read; none: nobody's.
fn former(seen: &BackupSeen) -> Option<FormerRef<'_>> {
    let of_plane = || {
        let plane = seen.plane.as_ref().map(|plane| &plane.object);
        plane.filter(|plane| has_etcd_on_machines(plane)).map(|plane| FormerRef::plane(plane.name()))
    };
    seen.backup.spec.cluster_name.as_deref().map(FormerRef::cluster).or_else(of_plane)
}

/// The plane that is backed up, once it can be; none: it is none.
fn plane(seen: &BackupSeen) -> Result<Option<&KarmadaDeployment>, InputsProblem> {
    let Some(reference) = &seen.backup.spec.karmada_deployment_ref else {
        return Ok(None);
    };
    match &seen.plane {
        Some(plane) if !plane.has_keys => Err(InputsProblem::waits(Reason::PKIMissing, pki::missing(&plane.object))),
        Some(PlaneSeen { host_problem: Some(Problem { reason, message }), .. }) => {
            Err(InputsProblem::waits(*reason, message.clone()))
        }
        Some(plane) => Ok(Some(&plane.object)),
        None => {
            let message = format!("KarmadaDeployment {} is not there: make it, or delete this run", reference.name);
            Err(InputsProblem::waits(Reason::KarmadaDeploymentNotFound, message))
        }
    }
}

fn described(plane: &KarmadaDeployment) -> PlaneManifest {
    let version = plane.status.as_ref().and_then(|status| status.version.as_deref()?.parse().ok());
    PlaneManifest { name: plane.name().to_owned(), uid: plane.uid().to_owned(), version }
}

/// What the API servers of the cluster or of the plane run, if it is known.
fn kubernetes_version(
    deployment: Option<&ClusterDeployment>,
    plane: Option<&KarmadaDeployment>,
) -> Option<KubernetesVersion> {
    let of_cluster =
        deployment.and_then(|deployment| deployment.status.as_ref()?.kubernetes_version.as_deref()?.parse().ok());
    of_cluster.or_else(|| plane.and_then(backup_source::kubernetes_version))
}

/// The etcd that is read over its endpoints, once its Secret can be used; none: it is on the run's Hosts.
fn over_endpoints(
    run: &PlaybookRun,
    seen: &BackupSeen,
    deployment: Option<&ClusterDeployment>,
) -> Result<Option<EtcdInputs>, InputsProblem> {
    let etcd = etcd_without_machine(seen, deployment);
    if etcd.is_some() != run.spec.hosts.is_empty() {
        let message = match etcd {
            Some(_) => "hosts is not empty, and the etcd is on none of them: make an EtcdBackup, which makes its run",
            None => "hosts is empty, and the etcd is on machines: make an EtcdBackup, which makes its run",
        };
        return Err(InputsProblem::refused(Reason::InputsRefused, message.to_owned()));
    }
    let Some(etcd) = etcd else {
        return Ok(None);
    };
    if let Some(secret) = etcd.secret {
        etcd_client_values(secret, seen.etcd_client.as_ref())?;
    }
    Ok(Some(etcd.inputs))
}

/// An etcd that is on no machine of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdWithoutMachine<'a> {
    /// Its endpoints, and below which keys the data is.
    pub inputs: EtcdInputs,
    /// Name of the Secret by which it is read; none: a certificate is issued for the run.
    pub secret: Option<&'a str>,
}

/// The etcd of a backup that is read over its endpoints; none: it is on machines of its cluster, or of its plane.
pub fn etcd_without_machine<'a>(
    seen: &'a BackupSeen,
    deployment: Option<&'a ClusterDeployment>,
) -> Option<EtcdWithoutMachine<'a>> {
    if let Some(etcd) = &seen.backup.spec.etcd {
        let inputs = EtcdInputs { endpoints: etcd.endpoints.clone(), prefix: etcd.prefix.clone(), forwarded_in: None };
        return Some(EtcdWithoutMachine { inputs, secret: Some(&etcd.secret_ref.name) });
    }
    if let Some(PlaneSeen { object, .. }) = &seen.plane {
        if has_etcd_on_machines(object) {
            return None;
        }
        let prefix = Some(backup_source::etcd_prefix(object).to_owned());
        let forwarded_in = forwarding_host(object).map(|_| object.spec.host_namespace.clone());
        let inputs = EtcdInputs { endpoints: backup_source::etcd_endpoints(object), prefix, forwarded_in };
        let secret = object.spec.etcd.external.as_ref().map(|external| external.secret_ref.name.as_str());
        return Some(EtcdWithoutMachine { inputs, secret });
    }
    let etcd = &deployment?.spec.etcd;
    let prefix = Some(etcd.prefix().to_owned());
    let inputs = EtcdInputs { endpoints: etcd.endpoints.clone(), prefix, forwarded_in: None };
    let secret = etcd.secret_ref.as_ref().map(|secret| secret.name.as_str()).unwrap_or_default();
    (etcd.topology == EtcdTopology::External).then_some(EtcdWithoutMachine { inputs, secret: Some(secret) })
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
    use crds::{BackupStorage, ClusterDeployment, EtcdBackup, KarmadaDeployment, PlaybookRun};
    use serde_json::{Value, json};

    use super::super::artifacts::ArtifactsSeen;
    use super::super::etcd_client::tests::secret;
    use super::{BackupSeen, ClusterSeen, PlaneSeen, inputs};

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
        plane: Option<PlaneSeen>,
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
            let run = object("PlaybookRun", "run", spec);
            Self { backup: backup(of), run, deployment, plane: None, has_secret: true }
        }

        /// The plane k1, with these further fields of its spec.
        fn of_plane(more: Value) -> Self {
            let mut spec = json!({ "version": "1.18.2", "crds": { "bundle": { "url": "https://b.example" } } });
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let mut object: KarmadaDeployment = object("KarmadaDeployment", "k1", spec);
            let status = json!({ "version": "1.18.1", "components": [
                { "name": "etcd", "version": "3.6.6-0" }, { "name": "kube-apiserver", "version": "1.35.2" }] });
            object.status = serde_json::from_value(status).unwrap();
            let mut world = Self::new(json!({ "karmadaDeploymentRef": { "name": "k1" } }), &[], None);
            world.plane = Some(PlaneSeen { object, has_keys: true, host_problem: None });
            world
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
                plane: self.plane.clone(),
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
    fn a_plane_is_read_from_its_members_and_kept_in_a_place_of_its_own() {
        let local = json!({ "etcd": { "local": { "replicas": 3 } } });
        let world = World { has_secret: false, ..World::of_plane(local) };
        let inputs = world.inputs().unwrap();
        let etcd = inputs.etcd.unwrap();
        let first = "https://k1-etcd-0.k1-etcd-peers.karmada-system.svc.cluster.local:2379";
        assert_eq!((etcd.endpoints.len(), etcd.endpoints[0].as_str()), (3, first));
        assert_eq!((etcd.prefix.as_deref(), inputs.cluster.as_str()), (Some("/registry"), ""));
        assert_eq!(inputs.location, "_karmada/k1/uid-k1/20260301T120000Z-uid-run");
        let plane = inputs.karmada_deployment.unwrap();
        assert_eq!((plane.name.as_str(), plane.uid.as_str()), ("k1", "uid-k1"));
        assert_eq!(plane.version.map(|version| version.to_string()).as_deref(), Some("1.18.1"));
        assert_eq!(inputs.kubernetes_version.map(|version| version.to_string()).as_deref(), Some("1.35.2"));
        let external =
            json!({ "endpoints": ["https://10.0.0.5:2379"], "secretRef": { "name": "etcd" }, "prefix": "/k1" });
        let world = World::of_plane(json!({ "etcd": { "external": external } }));
        let etcd = world.inputs().unwrap().etcd.unwrap();
        assert_eq!((etcd.endpoints[0].as_str(), etcd.prefix.as_deref()), ("https://10.0.0.5:2379", Some("/k1")));
        let without = World { has_secret: false, ..world };
        assert!(without.inputs().unwrap_err().contains("Secret etcd"));
    }

    #[test]
    fn pods_of_another_cluster_are_read_over_ports_that_its_api_forwards_once_it_is_reached() {
        let remote = json!({ "hostClusterRef": { "name": "a" }, "hostNamespace": "planes" });
        let mut world = World { has_secret: false, ..World::of_plane(remote) };
        let etcd = world.inputs().unwrap().etcd.unwrap();
        assert_eq!(etcd.forwarded_in.as_deref(), Some("planes"));
        assert!(etcd.endpoints[0].starts_with("https://k1-etcd-0.k1-etcd-peers.planes.svc"), "{:?}", etcd.endpoints);
        let message = "Cluster a is not reached".to_owned();
        let problem = crate::addon::Problem { reason: crds::Reason::ClusterUnreachable, message };
        world.plane.as_mut().unwrap().host_problem = Some(problem);
        assert_eq!(world.inputs().unwrap_err(), "Cluster a is not reached");
        let here = World { has_secret: false, ..World::of_plane(json!({})) }.inputs().unwrap();
        assert_eq!(here.etcd.unwrap().forwarded_in, None);
    }

    #[test]
    fn a_plane_on_machines_is_read_there_by_a_run_of_its_own_and_kept_as_others_are() {
        let binary = json!({ "controlPlane": { "replicas": 1 }, "artifacts": { "url": "https://b.example" } });
        let on_machines = || {
            let mut world = World::of_plane(json!({ "mode": "Binary", "binary": binary }));
            world.run.spec.hosts = vec!["h1".to_owned()];
            world.run.spec.cluster_name = Some("k1".to_owned());
            world.run.spec.cluster_kind = crds::ClusterKind::KarmadaDeployment;
            World { has_secret: false, ..world }
        };
        let inputs = on_machines().inputs().unwrap();
        assert_eq!(inputs.location, "_karmada/k1/uid-k1/20260301T120000Z-uid-run");
        assert_eq!(inputs.etcd, None);
        // Whoever begins with it finds the same in the same place, whichever mode the plane had.
        let in_pods = World { has_secret: false, ..World::of_plane(json!({})) }.inputs().unwrap();
        assert_eq!(inputs, crds::backup::BackupInputs { etcd: None, ..in_pods });
        let refused = |change: fn(&mut World)| {
            let mut world = on_machines();
            change(&mut world);
            world.inputs().unwrap_err()
        };
        let foreign = refused(|world| world.run.spec.cluster_name = Some("k2".to_owned()));
        assert!(foreign.contains("is of KarmadaDeployment k1, and this run of KarmadaDeployment k2"), "{foreign}");
        let foreign = refused(|world| world.run.spec.cluster_kind = crds::ClusterKind::ClusterDeployment);
        assert!(foreign.contains("is of KarmadaDeployment k1, and this run of ClusterDeployment k1"), "{foreign}");
        let nowhere = refused(|world| world.run.spec.hosts.clear());
        assert!(nowhere.contains("hosts is empty, and the etcd is on machines"), "{nowhere}");
        assert!(refused(|world| world.plane.as_mut().unwrap().has_keys = false).starts_with("Secret k1-pki"));
    }

    #[test]
    fn a_plane_without_its_keys_is_not_backed_up_since_nobody_could_read_what_is_restored() {
        let mut world = World::of_plane(json!({}));
        world.plane.as_mut().unwrap().has_keys = false;
        assert!(world.inputs().unwrap_err().starts_with("Secret k1-pki"));
        world.plane = None;
        assert!(world.inputs().unwrap_err().contains("KarmadaDeployment k1 is not there"));
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
            "EtcdBackup nightly is of no cluster, and this run of ClusterDeployment paris",
        );
        check(World::new(json!({ "clusterName": "rome" }), &[], external()), "is of ClusterDeployment rome, and");
    }
}
