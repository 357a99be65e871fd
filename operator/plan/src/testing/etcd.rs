//! etcd of a cluster: who is a member and decides, and what follows for the cluster's API.

use crds::playbook_run::{EtcdHashSeen, EtcdMemberHash, EtcdSeen};
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

    /// What a machine says of its member of etcd and of the others; none: SSH does not reach it, or it has none.
    pub(super) fn etcd_seen(&self, host: &str, compares: bool) -> Option<EtcdSeen> {
        let machine = self.machine_on(host).filter(|machine| machine.spec.role != Role::Worker)?;
        let cluster = self.find_cluster(&machine.spec.cluster_name)?;
        if self.silent.contains(host) || cluster.deployment.spec.etcd.topology.role() != Some(machine.spec.role) {
            return None;
        }
        let voters = &cluster.voters;
        let is_up = |host: &String| !self.silent_nodes.contains(host);
        let up = voters.iter().filter(|host| is_up(host)).count();
        let (well_peers, sick_peers): (Vec<String>, Vec<String>) =
            voters.iter().filter(|peer| *peer != host).cloned().partition(is_up);
        let member = voters.iter().position(|voter| voter == host);
        let (data, leads) =
            (&cluster.data, voters.iter().find(|voter| is_up(voter)).is_some_and(|first| first == host));
        let hash = |host: &String| EtcdMemberHash { host: host.clone(), hash: i64::from(data.differ.contains(host)) };
        let hashes = || EtcdHashSeen {
            revision: Some(7),
            members: voters.iter().map(hash).collect(),
            ..EtcdHashSeen::default()
        };
        Some(EtcdSeen {
            version: Some(data.version.clone()),
            size_bytes: Some(data.size),
            in_use_bytes: Some(data.in_use),
            quota_bytes: Some(data.quota),
            is_leader: Some(leads),
            alarms: data.is_full.then(|| "NOSPACE".to_owned()).into_iter().collect(),
            hash_check: (leads && compares).then(hashes),
            member_id: member.map(|index| format!("{index:x}")),
            well: Some(member.is_some() && is_up(&host.to_owned()) && up > voters.len() / 2),
            message: None,
            well_peers,
            sick_peers,
            ..EtcdSeen::default()
        })
    }
}
