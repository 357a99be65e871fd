//! The last token of a lock whose status was lost: read back from the runs and from the guards of the machines. Until
//! all that may know a token have been asked, nothing is given out.
//!
//! A token that is given twice, or a lower one after a higher, would make two runs one to a guard, or be refused by it.

mod answers;

use std::collections::{BTreeMap, BTreeSet};

use crds::ObjectExt;
use crds::Reason;
use crds::conditions::{self, Statement};
use crds::names::{annotation, condition};
use crds::step::Intent;
use crds::{Host, Machine, PlaybookRun};
use jiff::Timestamp;

use super::action::Action;
use super::lock::HIGHEST;
use super::request::{BATCH, number_after};
use super::state::{ClusterState, past};
use crate::message::{count, cut};
use crate::moment::{after, clock};
use crate::{Next, attempts};
use answers::{answer, probe, probes, silent};

/// A machine that did not answer may know a higher token than all that did: opened without it, the lock leaves this
/// much room.
const ROOM: i64 = 1000;

/// What is known of the last token.
pub(super) enum Tokens {
    /// The status says it.
    Known(i64),
    /// It has been found out now: the lock opens.
    Found(i64),
    /// The same, of a cluster that holds no machine: what runs of its name had before says nothing of this one.
    New(i64),
    /// It is not known.
    Lost(Lost),
}

/// A lock that is closed.
pub(super) struct Lost {
    /// The probe to make, if one is due.
    pub actions: Vec<Action>,
    pub next: Next,
    pub reason: Reason,
    pub message: String,
}

impl Lost {
    /// That the lock is closed; one that is open goes without saying.
    pub fn statement(&self) -> Statement {
        Statement::new(condition::LOCK_AVAILABLE, false, self.reason, cut(self.message.clone()))
    }
}

impl Tokens {
    pub fn last(&self) -> Option<i64> {
        match self {
            Tokens::Known(last) | Tokens::Found(last) | Tokens::New(last) => Some(*last),
            Tokens::Lost(_) => None,
        }
    }

    /// The last token of before the cluster held any machine, where that is found out now and is not 0.
    pub fn initial(&self) -> Option<i64> {
        match self {
            Tokens::New(last) => (*last > 0).then_some(*last),
            Tokens::Known(_) | Tokens::Found(_) | Tokens::Lost(_) => None,
        }
    }

    pub fn lost(&self) -> Option<&Lost> {
        match self {
            Tokens::Lost(lost) => Some(lost),
            Tokens::Known(_) | Tokens::Found(_) | Tokens::New(_) => None,
        }
    }
}

pub(super) fn find(state: &ClusterState<'_>) -> Tokens {
    let status = state.deployment.status.as_ref();
    if let Some(last) = status.and_then(|status| status.last_token) {
        return Tokens::Known(state.comparison.raised(last));
    }
    let known = known_to_runs(state);
    let claimed = claimed(state);
    if claimed.is_empty() {
        let contradicts = !state.comparison.contradictions.is_empty();
        return if contradicts { Tokens::Found(known) } else { Tokens::New(known) };
    }
    let noticed = status
        .and_then(|status| conditions::find(&status.conditions, condition::LOCK_AVAILABLE))
        .filter(|open| open.status == "False")
        .map(|open| open.last_transition_time.0);
    let Some(noticed) = noticed else {
        // What was asked before the loss says nothing: first it is written down when it was noticed.
        let message = "machines will be asked";
        return lost(Reason::TokensLost, Next::after_seconds(1), message);
    };
    let probes = probes(state, noticed);
    if let Some(run) = probes.iter().find(|run| !attempts::is_over(run)) {
        let message = format!("run {} asks {} for it", run.name(), count(run.spec.hosts.len(), "machine"));
        return lost(Reason::QueryingMachines, Next::OnChange, &message);
    }
    let answers: BTreeMap<&str, Result<i64, String>> =
        claimed.iter().filter_map(|(name, host)| Some((*name, answer(host, name, &probes)?))).collect();
    let told = answers.values().filter_map(|answer| answer.as_ref().ok());
    let known = told.copied().fold(known, i64::max);
    let is_open = |name: &&str| !answers.get(name).is_some_and(Result::is_ok);
    let open: Vec<&str> = claimed.keys().copied().filter(is_open).collect();
    if open.is_empty() {
        return Tokens::Found(known);
    }
    let all_were_asked = open.iter().all(|name| answers.contains_key(name));
    if all_were_asked && attempts::names_generation(&state.deployment.metadata, annotation::UNLOCK) {
        return Tokens::Found(known.saturating_add(ROOM));
    }
    ask(state, noticed, &probes, &open, &answers)
}

