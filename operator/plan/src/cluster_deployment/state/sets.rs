//! The MachineSets of the state, and how many machines they want.

use crds::step::Role;
use crds::{MachineSet, names};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::ClusterState;

impl<'a> ClusterState<'a> {
    pub fn owns(&self, child: &ObjectMeta) -> bool {
        let owners = child.owner_references.as_deref().unwrap_or_default();
        owners.iter().any(|owner| owner.uid == self.uid())
    }

    /// The MachineSets of the cluster, also a platform's.
    pub fn sets(&self) -> impl Iterator<Item = &'a MachineSet> + '_ {
        self.observed.sets.iter().copied().filter(|set| set.spec.cluster_name == self.name)
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

    /// Workers wanted, over all sets.
    pub fn workers_wanted(&self) -> i32 {
        let spec = &self.deployment.spec;
        let ours = spec.workers.iter().map(|workers| {
            let set = self.set(&names::worker_set(&self.name, &workers.name));
            workers.replicas.or(set.map(|set| set.spec.replicas)).unwrap_or_default()
        });
        let platform = self.sets().filter(|set| set.spec.role == Role::Worker && !self.owns(&set.metadata));
        ours.chain(platform.map(|set| set.spec.replicas)).sum()
    }

    pub fn nodes_wanted(&self) -> u64 {
        let wanted = self.deployment.spec.control_plane.replicas.saturating_add(self.workers_wanted());
        u64::try_from(wanted).unwrap_or_default()
    }
}
