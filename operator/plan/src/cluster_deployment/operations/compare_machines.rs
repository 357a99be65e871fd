//! Compares machines with what is wanted of them, by runs that play probes alone: each machine once an interval, at a
//! moment of its own, and soon after something was done to one that differs. A comparison begins only while nothing
//! else is under way, and makes room for whatever is to begin.

use std::collections::BTreeMap;

use crds::drift::DriftSeen;
use crds::step::{Intent, Role, Step};
use crds::{ObjectExt, PlaybookRun};
use jiff::{SignedDuration, Timestamp};

use super::remediate;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::drifted::{changed_at, is_left_alone, seen};
use crate::cluster_deployment::endpoint;
use crate::cluster_deployment::lane::{Lane, Needs};
use crate::cluster_deployment::last_looks::{kept, last_looks};
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::request::{self, tell_backends};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::drift::{self, Compared, is_comparison};
use crate::moment::after;
use crate::{attempts, naming};

/// When a machine is compared on which something was done since it differed.
const CHANGED: SignedDuration = SignedDuration::from_secs(60);
/// When a machine is compared again that could not be.
const AGAIN: SignedDuration = SignedDuration::from_hours(1);
/// Machines whose moments are within so many parts of the interval of each other are compared together.
const PARTS: i64 = 24;
/// How long after its moment a machine is still compared that never was.
const WINDOW: SignedDuration = SignedDuration::from_mins(15);
/// Machines of one comparison.
const MOST: usize = 20;
/// Deadline of one comparison.
const TIMEOUT_SECONDS: i32 = 900;

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    let looks = state.newest_runs(is_comparison);
    let mut works = looks.iter().filter(|run| !attempts::is_over(run)).peekable();
    if works.peek().is_some() {
        let in_the_way = works.filter(|run| is_in_the_way(state, round, run));
        return Proposal::actions(in_the_way.filter_map(|run| end(round, run)).collect());
    }
    let interval = i64::from(drift::policy(state.deployment).check_every_seconds);
    if interval == 0 || !is_quiet(state, round) {
        return Proposal::default();
    }
    let now = state.observed.now;
    let last = last_looks(&looks);
    let machines = state.live.iter().filter(|machine| machine.host.is_some() && is_left_alone(state, machine));
    let mut due: Vec<(Timestamp, &ClusterMachine<'_>)> =
        machines.filter_map(|machine| Some((due_at(state, machine, &last, interval)?, machine))).collect();
    due.sort_by_key(|(at, machine)| (*at, machine.name()));
    match due.first() {
        Some((at, _)) if *at > now => return Proposal::default().at(state, *at),
        Some(_) => {}
        None => return Proposal::default(),
    }
    let together = after(now, part(interval));
    let batch: Vec<&ClusterMachine<'_>> =
        due.iter().take_while(|(at, _)| *at <= together).take(MOST).map(|(_, machine)| *machine).collect();
    let kept = kept(state, &last);
    let surplus = looks.iter().filter(|run| !kept.contains(run.name()));
    let surplus = surplus.map(|run| Action::DeleteRun(Box::new((*run).clone())));
    let number = request::number_after(looks.iter().copied());
    Proposal::actions(surplus.chain([Action::create(comparison(state, &batch, number))]).collect())
}

/// The last comparison of each machine: by it is known when it is compared next.
pub(super) fn keeps(state: &ClusterState<'_>) -> Vec<String> {
    let looks = state.newest_runs(is_comparison);
    kept(state, &last_looks(&looks)).into_iter().map(str::to_owned).collect()
}

/// Whether nothing else is done, or about to be done.
fn is_quiet(state: &ClusterState<'_>, round: &Round) -> bool {
    let is_installed = state.installed.is_some() && round.allows(Lane::Remediation, Needs::Spec);
    // While it is not known what is lost, others ask the machines.
    let is_well = remediate::unreachable(state).is_none() && state.etcd_problem().is_none();
    let is_upgraded = state.upgrade.as_ref().is_some_and(|upgrade| upgrade.has_begun);
    let nothing_else = state.active.is_empty() && round.lock.queue.is_empty() && !round.begins_any();
    is_installed && is_well && nothing_else && !is_upgraded
}

/// Whether a comparison that has not ended keeps something from its turn, or waits for one itself.
fn is_in_the_way(state: &ClusterState<'_>, round: &Round, run: &PlaybookRun) -> bool {
    let is_it = |name: &String| name == run.name();
    let waits = round.lock.queue.iter().any(|queued| is_it(&queued.run) || queued.behind.iter().any(is_it));
    let leaves = run.spec.hosts.iter().any(|host| state.is_leaving(host));
    waits || leaves || round.paused || round.is_blocked(Lane::Remediation)
}

