//! Remembers machines that are removed without reaching them, until no member of etcd stands for them any more.

use std::collections::BTreeSet;

use crds::ObjectExt;
use crds::cluster_deployment::ForgottenMachine;
use crds::host::QuarantineReason;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::super::proposal::{Proposal, Round};
use super::super::state::PlaneState;
use super::super::wanted_parts::Basis;
use crate::cluster_machine::ClusterMachine;
use crate::machine::leaving;
use crate::provisioning;

/// Entries that the status takes.
const MOST: usize = 100;

pub(super) fn propose(state: &PlaneState<'_>, _: &Basis<'_>, _: &Round) -> Proposal {
    let membership = state.membership();
    let mut machines = remembered(state);
    let known: BTreeSet<String> = machines.iter().map(|one| one.uid.clone()).collect();
    let new = state.leaving.iter().filter(|member| !known.contains(member.uid()));
    machines.extend(new.filter_map(|member| written_down(state, member)));
    for one in &mut machines {
        one.etcd_member = one.etcd_member && !membership.is_out_of_etcd(one);
    }
    let is_there = |one: &ForgottenMachine| state.leaving.iter().any(|member| member.uid() == one.uid);
    machines.retain(|one| is_there(one) || state.installed.is_some() && one.etcd_member);
    machines.truncate(MOST);
    Proposal { forgotten: Some(machines), ..Proposal::default() }
}

/// What the status says; where that was lost, what the Hosts say that were taken from forgotten machines.
fn remembered(state: &PlaneState<'_>) -> Vec<ForgottenMachine> {
    let status = state.object.status.as_ref();
    let mut remembered = status.map(|status| status.forgotten.clone()).unwrap_or_default();
    if status.is_some_and(|status| status.last_token.is_some()) {
        return remembered;
    }
    for host in state.seen.hosts {
        let is_ours = |quarantine: &&crds::host::Quarantine| {
            let fence = quarantine.fence.as_ref();
            quarantine.reason == QuarantineReason::ForceRemoved
                && quarantine.cluster_name.as_deref() == Some(state.object.name())
                && fence.is_none_or(|fence| fence.cluster_uid == state.object.uid())
        };
        let Some(quarantine) = host.spec.quarantine.as_ref().filter(is_ours) else { continue };
        let (Some(uid), Some(role)) = (&quarantine.machine_uid, quarantine.role) else { continue };
        if remembered.iter().all(|one| one.uid != *uid) {
            remembered.push(ForgottenMachine {
                uid: uid.clone(),
                machine: quarantine.machine.clone(),
                host: host.name().to_owned(),
                role,
                provisioned: true,
                etcd_member: Some(role) == state.cluster.etcd_role,
                node_ready: false,
                since: quarantine.since.clone(),
            });
        }
    }
    remembered
}

/// A machine that is to be forgotten, if anything was ever done to it.
fn written_down(state: &PlaneState<'_>, member: &ClusterMachine<'_>) -> Option<ForgottenMachine> {
    let machine = member.machine;
    if !leaving::is_forced(machine) || !provisioning::was_touched(machine, state.seen.runs) {
        return None;
    }
    let membership = state.membership();
    Some(ForgottenMachine {
        uid: member.uid().to_owned(),
        machine: member.name().to_owned(),
        host: member.host_name()?.to_owned(),
        role: machine.spec.role,
        provisioned: member.is_provisioned(),
        etcd_member: membership.is_of_etcd(machine) && membership.left_at(machine).is_none(),
        node_ready: false,
        since: Time(state.now),
    })
}
