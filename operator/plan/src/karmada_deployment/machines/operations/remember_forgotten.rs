//! Remembers machines that are removed without reaching them, until no member of etcd stands for them any more.

use std::collections::BTreeSet;

use crds::cluster_deployment::ForgottenMachine;
use crds::host::Quarantine;
use crds::{FormerRef, ObjectExt};

use super::super::part_wanted::Basis;
use super::super::proposal::{Proposal, Round};
use super::super::state::PlaneState;
use crate::forgotten::{recall, written_down};

/// Entries that the status takes.
const MOST: usize = 100;

pub(super) fn propose(state: &PlaneState<'_>, _: &Basis<'_>, _: &Round) -> Proposal {
    let membership = state.membership();
    let mut machines = remembered(state);
    let known: BTreeSet<String> = machines.iter().map(|one| one.uid.clone()).collect();
    let new = state.leaving.iter().filter(|member| !known.contains(member.uid()));
    machines.extend(new.filter_map(|member| written_down(member, &membership, state.seen.runs, state.now)));
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
    let is_ours = |quarantine: &Quarantine| {
        let fence = quarantine.fence.as_ref();
        quarantine.former() == Some(FormerRef::plane(state.object.name()))
            && fence.is_none_or(|fence| fence.cluster_uid == state.object.uid())
    };
    recall(&mut remembered, state.seen.hosts, state.cluster.etcd_role, is_ours);
    remembered
}
