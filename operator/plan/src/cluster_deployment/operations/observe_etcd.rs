//! Observes the members of a dedicated etcd, whose machines have no Node that says how they are. While a policy holds
//! for them, they are asked over SSH, each by a run that changes nothing: seldom while all are well, and soon again
//! when one is not.

use std::cmp::Reverse;

use crds::PlaybookRun;
use crds::step::{Role, Step};
use jiff::SignedDuration;

use super::remediate;
use crate::attempts;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::request;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::etcd::{self, Health};
use crate::moment::after;
use crate::remediation;

/// How often members are looked at that are all well.
const WELL: SignedDuration = SignedDuration::from_mins(10);
/// How often, when one is not, or is not known to be.
const SICK: SignedDuration = SignedDuration::from_secs(60);
/// Looks that are kept.
const KEEP: usize = 3;

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    let stays = |machine: &ClusterMachine<'_>| machine.is_provisioned() && machine.host.is_some();
    let members: Vec<ClusterMachine<'_>> = state.of_role(Role::Etcd).filter(stays).collect();
    if !is_wanted(state, round) || members.is_empty() {
        return Proposal::default();
    }
    let ours = |run: &&PlaybookRun| etcd::is_probe(run) && state.owns(&run.metadata);
    let mut looks: Vec<&PlaybookRun> = state.observed.runs.iter().copied().filter(ours).collect();
    looks.sort_by_key(|run| (run.metadata.creation_timestamp.clone(), attempts::attempt_of(run)));
    let at = match looks.last() {
        // Its end is seen as a change.
        Some(last) if !attempts::is_over(last) => return Proposal::default(),
        Some(last) => attempts::ended_at(last).map(|ended| after(ended, pause(state, &members))),
        None => None,
    };
    if let Some(at) = at.filter(|at| *at > state.observed.now) {
        return Proposal::default().at(state, at);
    }
    let number = request::number_after(looks.last().copied());
    let surplus = (looks.len() + 1).saturating_sub(KEEP);
    let old = looks.iter().take(surplus).copied().cloned();
    let mut actions: Vec<Action> = old.map(|run| Action::DeleteRun(Box::new(run))).collect();
    actions.push(Action::create(look(state, &members, number)));
    Proposal::actions(actions)
}

/// Whether something would be done about what is seen. While it is not known what is lost, others ask the machines.
fn is_wanted(state: &ClusterState<'_>, round: &Round) -> bool {
    let known = round.lock_is_known() && remediate::unreachable(state).is_none() && state.etcd_problem().is_none();
    let has_rule = |machine: ClusterMachine<'_>| {
        remediation::holding(machine.machine, state.observed.policies, Some(state.deployment)).is_some()
    };
    state.installed.is_some() && !round.paused && known && state.of_role(Role::Etcd).any(has_rule)
}

fn pause(state: &ClusterState<'_>, members: &[ClusterMachine<'_>]) -> SignedDuration {
    let observed = state.observed;
    let is_well =
        |machine: &ClusterMachine<'_>| etcd::look(machine.machine, observed.runs, observed.now).health == Health::Well;
    if members.iter().all(is_well) { WELL } else { SICK }
}

fn look(state: &ClusterState<'_>, members: &[ClusterMachine<'_>], number: i32) -> PlaybookRun {
    let mut hosts: Vec<&str> = members.iter().filter_map(ClusterMachine::host_name).collect();
    hosts.sort_unstable();
    let mut run = request::probe(state, Step::ProbeEtcd, &hosts, &["probe-etcd"], number);
    let machines: Vec<_> = members.iter().map(|machine| machine.machine).collect();
    run.spec.vars = state.etcd_variables(&machines);
    run
}

/// Looks that decide how a member is.
pub(super) fn keeps(state: &ClusterState<'_>) -> Vec<String> {
    let looks = state.observed.runs.iter().copied();
    let mut looks: Vec<&PlaybookRun> = looks.filter(|run| etcd::is_probe(run)).collect();
    looks.sort_by_key(|run| Reverse(attempts::attempt_of(run)));
    let newest = looks.into_iter().take(KEEP);
    newest.filter_map(|run| run.metadata.name.clone()).collect()
}
