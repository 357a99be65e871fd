//! Observes the members of etcd, each over SSH, by a run that changes nothing: how they are, how large, and, when that
//! is due, whether they hold the same. Seldom while all is well, and soon again when something is not. A dedicated etcd
//! has no Nodes that say how its machines are: while a policy holds for them, they are asked more often.

use std::cmp::Reverse;

use crds::PlaybookRun;
use crds::playbook_run::EtcdSeen;
use crds::step::{Role, Step};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::remediate;
use crate::attempts;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::request;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::etcd::{self, Health};
use crate::moment::after;
use crate::naming;
use crate::remediation;

/// How often members are looked at that a policy holds for, and that are all well.
const WELL: SignedDuration = SignedDuration::from_mins(10);
/// How often, when one is not, or is not known to be.
const SICK: SignedDuration = SignedDuration::from_secs(60);
/// How often others are looked at: a thousand clusters are.
const SELDOM: SignedDuration = SignedDuration::from_hours(6);
/// How often, while something is wrong.
const WRONG: SignedDuration = SignedDuration::from_mins(10);
/// When members are compared again that differ, or could not be compared.
const COMPARE_AGAIN: SignedDuration = SignedDuration::from_hours(1);
/// When a member is looked at that has joined.
const JOINED: SignedDuration = SignedDuration::from_hours(1);
/// Clusters look within so many seconds of each other's time.
const SPREAD_SECONDS: u64 = 3600;
/// Looks that are kept.
const KEEP: usize = 3;
/// The variable that asks for the comparison.
const HASH_CHECK: &str = "etcd_hash_check";

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    let members = state.etcd_machines();
    if !is_wanted(state, round) || members.is_empty() {
        return Proposal::default();
    }
    let ours = |run: &&PlaybookRun| etcd::is_probe(run) && state.owns(&run.metadata);
    let mut looks: Vec<&PlaybookRun> = state.observed.runs.iter().copied().filter(ours).collect();
    looks.sort_by_key(|run| (run.metadata.creation_timestamp.clone(), attempts::attempt_of(run)));
    // Its end is seen as a change.
    if looks.last().is_some_and(|last| !attempts::is_over(last)) {
        return Proposal::default();
    }
    let hashes = hashes_due(state, &looks);
    let regular = due(state, &members, &looks);
    let at = hashes.map_or(regular, |hashes| regular.min(hashes));
    if at > state.observed.now {
        return Proposal::default().at(state, at);
    }
    let number = request::number_after(looks.last().copied());
    let surplus = (looks.len() + 1).saturating_sub(KEEP);
    let old = looks.iter().take(surplus).copied().cloned();
    let mut actions: Vec<Action> = old.map(|run| Action::DeleteRun(Box::new(run))).collect();
    let compares = hashes.is_some_and(|hashes| hashes <= state.observed.now);
    actions.push(Action::create(look(state, &members, number, compares)));
    Proposal::actions(actions)
}

/// Whether the machines can be asked, and nobody else asks them: while it is not known what is lost, others do.
fn is_wanted(state: &ClusterState<'_>, round: &Round) -> bool {
    let known = round.lock_is_known() && remediate::unreachable(state).is_none() && state.etcd_problem().is_none();
    state.installed.is_some() && !round.paused && known
}

/// When the members are looked at next.
fn due(state: &ClusterState<'_>, members: &[ClusterMachine<'_>], looks: &[&PlaybookRun]) -> Timestamp {
    let runs = state.own_runs();
    let worked = runs.iter().filter(|run| etcd::defragments(run) && attempts::is_over(run));
    let changed = worked.filter_map(|run| attempts::ended_at(run));
    let Some(last) = last_look(state, looks) else {
        return if has_policy(state) { state.observed.now } else { changed.fold(first(state), Timestamp::min) };
    };
    let mut due = after(last, SELDOM + spread(state));
    if has_policy(state) {
        due = due.min(after(last, pause(state, members)));
    }
    let status = state.etcd_status().unwrap_or_default();
    if etcd::finding(&status).is_some() || looks.last().is_some_and(|run| shows_trouble(run)) {
        due = due.min(after(last, WRONG));
    }
    let joined = members.iter().filter_map(|machine| machine.machine.status.as_ref()?.provisioned_at.as_ref());
    let news = changed.chain(joined.map(|time| after(time.0, JOINED)));
    news.filter(|at| *at > last).fold(due, Timestamp::min)
}

