//! Runs that an object beside the ClusterDeployment asks for: of a backup, of a restore.

use std::collections::BTreeMap;

use crds::names::{annotation, label};
use crds::playbook_run::PlaybookRunSpec;
use crds::{ClusterDeployment, Machine, ObjectExt, PlaybookRun};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::lifecycle::is_provisioned;
use crate::naming;

/// The run of an owner, given with the reference to it, on machines of a cluster, after so many for the same purpose:
/// its name follows from them. An owner whose runs all have the same purpose has no word for it.
pub(crate) fn owned_run(
    owner: (&impl ObjectExt, Option<OwnerReference>),
    deployment: &ClusterDeployment,
    purpose: &str,
    tried: usize,
    spec: PlaybookRunSpec,
) -> PlaybookRun {
    let attempt = i32::try_from(tried).unwrap_or(i32::MAX);
    let intent = spec.intent;
    let (owner, reference) = owner;
    let of = [owner.uid(), purpose].into_iter().filter(|part| !part.is_empty());
    let name = naming::run(deployment.name(), deployment.uid(), intent, of, attempt);
    let mut run = PlaybookRun::new(&name, PlaybookRunSpec { cluster_name: Some(deployment.name().to_owned()), ..spec });
    run.metadata.namespace = Some(owner.namespace().to_owned());
    run.metadata.owner_references = reference.map(|owner| vec![owner]);
    run.metadata.labels = Some(BTreeMap::from([
        (label::CLUSTER.into(), deployment.name().to_owned()),
        (label::INTENT.into(), intent.spec().slug.into()),
    ]));
    run.metadata.annotations = Some(BTreeMap::from([(annotation::ATTEMPT.into(), attempt.to_string())]));
    run
}

/// The Hosts of machines that are part of their cluster and stay, in order.
pub(crate) fn hosts_of(machines: &[&Machine], is_one: impl Fn(&Machine) -> bool) -> Vec<String> {
    let stays = |machine: &&&Machine| is_provisioned(machine) && !machine.is_deleting() && is_one(machine);
    let hosts = machines.iter().filter(stays).filter_map(|machine| machine.spec.host_ref.as_ref());
    let mut hosts: Vec<String> = hosts.map(|host| host.name.clone()).collect();
    hosts.sort_unstable();
    hosts
}
