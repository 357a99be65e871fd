//! Health: what one Machine says of itself.

use crds::Conditions;
use crds::Machine;
use crds::ObjectExt;
use crds::Reason;
use crds::names::condition;
use crds::step::Role;
use jiff::Timestamp;

pub(super) fn is_same(one: &Machine, other: &Machine) -> bool {
    one.metadata.uid == other.metadata.uid
}

pub(super) fn is_leaving(machine: &Machine) -> bool {
    machine.is_deleting()
}

pub(super) fn provisioned_at(machine: &Machine) -> Option<Timestamp> {
    let status = machine.status.as_ref()?;
    status.provisioned_at.as_ref().map(|at| at.0)
}

pub(super) fn is_provisioned(machine: &Machine) -> bool {
    provisioned_at(machine).is_some()
}

/// Whether a machine of a cluster of Kubernetes is known to work: by its node, or, where there is none, by its member
/// of etcd, for all that is known.
pub(crate) fn is_healthy(machine: &Machine) -> bool {
    match machine.spec.role {
        Role::Etcd => is_well_without_node(machine),
        Role::ControlPlane | Role::Worker => machine.is_true(condition::NODE_READY),
    }
}

/// Whether a machine that is no Node works as a member of etcd, for all that is known. What else of a Karmada control
/// plane runs there is no matter of its member.
pub(super) fn is_well_without_node(machine: &Machine) -> bool {
    is_provisioned(machine) && !has_sick_member(machine)
}

/// Whether the machine's member of etcd is known not to work.
pub(crate) fn has_sick_member(machine: &Machine) -> bool {
    let healthy = machine.condition(condition::HEALTHY).filter(|healthy| healthy.status == "False");
    healthy.is_some_and(|healthy| !Reason::among(&healthy.reason, &[Reason::PartUnhealthy]))
}

/// The reason of `Deleting`, if it says that.
pub(super) fn deleting(machine: &Machine) -> &str {
    let there = machine.condition(condition::DELETING);
    there.map_or("", |there| there.reason.as_str())
}

/// Reasons of `Deleting` once the cluster has no part in the machine any more.
pub(super) const OUT: [Reason; 3] = [Reason::WaitingForReset, Reason::ReleasingHost, Reason::HostReleased];

/// Whether the reason of `Deleting` says that the cluster has no part in the machine any more.
pub fn is_out(reason: &str) -> bool {
    Reason::among(reason, &OUT)
}
