//! How far a part is on the machines: those that it is brought to now, or what that waits for.

use std::collections::BTreeMap;

use crds::commands::Target as Object;
use crds::step::Intent;
use crds::{PlaybookRun, Reason};
use jiff::Timestamp;

use super::order::Part;
use super::part_wanted::PartWanted;
use super::placed::{digest_in, placed, silent_since};
use super::state::PlaneState;
use super::turn::{Placed, PlaneMachine, Turn, turn};
use crate::addon::Problem;
use crate::attempts::{self, Failure, Outcome, PastAttempt, RetryDecision};
use crate::cluster_machine::ClusterMachine;
use crate::message::{count, quote};
use crate::moment::clock;
use crate::run_request::Target;
use crate::settings::{has_brought, is_stopped, never_came_to};

/// How far a part is.
#[derive(Default)]
pub(in super::super) struct Progress<'a> {
    /// The machines that it is brought to now, in one run.
    pub targets: Vec<Target<'a>>,
    /// What goes on, where it is not as it is wanted and nothing is brought.
    pub doing: Option<String>,
    /// What does not work, or could not be brought.
    pub unhealthy: Option<Problem>,
    /// Why it could not be brought to those machines before.
    pub again: Option<String>,
    /// What could not be brought to a machine; it is tried again, or waits for somebody.
    pub failed: Option<Problem>,
    /// What is passed over: nobody waits for it.
    pub aside: Option<Problem>,
    /// Whether no machine has it.
    pub is_missing: bool,
    /// When it is tried again.
    pub retry_at: Option<Timestamp>,
}

impl Progress<'_> {
    /// Whether it is on all machines as it is wanted, and works.
    pub fn is_done(&self) -> bool {
        self.targets.is_empty() && self.doing.is_none() && self.unhealthy.is_none()
    }

    /// Names of the machines that it is brought to now.
    pub fn names(&self) -> Vec<&str> {
        self.targets.iter().map(|(machine, _)| machine.name()).collect()
    }
}

/// A machine that is to have the part, and whether its next attempt is due.
struct Candidate<'a> {
    machine: ClusterMachine<'a>,
    placed: Option<Placed>,
    decision: RetryDecision,
    /// Why the last attempt failed.
    last_failure: Option<String>,
}

/// How far this part is, and what is done about it.
pub(in super::super) fn progress<'a>(state: &PlaneState<'a>, wanted: &PartWanted) -> Progress<'a> {
    let part = wanted.part;
    let candidates: Vec<Candidate<'a>> = state
        .working(part.role(&state.object.spec))
        .filter_map(|machine| {
            let digest = wanted.digests.get(machine.name())?;
            let placed = placed(&machine, part, state.seen.runs);
            let tried = tried(state, part, &machine, digest);
            let last_failure = tried.last().and_then(|last| told(&last.outcome));
            let policy = state.terms.limited(state.terms.asked_retries(machine.machine));
            let decision = attempts::retry_decision(&tried, &policy, state.now);
            Some(Candidate { machine, placed, decision, last_failure })
        })
        .collect();
    let machines: Vec<PlaneMachine> = candidates.iter().map(|one| seen(state, part, one, wanted)).collect();
    let is_missing = machines.iter().all(|machine| !machine.has.contains_key(&part));
    let aside = machines.iter().find_map(|machine| {
        let message = format!("{} on machine {}: {}", part.title(), machine.name, machine.set_aside.as_ref()?);
        Some(Problem { reason: Reason::ComponentUnhealthy, message })
    });
    let found = Progress { is_missing, aside, ..Progress::default() };
    match turn(&machines, part, &wanted.digests) {
        Turn::Done => found,
        Turn::Waits(why) => {
            // What a run has brought and does not work is brought again, as often as anything that fails.
            let is_broken = |one: &&Candidate<'_>| {
                let placed = one.placed.as_ref().filter(|placed| placed.is_well != Some(true));
                placed.map(|placed| &placed.digest) == wanted.digests.get(one.machine.name()) && placed.is_some()
            };
            let mut broken = candidates.iter().filter(is_broken);
            if let Some(again) = broken.clone().find(|one| one.decision.is_again()) {
                return bring(state, part, &candidates, &[again.machine.name().to_owned()], found);
            }
            let message = broken.find_map(|one| failed(part, one)).unwrap_or(why);
            let is_unseen = |machine: &PlaneMachine| machine.has.get(&part).is_none_or(|has| has.is_well.is_none());
            let is_starting = machines.iter().all(is_unseen);
            let reason = if is_starting { Reason::ComponentStarting } else { Reason::ComponentUnhealthy };
            let retry_at = candidates.iter().filter_map(|one| later(&one.decision)).map(|(at, _)| at).min();
            Progress { unhealthy: Some(Problem { reason, message }), retry_at, ..found }
        }
        Turn::On(names) => bring(state, part, &candidates, &names, found),
    }
}

