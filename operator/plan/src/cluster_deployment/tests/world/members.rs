//! What the machines of a dedicated etcd say when they are asked.

use crds::playbook_run::EtcdSeen;
use crds::step::Role;

use super::World;

impl World {
    /// What a machine says of its member and of the others; none: SSH does not reach it, or it has none.
    pub(super) fn etcd_seen(&self, host: &str) -> Option<EtcdSeen> {
        if self.silent.contains(host) || self.role_of(host) != Some(Role::Etcd) {
            return None;
        }
        let is_up = |host: &String| !self.silent_nodes.contains(host);
        let up = self.voters.iter().filter(|host| is_up(host)).count();
        let (well_peers, sick_peers): (Vec<String>, Vec<String>) =
            self.voters.iter().filter(|peer| *peer != host).cloned().partition(is_up);
        let member = self.voters.iter().position(|voter| voter == host);
        Some(EtcdSeen {
            member_id: member.map(|index| format!("{index:x}")),
            well: Some(member.is_some() && is_up(&host.to_owned()) && up > self.voters.len() / 2),
            message: None,
            well_peers,
            sick_peers,
        })
    }

    /// What was written of repairs is gone, as from a backup without it.
    pub fn lose_repairs(&mut self) {
        if let Some(status) = &mut self.deployment.status {
            status.repairs.clear();
            status.repair_approval = None;
        }
    }
}
