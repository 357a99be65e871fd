//! The object that forms a cluster out of machines, as far as others decide by it who make its Machines, claim Hosts
//! for them, write to its Nodes, and take its control planes and members of etcd away.

use crds::cluster_deployment::ForgottenMachine;
use crds::step::Role;
use crds::{ClusterDeployment, ClusterKind, FormerRef};
use jiff::Timestamp;

use crate::attempts::HasTerms;

/// What is known of it.
#[derive(Clone, Copy, Debug)]
pub struct FormedCluster<'a> {
    /// Its kind.
    pub kind: ClusterKind,
    /// Its name, which is that of the cluster.
    pub name: &'a str,
    /// Its UID, by which its machines know it. Empty: the API server has not given it one.
    pub uid: &'a str,
    /// When it was made: a machine that was part of a cluster before then was part of another one.
    pub created_at: Option<Timestamp>,
    /// Whether nothing new is begun in it now.
    pub is_paused: bool,
    /// Whether it is being deleted: nothing of it has to go on working.
    pub is_deleting: bool,
    /// Whether its machines are left running as they are when it is deleted.
    pub detaches: bool,
    /// Whether it stands.
    pub is_installed: bool,
    /// When its machines were last compared with the metadata cluster.
    pub compared_since: Option<Timestamp>,
    /// Whether its machines contradict the metadata cluster.
    pub is_contradicted: bool,
    /// Whether its control planes and workers are Nodes of it, which are drained and deleted before a machine goes.
    /// Machines of a dedicated etcd never are.
    pub has_nodes: bool,
    /// The role whose machines carry etcd's members; none: etcd is none of its own.
    pub etcd_role: Option<Role>,
    /// Control planes that are wanted.
    pub control_planes: i32,
    /// Machines of a dedicated etcd that are wanted; 0 where there is none.
    pub etcd_machines: i32,
    /// Machines that were removed without reaching them.
    pub forgotten: &'a [ForgottenMachine],
    /// How long Pods may take to move away from a machine that leaves, in seconds; 0: they are not moved.
    pub drain_timeout_seconds: i32,
    /// After how many seconds a machine that leaves and does not answer is forgotten; none: never by itself.
    pub force_remove_after_seconds: Option<i32>,
    /// Why no healthy machine is taken away now; none: it may be.
    pub removals_held: Option<&'a str>,
    /// On what terms its machines are provisioned.
    pub terms: &'a dyn HasTerms,
    /// Itself, where it is a cluster of Kubernetes: its hooks, its settings, and what it does about sick machines.
    pub deployment: Option<&'a ClusterDeployment>,
}

/// Why nothing is begun with the machines of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standstill {
    /// Nothing forms it.
    NotThere,
    /// It is being deleted.
    Deleting,
    /// It is paused.
    Paused,
    /// The metadata cluster may be older than the machines.
    NotBelieved,
}

impl<'a> FormedCluster<'a> {
    /// By which its Machines, sets and runs name it.
    pub fn former(&self) -> FormerRef<'a> {
        FormerRef { kind: self.kind, name: self.name }
    }

    /// Whether a machine of this role is a Node of it.
    pub fn is_node(&self, role: Role) -> bool {
        self.has_nodes && role != Role::Etcd
    }

    /// Whether its machines were compared with the metadata cluster since an operator took that up again, and nothing
    /// contradicts it.
    pub fn is_believed(&self, resumed_at: Option<Timestamp>) -> bool {
        let is_compared = |resumed_at| self.compared_since.is_some_and(|compared| compared >= resumed_at);
        resumed_at.is_none_or(is_compared) && !self.is_contradicted
    }
}

/// Whether a machine of this role is, or becomes, a Node of a cluster of this kind, whatever is there of that.
pub(crate) fn is_node(kind: ClusterKind, role: Role, cluster: Option<FormedCluster<'_>>) -> bool {
    let usually = kind == ClusterKind::ClusterDeployment && role != Role::Etcd;
    cluster.map_or(usually, |cluster| cluster.is_node(role))
}

/// Why nothing is begun with the machines of a cluster that this forms, if anything does.
pub fn standstill(cluster: Option<FormedCluster<'_>>, resumed_at: Option<Timestamp>) -> Option<Standstill> {
    match cluster {
        None => Some(Standstill::NotThere),
        Some(cluster) if cluster.is_deleting => Some(Standstill::Deleting),
        Some(cluster) if cluster.is_paused => Some(Standstill::Paused),
        Some(cluster) if !cluster.is_believed(resumed_at) => Some(Standstill::NotBelieved),
        Some(_) => None,
    }
}

#[cfg(test)]
pub(crate) mod fixtures {
    use crds::ClusterKind;
    use crds::step::Role;

    use super::FormedCluster;
    use crate::attempts::{HasTerms, Terms};

    /// Three attempts at what never changes.
    #[derive(Debug)]
    struct Constant;

    impl HasTerms for Constant {
        fn terms(&self) -> Terms {
            Terms { wanted: "d1".into(), most: 3, retry: None }
        }
    }

    /// A cluster of three stacked control planes that stands, and that no ClusterDeployment forms.
    pub(crate) const PLANE: FormedCluster<'static> = FormedCluster {
        kind: ClusterKind::ClusterDeployment,
        name: "plane",
        uid: "plane-uid",
        created_at: None,
        is_paused: false,
        is_deleting: false,
        detaches: false,
        is_installed: true,
        compared_since: None,
        is_contradicted: false,
        has_nodes: true,
        etcd_role: Some(Role::ControlPlane),
        control_planes: 3,
        etcd_machines: 0,
        forgotten: &[],
        drain_timeout_seconds: 600,
        force_remove_after_seconds: None,
        removals_held: None,
        terms: &Constant,
        deployment: None,
    };
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::fixtures::PLANE;
    use super::{FormedCluster, Standstill, standstill};

    #[test]
    fn the_first_of_several_reasons_to_stand_still_is_given() {
        let check = |cluster: Option<FormedCluster<'_>>, expected| assert_eq!(standstill(cluster, None), expected);
        let (deleting, paused) =
            (FormedCluster { is_deleting: true, ..PLANE }, FormedCluster { is_paused: true, ..PLANE });
        check(Some(PLANE), None);
        check(None, Some(Standstill::NotThere));
        check(Some(paused), Some(Standstill::Paused));
        check(Some(FormedCluster { is_paused: true, ..deleting }), Some(Standstill::Deleting));
        check(Some(FormedCluster { is_contradicted: true, ..PLANE }), Some(Standstill::NotBelieved));
        check(Some(FormedCluster { is_contradicted: true, ..paused }), Some(Standstill::Paused));
    }

    #[test]
    fn what_was_compared_before_the_store_was_taken_up_again_is_not_believed() {
        let at = |seconds| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        let compared = FormedCluster { compared_since: Some(at(10)), ..PLANE };
        assert!(compared.is_believed(None) && compared.is_believed(Some(at(10))));
        assert!(!compared.is_believed(Some(at(11))) && !PLANE.is_believed(Some(at(0))));
        assert!(!FormedCluster { is_contradicted: true, ..compared }.is_believed(None));
    }
}
