//! The MachineSets of the state, and how many machines they want.

use crds::step::Role;
use crds::{FormerRef, MachineSet, ObjectExt, names};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{ClusterMachine, ClusterState};
use crate::claims;
use crate::machine_request::is_requested;

impl<'a> ClusterState<'a> {
    pub fn owns(&self, child: &ObjectMeta) -> bool {
        self.owner.owns(child)
    }

    /// The MachineSets of the cluster, also a platform's.
    pub fn sets(&self) -> impl Iterator<Item = &'a MachineSet> + '_ {
        self.observed.sets.iter().copied().filter(|set| set.spec.former() == FormerRef::cluster(&self.name))
    }

    pub fn set(&self, name: &str) -> Option<&'a MachineSet> {
        self.observed.sets.iter().copied().find(|set| set.metadata.name.as_deref() == Some(name))
    }

    /// MachineSets that have a name that this cluster needs, and are not its.
    pub fn foreign_sets(&self) -> impl Iterator<Item = &'a MachineSet> + '_ {
        self.deployment
            .set_names()
            .into_iter()
            .filter_map(|name| self.set(&name))
            .filter(|set| !self.owns(&set.metadata))
    }

    /// Workers wanted, over all sets; and those of MachineRequests that have a Host: one that waits for one is the
    /// request's to tell of.
    pub fn workers_wanted(&self) -> i32 {
        let spec = &self.deployment.spec;
        let ours = spec.workers.iter().map(|workers| {
            let set = self.set(&names::worker_set(&self.name, &workers.name));
            workers.replicas.or(set.map(|set| set.spec.replicas)).unwrap_or_default()
        });
        let platform = self.sets().filter(|set| set.spec.role == Role::Worker && !self.owns(&set.metadata));
        let requested = self.requested().filter(|worker| worker.host.is_some()).count();
        let wanted: i32 = ours.chain(platform.map(|set| set.spec.replicas)).sum();
        wanted.saturating_add(i32::try_from(requested).unwrap_or(i32::MAX))
    }

    /// The workers that count for the cluster: all but those of MachineRequests that have no Host yet.
    pub fn workers(&self) -> impl Iterator<Item = ClusterMachine<'a>> + '_ {
        let counts = |worker: &ClusterMachine<'_>| worker.host.is_some() || !is_requested(worker.machine);
        self.of_role(Role::Worker).filter(counts)
    }

    /// The workers that were made for MachineRequests.
    fn requested(&self) -> impl Iterator<Item = ClusterMachine<'a>> + '_ {
        self.of_role(Role::Worker).filter(|worker| is_requested(worker.machine))
    }

    /// How many machines of a set are to serve, whatever is done to it: its `replicas`, and those that were requested
    /// beside them and have joined.
    pub fn capacity(&self, set: &MachineSet) -> usize {
        let of_set = |worker: &ClusterMachine<'_>| claims::set_of(worker.machine) == Some(set.name());
        let requested = self.requested().filter(|worker| worker.is_provisioned() && of_set(worker)).count();
        usize::try_from(set.spec.replicas).unwrap_or_default() + requested
    }

    pub fn nodes_wanted(&self) -> u64 {
        let wanted = self.deployment.spec.control_plane.replicas.saturating_add(self.workers_wanted());
        u64::try_from(wanted).unwrap_or_default()
    }
}
