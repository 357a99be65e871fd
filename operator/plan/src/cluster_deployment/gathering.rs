//! Gathering: workers that are about to have their Hosts are waited for, so that one run takes them all.

use crds::Conditions;
use crds::names;
use crds::step::Role;
use jiff::{SignedDuration, Timestamp};

use super::request::Target;
use super::state::{ClusterMachine, ClusterState};
use crate::claims::{HostRequest, Pool};

/// How long a batch waits at most for machines that are about to have their Hosts.
const GATHER: SignedDuration = SignedDuration::from_secs(5);

/// Whether more machines are about to have their Hosts, so that one run may take them all. A batch waits for them only
/// so long, counted from its youngest claim.
pub(super) fn gathers(state: &ClusterState<'_>, batch: &[Target<'_>]) -> bool {
    let youngest = batch.iter().filter_map(|(machine, _)| claimed_at(machine)).max();
    let waited = youngest.map_or(SignedDuration::ZERO, |youngest| state.observed.now.duration_since(youngest));
    if waited >= GATHER {
        return false;
    }
    let pool = Pool::new(state.observed.hosts);
    let about_to_claim = state.of_role(Role::Worker).any(|machine| {
        machine.host.is_none()
            && (machine.machine.spec.host_ref.is_some()
                || pool.offer(&HostRequest::from_machine(machine.machine)).free > 0)
    });
    let have = state.workers().count();
    let about_to_be_made = i32::try_from(have).unwrap_or(i32::MAX) < state.workers_wanted();
    about_to_claim || about_to_be_made
}

fn claimed_at(machine: &ClusterMachine<'_>) -> Option<Timestamp> {
    let claimed = machine.machine.condition(names::condition::HOST_CLAIMED)?;
    (claimed.status == "True").then_some(claimed.last_transition_time.0)
}
