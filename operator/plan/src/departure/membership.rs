//! The control planes and etcd machines of one cluster: which of them is a member of etcd, and which is out.

use crds::step::{Role, Step};
use crds::{Machine, PlaybookRun};

use super::health::{deleting, is_healthy, is_leaving, is_provisioned, is_well_without_node};
use super::is_out;
use crate::formed_cluster::FormedCluster;
use crate::provisioning;

/// The control planes and etcd machines of one cluster, and what was done about them.
pub(crate) struct EtcdMembership<'a> {
    pub(super) cluster: FormedCluster<'a>,
    pub(super) machines: Vec<&'a Machine>,
    pub(super) runs: &'a [&'a PlaybookRun],
}

impl<'a> EtcdMembership<'a> {
    pub fn new(machines: &[&'a Machine], cluster: FormedCluster<'a>, runs: &'a [&'a PlaybookRun]) -> Self {
        let machines = machines
            .iter()
            .copied()
            .filter(|other| other.spec.former() == cluster.former() && other.spec.role != Role::Worker)
            .collect();
        Self { cluster, machines, runs }
    }

    /// The role whose machines carry etcd's members.
    pub fn etcd_role(&self) -> Option<Role> {
        self.cluster.etcd_role
    }

    /// Whether it is known to work, as [`is_healthy`] says it of a machine of a cluster of Kubernetes.
    pub fn is_healthy(&self, machine: &Machine) -> bool {
        match self.cluster.is_node(machine.spec.role) {
            true => is_healthy(machine),
            false => is_well_without_node(machine),
        }
    }

    pub fn is_of_etcd(&self, machine: &Machine) -> bool {
        Some(machine.spec.role) == self.etcd_role()
    }

    /// Machines whose members etcd counts: those that leave, too, until they have been taken out.
    pub fn members(&self) -> Vec<&'a Machine> {
        let machines = self.machines.iter().copied();
        let counted =
            |machine: &&Machine| self.is_of_etcd(machine) && is_provisioned(machine) && self.left_at(machine).is_none();
        machines.filter(counted).collect()
    }

    /// Whether a machine that is being deleted is in nobody's way any more.
    pub fn is_out(&self, machine: &Machine) -> bool {
        let out = if self.is_of_etcd(machine) {
            self.has_left(machine)
        } else {
            is_out(deleting(machine)) || self.is_being_cleaned(machine)
        };
        is_leaving(machine) && (out || !provisioning::was_touched(machine, self.runs))
    }

    /// Whether a run was made to clean it since it is being deleted: everything else is done before.
    fn is_being_cleaned(&self, machine: &Machine) -> bool {
        let host = machine.spec.host_ref.as_ref().map(|host| &host.name);
        self.runs.iter().any(|run| {
            run.spec.steps.contains(&Step::Reset)
                && run.metadata.creation_timestamp >= machine.metadata.deletion_timestamp
                && host.is_some_and(|host| run.spec.hosts.contains(host))
        })
    }

    /// Machines that are being deleted and not out yet.
    pub fn leaving(&self) -> impl Iterator<Item = &'a Machine> {
        let machines = self.machines.iter().copied();
        machines.filter(|machine| is_leaving(machine) && !self.is_out(machine))
    }
}