fn lost(reason: Reason, next: Next, message: &str) -> Tokens {
    Tokens::Lost(Lost {
        actions: Vec::new(),
        next,
        reason,
        message: format!("the lock is closed: its last token is lost; {message}"),
    })
}

/// Asks the machines that have not been asked, or those that have not answered once their time has come.
fn ask(
    state: &ClusterState<'_>,
    noticed: Timestamp,
    probes: &[&PlaybookRun],
    open: &[&str],
    answers: &BTreeMap<&str, Result<i64, String>>,
) -> Tokens {
    let not_asked: Vec<&str> = open.iter().copied().filter(|name| !answers.contains_key(name)).collect();
    let silent = silent(state, answers);
    let hosts = if not_asked.is_empty() {
        let last = probes.iter().filter_map(|run| attempts::ended_at(run)).max();
        let at = last.map_or(state.observed.now, |last| after(last, attempts::backoff(probes.len())));
        if at > state.observed.now {
            let message = format!("{silent}; asked again at {}", clock(at));
            return lost(Reason::MachinesSilent, state.until(at), &message);
        }
        open
    } else {
        &not_asked
    };
    // Old ones may be gone: the number grows, and no name comes twice.
    let number = number_after(probes.iter().copied());
    let run = probe(state, &hosts[..hosts.len().min(BATCH)], noticed, number);
    let message = match silent.is_empty() {
        true => "machines are asked",
        false => &silent,
    };
    match lost(Reason::QueryingMachines, Next::OnChange, message) {
        Tokens::Lost(lost) => Tokens::Lost(Lost { actions: vec![Action::create(run)], ..lost }),
        known => known,
    }
}

/// The highest token of all runs; one more for each that may have one that its status does not tell yet.
fn known_to_runs(state: &ClusterState<'_>) -> i64 {
    let runs = state.observed.runs.iter().filter(|run| run.spec.intent != Intent::Probe);
    let token = |run: &PlaybookRun| {
        let token = run.status.as_ref().map(|status| status.token);
        token.filter(|token| *token <= HIGHEST).unwrap_or_default()
    };
    let held = state.deployment.status.iter().flat_map(|status| status.operations.iter().map(|held| held.token));
    let highest = runs.clone().map(|run| token(run)).chain(held).max();
    let untold = runs.filter(|run| !attempts::is_over(run) && token(run) == 0);
    highest.unwrap_or_default() + i64::try_from(untold.count()).unwrap_or_default()
}

/// Hosts that the cluster's Machines hold, by name; without those of machines that a rebuild forgets, on which no run
/// will ever begin under their present claims.
fn claimed<'a>(state: &ClusterState<'a>) -> BTreeMap<&'a str, &'a Host> {
    let observed = state.observed;
    let goes_on = |machine: &&&Machine| !past::is_of_the_past(observed, machine);
    let machines = observed.machines.iter().filter(goes_on);
    let uids: BTreeSet<&str> = machines.filter_map(|machine| machine.metadata.uid.as_deref()).collect();
    let held = |host: &&&Host| {
        let claim = host.spec.claim_ref.as_ref();
        claim.is_some_and(|claim| uids.contains(claim.uid.as_str()))
    };
    let hosts = state.observed.hosts.iter().filter(held);
    hosts.map(|host| (host.name(), *host)).collect()
}
