//! Quorum: whether the cluster can do without a control plane or etcd machine now.

use crds::Machine;
use crds::cluster_deployment::ForgottenMachine;
use crds::step::Role;

use super::EtcdMembership;
use super::health::{is_provisioned, is_same};
use crate::message;

/// With fewer left, a cluster that wants more keeps a machine that is well until another one has come.
const FEW: usize = 2;

impl EtcdMembership<'_> {
    /// Whether it stays until another one has come: it is well, and the cluster cannot do without it.
    pub fn is_kept(&self, machine: &Machine) -> bool {
        self.is_healthy(machine) && self.cannot_do_without(machine).is_some()
    }

    /// Why the cluster cannot do without it now.
    pub fn cannot_do_without(&self, machine: &Machine) -> Option<String> {
        let of_etcd = self.is_of_etcd(machine);
        let counted = |other: &&&Machine| {
            other.spec.role == machine.spec.role
                && is_provisioned(other)
                && match of_etcd {
                    true => self.left_at(other).is_none(),
                    false => !self.is_out(other),
                }
        };
        let peers: Vec<&Machine> = self.machines.iter().filter(counted).copied().collect();
        let others: Vec<&Machine> = peers.iter().filter(|other| !is_same(other, machine)).copied().collect();
        let well = |machines: &[&Machine]| machines.iter().filter(|other| self.is_healthy(other)).count();
        let role = machine.spec.role.name();
        if others.is_empty() {
            return Some(format!(
                "QuorumRisk: it is the only {role} machine of the cluster: it stays until another one has joined, or the cluster is deleted"
            ));
        }
        if others.len() < FEW && self.wants(machine.spec.role) > FEW && self.is_healthy(machine) {
            return Some(format!(
                "QuorumRisk: without it the cluster has {}: it stays until another one has joined",
                message::count(others.len(), &format!("{role} machine"))
            ));
        }
        if !of_etcd {
            return (well(&others) == 0)
                .then(|| "QuorumRisk: no other control plane is known to be well: it stays until one is".to_owned());
        }
        let gone = self.forgotten_members();
        let now = self.quorum_risk(&peers, &gone, "now");
        now.or_else(|| self.quorum_risk(&others, &gone, "without it"))
    }

    /// Why these members, machines and forgotten ones, would not decide anything.
    pub(super) fn quorum_risk(&self, machines: &[&Machine], gone: &[&ForgottenMachine], when: &str) -> Option<String> {
        let well = machines.iter().filter(|machine| self.is_healthy(machine)).count();
        let well = well + gone.iter().filter(|one| self.was_healthy(one)).count();
        let members = machines.len() + gone.len();
        let needed = members / 2 + 1;
        (well < needed).then(|| {
            format!(
                "QuorumRisk: {when} etcd has {} of which {well} are known to be well, and needs {needed}: it stays until more are",
                message::count(members, "member")
            )
        })
    }

    fn wants(&self, role: Role) -> usize {
        let replicas = match role {
            Role::Etcd => self.cluster.etcd_machines,
            Role::ControlPlane | Role::Worker => self.cluster.control_planes,
        };
        usize::try_from(replicas).unwrap_or_default()
    }
}
