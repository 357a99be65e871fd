//! Machines that are removed without reaching them, as the status of what forms their cluster remembers them.

use crds::cluster_deployment::ForgottenMachine;
use crds::host::{Quarantine, QuarantineReason};
use crds::step::Role;
use crds::{Host, ObjectExt, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::cluster_machine::ClusterMachine;
use crate::departure::EtcdMembership;
use crate::machine::leaving;
use crate::provisioning;

/// A machine that a person wants to be forgotten, if anything was ever done to it.
pub(crate) fn written_down(
    member: &ClusterMachine<'_>,
    membership: &EtcdMembership<'_>,
    runs: &[&PlaybookRun],
    now: Timestamp,
) -> Option<ForgottenMachine> {
    let machine = member.machine;
    if !leaving::is_forced(machine) || !provisioning::was_touched(machine, runs) {
        return None;
    }
    Some(ForgottenMachine {
        uid: member.uid().to_owned(),
        machine: member.name().to_owned(),
        host: member.host_name()?.to_owned(),
        role: machine.spec.role,
        provisioned: member.is_provisioned(),
        etcd_member: membership.is_of_etcd(machine) && membership.left_at(machine).is_none(),
        node_ready: false,
        since: Time(now),
    })
}

/// Adds those that Hosts say they were taken from, where the status that remembered them was lost.
pub(crate) fn recall(
    remembered: &mut Vec<ForgottenMachine>,
    hosts: &[&Host],
    etcd_role: Option<Role>,
    is_ours: impl Fn(&Quarantine) -> bool,
) {
    for host in hosts {
        let quarantine = host.spec.quarantine.as_ref();
        let taken = |quarantine: &&Quarantine| quarantine.reason == QuarantineReason::ForceRemoved;
        let Some(quarantine) = quarantine.filter(taken).filter(|quarantine| is_ours(quarantine)) else { continue };
        let (Some(uid), Some(role)) = (&quarantine.machine_uid, quarantine.role) else { continue };
        if remembered.iter().all(|one| one.uid != *uid) {
            remembered.push(ForgottenMachine {
                uid: uid.clone(),
                machine: quarantine.machine.clone(),
                host: host.name().to_owned(),
                role,
                provisioned: true,
                etcd_member: Some(role) == etcd_role,
                node_ready: false,
                since: quarantine.since.clone(),
            });
        }
    }
}