/// When the members were looked at last, by a run that is there, or that the status remembers.
fn last_look(state: &ClusterState<'_>, looks: &[&PlaybookRun]) -> Option<Timestamp> {
    let status = state.deployment.status.as_ref().and_then(|status| status.etcd.as_ref());
    let remembered = status.and_then(|status| status.looked_at.as_ref()).map(|time| time.0);
    looks.iter().filter_map(|run| attempts::ended_at(run)).chain(remembered).max()
}

/// The first look of a cluster. Those that stand while the operator learns to look begin each at a time of its own, or
/// a fleet would do so at once.
fn first(state: &ClusterState<'_>) -> Timestamp {
    let now = state.observed.now;
    let installed = state.installed.as_ref().map_or(now, |time| time.0);
    let due = after(installed, SELDOM);
    if after(due, SELDOM) > now {
        return due;
    }
    let (period, window) = (SELDOM.as_secs(), JOINED.as_secs());
    let own = naming::offset(state.uid(), u64::try_from(period).unwrap_or_default()).as_secs();
    let since = (now.as_second() - own).rem_euclid(period);
    if since < window { now } else { after(now, SignedDuration::from_secs(period - since)) }
}

fn spread(state: &ClusterState<'_>) -> SignedDuration {
    naming::offset(state.uid(), SPREAD_SECONDS)
}

/// When the members are compared next; none: never.
fn hashes_due(state: &ClusterState<'_>, looks: &[&PlaybookRun]) -> Option<Timestamp> {
    let interval = SignedDuration::from_secs(state.deployment.spec.etcd.hash_check_seconds()?);
    let status = state.etcd_status().unwrap_or_default();
    let asked = looks.iter().rev().find(|run| run.spec.vars.get(HASH_CHECK) == Some(&json!(true)));
    let asked = asked.and_then(|run| attempts::ended_at(run));
    let Some(check) = status.hash_check else {
        return Some(asked.map_or_else(|| due_first(state, looks), |at| after(at, COMPARE_AGAIN.min(interval))));
    };
    let at = check.checked_at.0;
    let pause = if check.differs() { COMPARE_AGAIN.min(interval) } else { interval + spread(state) };
    let failed = asked.filter(|asked| *asked > at).map(|asked| after(asked, COMPARE_AGAIN.min(interval)));
    Some(after(at, pause).max(failed.unwrap_or(at)))
}

/// The first comparison comes with the first look, or the next one.
fn due_first(state: &ClusterState<'_>, looks: &[&PlaybookRun]) -> Timestamp {
    last_look(state, looks).map_or_else(|| first(state), |last| after(last, SignedDuration::ZERO))
}

/// Whether a policy holds for a machine of a dedicated etcd.
fn has_policy(state: &ClusterState<'_>) -> bool {
    let has_rule = |machine: ClusterMachine<'_>| {
        remediation::holding(machine.machine, state.observed.policies, Some(state.deployment)).is_some()
    };
    state.membership().etcd_role() == Some(Role::Etcd) && state.of_role(Role::Etcd).any(has_rule)
}

fn pause(state: &ClusterState<'_>, members: &[ClusterMachine<'_>]) -> SignedDuration {
    let observed = state.observed;
    let is_well =
        |machine: &ClusterMachine<'_>| etcd::look(machine.machine, observed.runs, observed.now).health == Health::Well;
    if members.iter().all(is_well) { WELL } else { SICK }
}

/// Whether a member was not well in this look.
fn shows_trouble(run: &PlaybookRun) -> bool {
    let results = run.status.iter().flat_map(|status| &status.hosts);
    let mut seen = results.filter_map(|result| result.etcd.as_ref());
    seen.any(|seen: &EtcdSeen| seen.well == Some(false) || !seen.sick_peers.is_empty())
}

fn look(state: &ClusterState<'_>, members: &[ClusterMachine<'_>], number: i32, compares: bool) -> PlaybookRun {
    let mut hosts: Vec<&str> = members.iter().filter_map(ClusterMachine::host_name).collect();
    hosts.sort_unstable();
    let mut run = state.owner.probe(Step::ProbeEtcd, &hosts, &["probe-etcd"], number);
    let machines: Vec<_> = members.iter().map(|machine| machine.machine).collect();
    run.spec.vars = state.etcd_variables(&machines);
    if compares {
        run.spec.vars.insert(HASH_CHECK.to_owned(), Value::Bool(true));
    }
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
