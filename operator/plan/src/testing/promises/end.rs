//! What must be so once everything is well and nothing changes any more.

use crds::step::Role;

use super::super::cluster::SimulatedCluster;
use super::super::world::World;
use crate::claims::why_not;
use crate::machine_request::is_requested;

impl World {
    /// Every cluster is as specified, as far as the Hosts suffice.
    pub fn check_end(&self) {
        self.check_node_metadata();
        self.check_drained();
        self.check_versions();
        let lacks: usize = self.clusters.iter().map(|cluster| self.check_end_of(cluster)).sum();
        let free = self.free();
        assert!(lacks == 0 || free == 0, "{lacks} nodes are missing, and {free} Hosts are free\n{}", self.report());
    }

    /// Returns how many Nodes the cluster lacks.
    fn check_end_of(&self, cluster: &SimulatedCluster) -> usize {
        let (name, spec) = (cluster.name(), &cluster.deployment.spec);
        let workers: i32 = spec.workers.iter().filter_map(|set| set.replicas).sum();
        let requested = self.machines_of(name).into_iter().filter(|machine| is_requested(machine)).count();
        let count = |replicas: i32| usize::try_from(replicas).unwrap_or_default();
        let (wanted, control_planes) =
            (count(spec.control_plane.replicas + workers) + requested, count(spec.control_plane.replicas));
        let (ready, nodes, members) = (self.ready_nodes(name), cluster.nodes.len(), cluster.voters.len());
        assert!(
            ready <= wanted && nodes == ready,
            "cluster {name} has {ready} Ready of {nodes} nodes and wants {wanted}\n{}",
            self.report()
        );
        assert!(
            members == control_planes || (self.free() == 0 && members < control_planes),
            "{members} members of etcd of {name}, {control_planes} are wanted\n{}",
            self.report()
        );
        for host in &cluster.voters {
            let stands = self.role_of(host) == Some(Role::ControlPlane);
            assert!(stands, "{host} is a member of etcd, and nobody's\n{}", self.report());
        }
        let forgotten = cluster.status().map(|status| status.forgotten.as_slice()).unwrap_or_default();
        assert!(forgotten.is_empty(), "{name} still remembers {forgotten:?}\n{}", self.report());
        wanted - ready
    }

    /// How many Hosts may be claimed.
    fn free(&self) -> usize {
        self.hosts.iter().filter(|host| why_not(host).is_none()).count()
    }
}
