//! The last token of a lock whose status was lost: read back from the runs and from the guards of the machines. Until all
//! that may know a token have been asked, nothing is given out.
//!
//! A token that is given twice, or a lower one after a higher, would make two runs one to a guard, or be refused by it.

use std::collections::{BTreeMap, BTreeSet};

use crds::names::{annotation, condition};
use crds::playbook_run::{HostResult, RunPhase};
use crds::step::{Intent, Step as RunStep};
use crds::{Host, PlaybookRun, conditions};
use jiff::Timestamp;

use super::Step;
use super::deletion::until;
use super::lock::HIGHEST;
use super::runs::{self, BATCH};
use super::scene::Scene;
use crate::attempts;
use crate::{Next, naming};

/// Deadline of a probe.
const TIMEOUT_SECONDS: i32 = 300;
/// A machine that did not answer may know a higher token than all that did: opened without it, the lock leaves this much
/// room.
const ROOM: i64 = 1000;
/// Machines that are named in a message.
const NAMED: usize = 3;

/// What is known of the last token.
pub(super) enum Tokens {
    /// The status says it.
    Known(i64),
    /// It has been found out now: the lock opens.
    Found(i64),
    /// It is not known.
    Lost(Lost),
}

/// A lock that is closed.
pub(super) struct Lost {
    /// The probe to make, if one is due.
    pub steps: Vec<Step>,
    pub next: Next,
    pub reason: &'static str,
    pub message: String,
}

impl Tokens {
    pub fn last(&self) -> Option<i64> {
        match self {
            Tokens::Known(last) | Tokens::Found(last) => Some(*last),
            Tokens::Lost(_) => None,
        }
    }

    pub fn lost(&self) -> Option<&Lost> {
        match self {
            Tokens::Lost(lost) => Some(lost),
            Tokens::Known(_) | Tokens::Found(_) => None,
        }
    }
}

pub(super) fn of(scene: &Scene<'_>) -> Tokens {
    let status = scene.deployment.status.as_ref();
    if let Some(last) = status.and_then(|status| status.last_token) {
        return Tokens::Known(last);
    }
    let known = known_to_runs(scene);
    let claimed = claimed(scene);
    if claimed.is_empty() {
        return Tokens::Found(known);
    }
    let lost = |reason, next, message: String| {
        Tokens::Lost(Lost {
            steps: Vec::new(),
            next,
            reason,
            message: format!("the lock is closed: its last token is lost; {message}"),
        })
    };
    let noticed = status
        .and_then(|status| conditions::find(&status.conditions, condition::LOCK_OPEN))
        .filter(|open| open.status == "False")
        .map(|open| open.last_transition_time.0);
    let Some(noticed) = noticed else {
        // What was asked before the loss says nothing: first it is written down when it was noticed.
        return lost(
            "TokensLost",
            Next::after_seconds(1),
            "machines will be asked".into(),
        );
    };
    let probes = probes(scene, noticed);
    if let Some(run) = probes.iter().find(|run| !attempts::is_over(run)) {
        let name = run.metadata.name.as_deref().unwrap_or_default();
        let message = format!(
            "run {name} asks {} for it",
            crate::sentence::count(run.spec.hosts.len(), "machine")
        );
        return lost("AsksMachines", Next::OnChange, message);
    }
    let answers: BTreeMap<&str, Result<i64, String>> = claimed
        .iter()
        .filter_map(|(name, host)| Some((*name, answer(host, name, &probes)?)))
        .collect();
    let told = answers
        .values()
        .filter_map(|answer| answer.as_ref().ok().copied());
    let known = told.fold(known, i64::max);
    let open: Vec<&str> = claimed
        .keys()
        .copied()
        .filter(|name| !answers.get(name).is_some_and(Result::is_ok))
        .collect();
    if open.is_empty() {
        return Tokens::Found(known);
    }
    let not_asked: Vec<&str> = open
        .iter()
        .copied()
        .filter(|name| !answers.contains_key(name))
        .collect();
    if not_asked.is_empty() && attempts::names_generation(&scene.deployment.metadata, annotation::UNLOCK) {
        return Tokens::Found(known.saturating_add(ROOM));
    }
    let ask = if not_asked.is_empty() { &open } else { &not_asked };
    let last = probes.iter().filter_map(|run| attempts::ended_at(run)).max();
    let at = last.map_or(scene.observed.now, |last| last + attempts::backoff(probes.len()));
    let silent = silent(scene, &answers);
    if not_asked.is_empty() && at > scene.observed.now {
        let message = format!("{silent}; asked again at {}", at.strftime("%H:%M:%S UTC"));
        return lost("MachinesSilent", until(scene, at), message);
    }
    // Old ones may be gone: the number grows, and no name comes twice.
    let number = probes.iter().map(|run| attempts::attempt_of(run) + 1).max();
    let ask = &ask[..ask.len().min(BATCH)];
    let run = probe(scene, ask, noticed, number.unwrap_or_default());
    let message = match silent.is_empty() {
        true => "machines are asked".to_owned(),
        false => silent,
    };
    match lost("AsksMachines", Next::OnChange, message) {
        Tokens::Lost(lost) => Tokens::Lost(Lost {
            steps: vec![Step::CreateRun(Box::new(run))],
            ..lost
        }),
        known => known,
    }
}