/// The machine as its turn is decided by. One that does not answer is passed over, and so is one that has nothing of
/// the part and could not be given it: it interrupts nobody. One where a change failed is not: the next one would fail
/// as well.
fn seen(state: &PlaneState<'_>, part: Part, one: &Candidate<'_>, wanted: &PartWanted) -> PlaneMachine {
    let name = one.machine.name().to_owned();
    let failure = one.decision.cause();
    let silent = silent_since(&one.machine, state.seen.runs).map(|at| format!("it did not answer at {}", clock(at)));
    let is_current = one.placed.as_ref().map(|placed| &placed.digest) == wanted.digests.get(&name);
    let is_never_brought = failure.is_some() && !is_current && one.placed.is_none();
    let never_brought = || said(&one.decision, &one.machine).filter(|_| is_never_brought);
    // Probes find out when it answers again.
    let set_aside = silent.or_else(|| Some(format!("it could not be brought{}", never_brought()?)));
    let mut has = BTreeMap::new();
    if let Some(mut placed) = one.placed.clone() {
        if is_stopped(&placed.digest) {
            placed.is_well = Some(true);
        }
        if failure.is_some() && !is_current {
            placed.is_well = Some(false);
        }
        has.insert(part, placed);
    }
    PlaneMachine { name, set_aside, has }
}

/// The attempts to bring this digest to the machine, oldest first.
fn tried(state: &PlaneState<'_>, part: Part, machine: &ClusterMachine<'_>, digest: &str) -> Vec<PastAttempt> {
    let host = machine.host_name().unwrap_or_default();
    let is_same =
        |run: &&PlaybookRun| run.spec.intent == Intent::Configure && digest_in(run, part, machine) == Some(digest);
    // One that ended at a part ahead of this one says nothing of it.
    let says_something = |run: &&PlaybookRun| !never_came_to(run, part.name(), host);
    let same: Vec<&PlaybookRun> = state.own_runs().filter(is_same).filter(says_something).collect();
    let mut tried = attempts::tried(&same, &[Intent::Configure], machine.uid());
    for attempt in &mut tried {
        let mut named = same.iter().filter(|run| run.metadata.name.as_ref() == Some(&attempt.run));
        if named.any(|run| has_brought(run, part.name(), host)) {
            attempt.outcome = Outcome::Succeeded;
        }
    }
    tried
}

fn told(outcome: &Outcome) -> Option<String> {
    if let Outcome::Failed(failure) = outcome { Some(failure.told()) } else { None }
}

/// When it is tried again, and why that is not now.
fn later(decision: &RetryDecision) -> Option<(Timestamp, &Failure)> {
    match decision {
        RetryDecision::Later { at, cause, .. } => Some((*at, cause)),
        _ => None,
    }
}

/// It is brought to those of these machines whose next attempt is due.
fn bring<'a>(
    state: &PlaneState<'_>,
    part: Part,
    candidates: &[Candidate<'a>],
    names: &[String],
    found: Progress<'a>,
) -> Progress<'a> {
    let chosen = candidates.iter().filter(|one| names.iter().any(|name| name == one.machine.name()));
    let is_due = |one: &&Candidate<'_>| matches!(one.decision, RetryDecision::Now { .. } | RetryDecision::Done { .. });
    let due = chosen.clone().filter(is_due);
    let again = due.clone().find_map(|one| one.last_failure.clone());
    let targets: Vec<Target<'a>> = due.map(|one| (one.machine, one.decision.retry())).collect();
    if let Some(run) = state.under_way() {
        return Progress { doing: Some(state.describe(run)), ..found };
    }
    if targets.is_empty() {
        let problem = |message: String| Problem { reason: Reason::ComponentUnhealthy, message };
        let failed = chosen.clone().find_map(|one| failed(part, one)).map(problem);
        let waiting = || problem(format!("waiting for the run that brings {}", part.title()));
        let retry_at = chosen.filter_map(|one| later(&one.decision)).map(|(at, _)| at).min();
        return Progress { unhealthy: failed.clone().or_else(|| Some(waiting())), failed, retry_at, ..found };
    }
    Progress { targets, again, ..found }
}

/// `machine m1 (Host h1)`, `3 machines`.
pub(super) fn titles(targets: &[Target<'_>]) -> String {
    match targets {
        [(machine, _)] => format!("machine {}", machine.title()),
        more => count(more.len(), "machine"),
    }
}

/// What went wrong on a machine, and what becomes of it.
fn failed(part: Part, one: &Candidate<'_>) -> Option<String> {
    let said = said(&one.decision, &one.machine)?;
    Some(format!("{} could not be brought to machine {}{said}", part.title(), one.machine.title()))
}

/// Why the last attempt failed, and when or how there is another one; none: it did not, or another one begins.
fn said(decision: &RetryDecision, machine: &ClusterMachine<'_>) -> Option<String> {
    match decision {
        RetryDecision::Later { at, cause, .. } => {
            Some(format!(" ({}); tried again at {}", quote(cause.told()), clock(*at)))
        }
        RetryDecision::Halted { failures, cause } => Some(format!(
            " after {} ({}); correct it, then {}",
            count(*failures, "attempt"),
            attempts::why_halted(cause.as_ref()),
            attempts::retry_command(Object::Machine, &machine.machine.metadata)
        )),
        RetryDecision::Now { .. } | RetryDecision::UnderWay { .. } | RetryDecision::Done { .. } => None,
    }
}
