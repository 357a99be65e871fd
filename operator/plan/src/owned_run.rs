//! Runs that an object beside the ClusterDeployment asks for: of a backup, of a restore.

use std::collections::BTreeMap;

use crds::names::{annotation, label};
use crds::playbook_run::PlaybookRunSpec;
use crds::{ClusterDeployment, Machine, ObjectExt, PlaybookRun};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::lifecycle::is_provisioned;
use crate::naming;

/// Of an owner's name in those of its runs, which are of no cluster: as long as a cluster's may be.
const NAME: usize = 32;

/// The run of an owner, given with the reference to it, on machines of a cluster if there is one, after so many for the
/// same purpose: its name follows from them. An owner whose runs all have the same purpose has no word for it.
pub(crate) fn owned_run(
    owner: (&impl ObjectExt, Option<OwnerReference>),
    deployment: Option<&ClusterDeployment>,
    purpose: &str,
    tried: usize,
    spec: PlaybookRunSpec,
) -> PlaybookRun {
    let attempt = i32::try_from(tried).unwrap_or(i32::MAX);
    let intent = spec.intent;
    let (owner, reference) = owner;
    let of = [owner.uid(), purpose].into_iter().filter(|part| !part.is_empty());
    let cluster_name = deployment.map(|deployment| deployment.name().to_owned());
    let own: String = owner.name().chars().take(NAME).collect();
    let (first, uid) = match deployment {
        Some(deployment) => (deployment.name(), deployment.uid()),
        None => (own.trim_end_matches('-'), owner.uid()),
    };
    let name = naming::run(first, uid, intent, of, attempt);
    let labels = [
        cluster_name.clone().map(|name| (label::CLUSTER.into(), name)),
        Some((label::INTENT.into(), intent.spec().slug.into())),
    ];
    let mut run = PlaybookRun::new(&name, PlaybookRunSpec { cluster_name, ..spec });
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