/// One that works ends, one that has not begun goes.
fn end(round: &Round, run: &PlaybookRun) -> Option<Action> {
    match round.lock.operations.iter().any(|held| held.run == run.name()) {
        false => Some(Action::DeleteRun(Box::new(run.clone()))),
        true if run.spec.cancel => None,
        true => Some(Action::CancelRun(Box::new(run.clone()))),
    }
}

/// When a machine is compared next.
fn due_at(
    state: &ClusterState<'_>,
    machine: &ClusterMachine<'_>,
    last: &BTreeMap<&str, &PlaybookRun>,
    interval: i64,
) -> Option<Timestamp> {
    let provisioned = machine.machine.status.as_ref()?.provisioned_at.as_ref()?;
    let seen = seen(state, machine);
    let checked = seen.as_ref().map(|seen| seen.checked_at.0);
    let look = last.get(machine.host_name()?).filter(|run| run.created_at() >= Some(provisioned));
    let tried = look.and_then(|run| attempts::ended_at(run));
    let Some(latest) = checked.max(tried) else {
        return Some(first(state, machine, provisioned.0, interval));
    };
    // It may have been compared ahead of its moment, with others.
    let mut due = next_turn(machine, after(latest, part(interval)), interval);
    if tried > checked || seen.as_ref().is_some_and(is_unclear) {
        due = due.min(after(latest, AGAIN.min(SignedDuration::from_secs(interval))));
    }
    let differs = seen.is_some_and(|seen| !seen.steps().is_empty());
    let changed = changed_at(state, machine).filter(|changed| differs && Some(*changed) >= checked);
    Some(changed.map_or(due, |changed| due.min(after(changed, CHANGED))))
}

/// Whether not all could be compared.
fn is_unclear(seen: &DriftSeen) -> bool {
    seen.failure.is_some() || seen.differences.iter().any(|difference| difference.unknown)
}

/// The first comparison of a machine. Those that stand while the operator learns to compare begin each at its moment,
/// or a fleet would do so at once.
fn first(state: &ClusterState<'_>, machine: &ClusterMachine<'_>, provisioned: Timestamp, interval: i64) -> Timestamp {
    let (now, period) = (state.observed.now, SignedDuration::from_secs(interval));
    let turn = next_turn(machine, provisioned, interval);
    if after(turn, period) > now {
        return turn;
    }
    let before = next_turn(machine, now.saturating_sub(period).unwrap_or(Timestamp::MIN), interval);
    let is_now = after(before, part(interval).max(WINDOW)) > now;
    if is_now { now } else { after(before, period) }
}

/// How far apart the moments are of machines that are compared together.
fn part(interval: i64) -> SignedDuration {
    SignedDuration::from_secs(interval / PARTS)
}

/// The machine's moment, next after this one.
fn next_turn(machine: &ClusterMachine<'_>, moment: Timestamp, interval: i64) -> Timestamp {
    let own = naming::offset(machine.uid(), u64::try_from(interval).unwrap_or_default()).as_secs();
    let since = (moment.as_second() - own).rem_euclid(interval);
    after(moment, SignedDuration::from_secs(interval - since))
}

/// A comparison of these machines.
fn comparison(state: &ClusterState<'_>, machines: &[&ClusterMachine<'_>], number: i32) -> PlaybookRun {
    let mut hosts: Vec<String> = machines.iter().filter_map(|machine| machine.host_name()).map(str::to_owned).collect();
    hosts.sort_unstable();
    let is_due = |step: &Step| machines.iter().any(|machine| has(state, *step, machine.machine.spec.role));
    let steps = Step::ALL.into_iter().filter(is_due).collect();
    let parts = hosts.iter().map(String::as_str).chain(["compare"]);
    let name = naming::run(&state.name, state.uid(), Intent::Compare, parts, number);
    let mut run = state.owner.run(&name, Intent::Compare, steps, hosts, number);
    run.spec.timeout_seconds = TIMEOUT_SECONDS;
    tell_backends(state, &mut run);
    run
}

/// Whether machines of a role have in this cluster what a step brings.
fn has(state: &ClusterState<'_>, step: Step, role: Role) -> bool {
    let etcd = state.membership().etcd_role();
    let here = [
        (Step::Etcd, etcd == Some(role)),
        (Step::EtcdEndpoints, etcd == Some(Role::Etcd)),
        (Step::LoadBalancer, endpoint::held(state).is_some()),
    ];
    let is_here = here.into_iter().all(|(there, is_here)| there != step || is_here);
    is_here && Compared::by(step).is_on(role)
}