/// The highest token of all runs; one more for each that may have one that its status does not tell yet.
fn known_to_runs(scene: &Scene<'_>) -> i64 {
    let runs = scene
        .observed
        .runs
        .iter()
        .filter(|run| run.spec.intent != Intent::Probe);
    let token = |run: &PlaybookRun| {
        let token = run.status.as_ref().map(|status| status.token);
        token.filter(|token| *token <= HIGHEST).unwrap_or_default()
    };
    let held = scene
        .deployment
        .status
        .iter()
        .flat_map(|status| status.operations.iter().map(|held| held.token));
    let highest = runs.clone().map(|run| token(run)).chain(held).max();
    let untold = runs.filter(|run| !attempts::is_over(run) && token(run) == 0);
    highest.unwrap_or_default() + i64::try_from(untold.count()).unwrap_or_default()
}

/// Hosts that the cluster's Machines hold, by name.
fn claimed<'a>(scene: &Scene<'a>) -> BTreeMap<&'a str, &'a Host> {
    let machines = scene.observed.machines.iter();
    let uids: BTreeSet<&str> = machines
        .filter_map(|machine| machine.metadata.uid.as_deref())
        .collect();
    let held = |host: &&&Host| {
        let claim = host.spec.claim_ref.as_ref();
        claim.is_some_and(|claim| uids.contains(claim.uid.as_str()))
    };
    let hosts = scene.observed.hosts.iter().filter(held);
    hosts
        .map(|host| (host.metadata.name.as_deref().unwrap_or_default(), *host))
        .collect()
}

/// The probes of ours that were made since the loss was noticed.
fn probes<'a>(scene: &Scene<'a>, noticed: Timestamp) -> Vec<&'a PlaybookRun> {
    let since = |run: &&PlaybookRun| {
        let made = run.metadata.creation_timestamp.as_ref();
        run.spec.intent == Intent::Probe
            && scene.owns(&run.metadata)
            && made.is_some_and(|made| made.0 >= noticed)
    };
    scene.observed.runs.iter().copied().filter(since).collect()
}

/// What a machine said of the highest token of its present claim, or why it said nothing; none: it was not asked.
fn answer(host: &Host, name: &str, probes: &[&PlaybookRun]) -> Option<Result<i64, String>> {
    let asked = probes
        .iter()
        .filter(|run| run.spec.hosts.iter().any(|asked| asked == name));
    asked.map(|run| said(host, name, run)).max_by_key(|answer| {
        // One answer is enough; of failures the last one is told.
        answer.as_ref().map_or(-1, |token| *token)
    })
}

fn said(host: &Host, name: &str, run: &PlaybookRun) -> Result<i64, String> {
    let status = run.status.as_ref();
    let result = status.and_then(|status| status.hosts.iter().find(|result| result.name == name));
    let ended_well = status.and_then(|status| status.phase) == Some(RunPhase::Succeeded);
    let epoch = host.spec.claim_epoch;
    match result {
        Some(HostResult {
            failure: Some(failure),
            ..
        }) => Err(format!("{}: {}", failure.reason, failure.message)),
        Some(result) if result.unreachable => Err("SSH does not answer".into()),
        Some(HostResult {
            fence: Some(fence), ..
        }) if fence.epoch > epoch => Err(format!(
            "its guard has seen claim epoch {}, and the Host says {epoch} (from an old backup?): set spec.claimEpoch of the Host to {}",
            fence.epoch, fence.epoch
        )),
        Some(HostResult {
            fence: Some(fence), ..
        }) if fence.epoch == epoch && fence.token > HIGHEST => {
            Err("its guard tells a token that nobody gives out".into())
        }
        Some(HostResult {
            fence: Some(fence), ..
        }) if fence.epoch == epoch => Ok(fence.token),
        // No guard, or one of an earlier claim only.
        Some(HostResult { fence: Some(_), .. }) => Ok(0),
        Some(_) => Err("its guard was not asked".into()),
        None if ended_well => Err("the probe has no result for it".into()),
        None => Err(status
            .and_then(|status| status.message.clone())
            .unwrap_or_else(|| "the probe failed".into())),
    }
}

/// Which machines have not answered, why, and what a person can do.
fn silent(scene: &Scene<'_>, answers: &BTreeMap<&str, Result<i64, String>>) -> String {
    let silent: Vec<String> = answers
        .iter()
        .filter_map(|(name, answer)| Some(format!("{name} ({})", answer.as_ref().err()?)))
        .collect();
    if silent.is_empty() {
        return String::new();
    }
    let more = match silent.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "no answer from {}{more}: mend that, or open it without them: kubectl annotate --overwrite cd {} {}={}",
        silent[..silent.len().min(NAMED)].join(", "),
        scene.name,
        annotation::UNLOCK,
        scene.generation()
    )
}

/// A read-only look at machines; what their guards know comes with it.
fn probe(scene: &Scene<'_>, hosts: &[&str], noticed: Timestamp, attempt: i32) -> PlaybookRun {
    let noticed = noticed.to_string();
    let parts = hosts.iter().copied().chain([noticed.as_str()]);
    let name = naming::run(&scene.name, scene.uid(), Intent::Probe, parts, attempt);
    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut run = runs::of_cluster(
        scene,
        &name,
        Intent::Probe,
        vec![RunStep::ProbeHost],
        hosts,
        attempt,
    );
    run.spec.timeout_seconds = TIMEOUT_SECONDS;
    run
}
