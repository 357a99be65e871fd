//! What is written to a cluster's own API.

use super::super::world::World;
use crate::cluster::Action;

impl World {
    /// Returns whether anything has changed that anybody looks at.
    pub(in super::super) fn apply_to_nodes(&mut self, cluster: &str, action: Action) -> bool {
        match action {
            // Nobody looks at whom a machine asks.
            Action::PatchNode { .. } => false,
            action @ (Action::AddFinalizer | Action::RemoveFinalizer) => {
                panic!("no plane was shown, so {action:?} is for nothing")
            }
            action @ (Action::SpreadDns { .. } | Action::MoveDnsPod { .. }) => {
                panic!("no DNS was shown, so {action:?} is for nothing")
            }
            Action::CordonOrphan(orphan) => self.cluster_mut(cluster).cordoned.insert(orphan.name),
            Action::DeleteOrphan(orphan) => {
                self.check_orphan(cluster, &orphan.name);
                self.check_node_may_go(cluster, &orphan.name);
                self.delete_node(cluster, &orphan.name)
            }
        }
    }

    /// Through the cluster's API; returns whether there was such a Node.
    pub(super) fn delete_node(&mut self, cluster: &str, node: &str) -> bool {
        if self.find_cluster(cluster).is_none_or(|cluster| !self.answers(cluster)) {
            return false;
        }
        let cluster = self.cluster_mut(cluster);
        cluster.cordoned.remove(node);
        cluster.node_metadata.remove(node);
        cluster.deleted_nodes.push(node.to_owned());
        cluster.nodes.remove(node)
    }
}
