//! Runs that an object beside the one that forms the cluster asks for: of a backup, of a restore.

use std::collections::BTreeMap;

use crds::names::{annotation, label};
use crds::playbook_run::PlaybookRunSpec;
use crds::{Machine, ObjectExt, PlaybookRun};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::formed_cluster::FormedCluster;
use crate::lifecycle::is_provisioned;
use crate::naming;

/// Of an owner's name in those of its runs, which are of no cluster: as long as a cluster's may be.
const NAME: usize = 32;

/// The run of an owner, given with the reference to it, on machines of a cluster of whatever kind if there is one,
/// after so many for the same purpose: its name follows from them. An owner whose runs all have the same purpose has no
/// word for it.
pub(crate) fn owned_run(
    owner: (&impl ObjectExt, Option<OwnerReference>),
    cluster: Option<FormedCluster<'_>>,
    purpose: &str,
    tried: usize,
    spec: PlaybookRunSpec,
) -> PlaybookRun {
    let attempt = i32::try_from(tried).unwrap_or(i32::MAX);
    let intent = spec.intent;
    let (owner, reference) = owner;
    let of = [owner.uid(), purpose].into_iter().filter(|part| !part.is_empty());
    let cluster_name = cluster.map(|cluster| cluster.name.to_owned());
    let cluster_kind = cluster.map(|cluster| cluster.kind).unwrap_or_default();
    let own: String = owner.name().chars().take(NAME).collect();
    let (first, uid) = match cluster {
        Some(cluster) => (cluster.name, cluster.uid),
        None => (own.trim_end_matches('-'), owner.uid()),
    };
    let name = naming::run(first, uid, intent, of, attempt);
    let labels = [
        cluster_name.clone().map(|name| (label::CLUSTER.into(), name)),
        Some((label::INTENT.into(), intent.spec().slug.into())),
    ];
    let mut run = PlaybookRun::new(&name, PlaybookRunSpec { cluster_name, cluster_kind, ..spec });
    run.metadata.namespace = Some(owner.namespace().to_owned());
    run.metadata.owner_references = reference.map(|owner| vec![owner]);
    run.metadata.labels = Some(labels.into_iter().flatten().collect());
    run.metadata.annotations = Some(BTreeMap::from([(annotation::ATTEMPT.into(), attempt.to_string())]));
    run
}

/// The next run of an owner after so many: one whose name nobody else has. A run that lost its owner keeps its name.
pub(crate) fn unclaimed(runs: &[&PlaybookRun], tried: usize, make: impl Fn(usize) -> PlaybookRun) -> Box<PlaybookRun> {
    let is_free = |run: &PlaybookRun| !runs.iter().any(|there| there.name() == run.name());
    let mut next = (tried..=tried + runs.len()).map(&make);
    Box::new(next.find(is_free).unwrap_or_else(|| make(tried)))
}

/// Machines that are part of their cluster and stay.
pub(crate) fn those_that_stay<'a>(
    machines: &[&'a Machine],
    is_one: impl Fn(&Machine) -> bool,
) -> impl Iterator<Item = &'a Machine> {
    let stays = move |machine: &&Machine| is_provisioned(machine) && !machine.is_deleting() && is_one(machine);
    machines.iter().copied().filter(stays)
}

/// The Hosts of machines that are part of their cluster and stay, in order.
pub(crate) fn hosts_of(machines: &[&Machine], is_one: impl Fn(&Machine) -> bool) -> Vec<String> {
    let hosts = those_that_stay(machines, is_one).filter_map(|machine| machine.spec.host_ref.as_ref());
    let mut hosts: Vec<String> = hosts.map(|host| host.name.clone()).collect();
    hosts.sort_unstable();
    hosts
}

#[cfg(test)]
mod tests {
    use crds::playbook_run::PlaybookRunSpec;
    use crds::step::{Intent, Step};
    use crds::{ClusterDeployment, EtcdBackup, FormerRef, KarmadaDeployment, ObjectExt};
    use serde_json::{Value, json};

    use super::owned_run;

    fn object<K: serde::de::DeserializeOwned>(kind: &str, name: &str, spec: Value) -> K {
        let metadata = json!({ "name": name, "namespace": "fleet", "uid": format!("uid-{name}") });
        let api_version = "clusterwright.dev/v1alpha1";
        serde_json::from_value(json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec }))
            .unwrap()
    }

    /// An operator of the next version has to find the runs of the one before under their names.
    #[test]
    fn the_runs_of_a_backup_or_a_restore_have_the_names_that_earlier_versions_gave_them_row_33() {
        let spec = json!({ "storageRef": { "name": "s" }, "encryption": { "recipients": ["age1x"] } });
        let owner: EtcdBackup = object("EtcdBackup", "nightly", spec);
        let spec = json!({ "kubernetesVersion": "1.35.4", "controlPlane": { "replicas": 1 } });
        let cluster: ClusterDeployment = object("ClusterDeployment", "paris", spec);
        let check = |cluster: Option<&ClusterDeployment>, intent, purpose: &str, tried: usize, expected: &str| {
            let spec = PlaybookRunSpec::new(intent, vec![Step::BackupEtcd], Vec::new());
            let cluster = cluster.map(Into::into);
            assert_eq!(owned_run((&owner, None), cluster, purpose, tried, spec).name(), expected);
        };
        check(Some(&cluster), Intent::Backup, "", 0, "paris-backup-rj71de-0");
        check(None, Intent::Backup, "", 2, "nightly-backup-wq09hv-2");
        check(Some(&cluster), Intent::Stage, "", 0, "paris-stage-xfamns-0");
        check(Some(&cluster), Intent::Restore, "restore", 1, "paris-restore-qmvd1r-1");
        check(Some(&cluster), Intent::Restore, "undo", 0, "paris-restore-npb2gb-0");
        check(Some(&cluster), Intent::Restore, "restart", 0, "paris-restore-3pxvjd-0");
        check(Some(&cluster), Intent::Restore, "remove", 0, "paris-restore-egwp63-0");
    }

    #[test]
    fn a_run_on_machines_of_a_plane_is_not_taken_for_one_of_a_cluster_of_its_name() {
        let spec = json!({ "storageRef": { "name": "s" }, "encryption": { "recipients": ["age1x"] } });
        let owner: EtcdBackup = object("EtcdBackup", "nightly", spec);
        let binary =
            json!({ "controlPlane": { "replicas": 1 }, "artifacts": { "url": "https://artifacts.example.com" } });
        let bundle = json!({ "bundle": { "url": "https://artifacts.example.com" } });
        let spec = json!({ "version": "1.18.2", "mode": "Binary", "binary": binary, "crds": bundle });
        let plane: KarmadaDeployment = object("KarmadaDeployment", "paris", spec);
        let spec = PlaybookRunSpec::new(Intent::Backup, vec![Step::BackupEtcd], Vec::new());
        let run = owned_run((&owner, None), Some((&plane).into()), "", 0, spec);
        assert_eq!((run.name(), run.spec.former()), ("paris-backup-rj71de-0", Some(FormerRef::plane("paris"))));
    }
}
