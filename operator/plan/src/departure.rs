//! Departure: whether a control plane or etcd machine of a cluster that goes on may leave it now. One at a time, never
//! below a majority of etcd's members, and none while another is joining.

mod forgotten;
mod health;
mod history;
mod membership;
mod ordering;
mod quorum;

use crds::ObjectExt;
use crds::step::Role;
use crds::{ClusterDeployment, Machine, PlaybookRun};
use jiff::Timestamp;

pub(crate) use forgotten::title as title_of_forgotten;
pub(crate) use health::is_healthy;
pub(crate) use history::knows_of;
pub(crate) use membership::EtcdMembership;

use crate::lifecycle::is_installed;
use crate::provisioning;
pub use health::is_out;

/// Where a machine that is being deleted stands with the control plane and etcd that it is to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Departure {
    /// There is nothing to leave, and nothing to wait for.
    NotAMember,
    /// Nothing is done to it yet; why, as a sentence.
    WaitingForTurn(String),
    /// It is its turn. Once its Pods are away it says so with the reason `LeavingEtcd`, and is taken out of etcd.
    MayGo,
    /// It is being taken out of etcd; how far that is, as a sentence.
    UnderWay(String),
    /// It is a member no more.
    Left,
}

/// When a run took the machine's member out of etcd, or made another one the only member; none: it is in, or never was.
pub fn out_of_etcd_at(
    machine: &Machine,
    machines: &[&Machine],
    deployment: &ClusterDeployment,
    runs: &[&PlaybookRun],
) -> Option<Timestamp> {
    let membership = EtcdMembership::new(&machine.spec.cluster_name, machines, deployment, runs);
    membership.left_at(machine)
}

/// Decides for a Machine that is being deleted, from the Machines and runs of its cluster (others are passed over).
pub fn decide(
    machine: &Machine,
    machines: &[&Machine],
    deployment: &ClusterDeployment,
    runs: &[&PlaybookRun],
) -> Departure {
    let goes_on = !deployment.is_deleting();
    if machine.spec.role == Role::Worker
        || !goes_on
        || !is_installed(deployment)
        || !provisioning::was_touched(machine, runs)
    {
        return Departure::NotAMember;
    }
    let membership = EtcdMembership::new(&machine.spec.cluster_name, machines, deployment, runs);
    let is_member = membership.is_of_etcd(machine);
    if is_member && membership.has_left(machine) {
        return Departure::Left;
    }
    if is_member && let Some(since) = membership.left_at(machine) {
        let untold = membership.untold(since);
        let names: Vec<&str> = untold.iter().filter_map(|other| other.metadata.name.as_deref()).collect();
        return Departure::UnderWay(format!("it is out of etcd; the API servers of {} are told", names.join(", ")));
    }
    if let Some(run) = membership.removal_under_way(machine) {
        let run = run.name();
        return Departure::UnderWay(format!("run {run} takes it out of etcd"));
    }
    match membership.why_not_yet(machine) {
        Some(why) => Departure::WaitingForTurn(why),
        None if is_member => Departure::MayGo,
        None => Departure::NotAMember,
    }
}
