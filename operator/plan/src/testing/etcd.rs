//! etcd of a cluster: who is a member and decides, and what follows for the cluster's API.

use crds::playbook_run::EtcdSeen;
use crds::step::Role;

use super::cluster::SimulatedCluster;
use super::world::World;

impl World {
    /// Whether a majority of etcd's members is alive.
    pub fn has_quorum(&self) -> bool {
        self.decides(self)
    }

    /// Whether etcd of the cluster, if it has any, decides.
    pub(super) fn decides(&self, cluster: &SimulatedCluster) -> bool {
        cluster.voters.is_empty() || self.decides_without(cluster, "")
    }

    /// Whether it decides once this member is out.
    pub(super) fn decides_without(&self, cluster: &SimulatedCluster, leaves: &str) -> bool {
        let stay = cluster.voters.iter().filter(|host| *host != leaves);
        let alive = stay.clone().filter(|host| self.votes(host)).count();
        alive > stay.count() / 2
    }

    pub(super) fn votes(&self, host: &str) -> bool {
        !self.is_dead(host) && self.etcd_data.contains(host)
    }

    /// Whether the cluster's API answers its own machines.
    pub(super) fn serves(&self, cluster: &SimulatedCluster) -> bool {
        let works = |host: &String| !self.is_dead(host) && self.kubelets.contains_key(host);
        cluster.serves && self.decides(cluster) && cluster.api_servers.iter().any(works)
    }

    /// Whether it answers the operator.
    pub(super) fn answers(&self, cluster: &SimulatedCluster) -> bool {
        self.serves(cluster) && !cluster.api_lost && !cluster.cut
    }

    /// What a machine of a dedicated etcd says of its member and of the others; none: SSH does not reach it, or it has
    /// none.
    pub(super) fn etcd_seen(&self, host: &str) -> Option<EtcdSeen> {
        let machine = self.machine_on(host).filter(|machine| machine.spec.role == Role::Etcd)?;
        if self.silent.contains(host) {
            return None;
        }
        let voters = &self.find_cluster(&machine.spec.cluster_name)?.voters;
        let is_up = |host: &String| !self.silent_nodes.contains(host);
        let up = voters.iter().filter(|host| is_up(host)).count();
        let (well_peers, sick_peers): (Vec<String>, Vec<String>) =
            voters.iter().filter(|peer| *peer != host).cloned().partition(is_up);
        let member = voters.iter().position(|voter| voter == host);
        Some(EtcdSeen {
            member_id: member.map(|index| format!("{index:x}")),
            well: Some(member.is_some() && is_up(&host.to_owned()) && up > voters.len() / 2),
            message: None,
            well_peers,
            sick_peers,
        })
    }
}
