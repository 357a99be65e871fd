//! Attempts: what our runs remember of themselves, what came out for one machine, and whether to try again.

mod made;
mod outcome;
mod retry;
mod retry_decision;
mod terms;

use std::collections::BTreeMap;

use crds::ObjectExt;
use crds::PlaybookRun;
use crds::names::annotation;
use crds::playbook_run::{RunPhase, StepPhase};
use crds::step::Intent;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use made::{Attempt, last, next_number, owned_by, reason_of, said, was_paused};
pub use outcome::{Failure, Outcome, outcome, why_halted};
pub use retry::{asked, asked_retry, names_generation, next_retry, next_value, retry_command};
pub use retry_decision::{Policy, RetryDecision, Stops, backoff, retry_decision};
pub use terms::{HasTerms, Terms};

/// The Machine that a Host was in a run, and the retry that a person asked for, if that is why it was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// UID of the Machine.
    pub uid: String,
    /// Value of the annotation that asked for this attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<String>,
    /// Generation of the Host: one that was changed since is worth new attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_generation: Option<i64>,
}

/// The Machines of a run, by Host; empty for a run that no controller of ours made.
pub fn targets(run: &PlaybookRun) -> BTreeMap<String, TargetRecord> {
    let text = annotation_of(run, annotation::MACHINES);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Whether a run of a controller of ours is about the Machine with this UID.
pub fn is_about(run: &PlaybookRun, uid: &str) -> bool {
    targets(run).values().any(|target| target.uid == uid)
}

/// How often the same was tried before the run.
pub fn attempt_of(run: &PlaybookRun) -> i32 {
    number(run, annotation::ATTEMPT).map_or(0, |number| i32::try_from(number).unwrap_or(i32::MAX))
}

/// The number of the attempt after all of these.
pub fn number_after<'r>(runs: impl IntoIterator<Item = &'r PlaybookRun>) -> i32 {
    let numbers = runs.into_iter().map(|run| attempt_of(run).saturating_add(1));
    numbers.max().unwrap_or_default()
}

/// What the ClusterDeployment wanted when the run was made, as a digest.
pub fn wanted_of(run: &PlaybookRun) -> Option<&str> {
    annotation_of(run, annotation::WANTED)
}

/// The generation of the ClusterDeployment that the run was made from.
pub fn generation_of(run: &PlaybookRun) -> Option<i64> {
    number(run, annotation::GENERATION)
}

fn number(run: &PlaybookRun, key: &str) -> Option<i64> {
    annotation_of(run, key)?.parse().ok()
}

fn annotation_of<'a>(run: &'a PlaybookRun, key: &str) -> Option<&'a str> {
    let annotations = run.metadata.annotations.as_ref()?;
    annotations.get(key).map(String::as_str)
}

/// True once nothing more comes of the run.
pub fn is_over(run: &PlaybookRun) -> bool {
    let status = run.status.as_ref();
    status.and_then(|status| status.phase).is_some_and(RunPhase::is_final)
}

/// When nothing more came of the run.
pub fn ended_at(run: &PlaybookRun) -> Option<Timestamp> {
    let finished = run.status.as_ref().and_then(|status| status.finished_at.as_ref());
    finished.or(run.created_at()).map(|time| time.0)
}

/// How many steps of the run were done for a Host, from the first on, when it ended. Steps that a resumed run passed
/// over count, since their probes said that they are done.
pub fn steps_done(run: &PlaybookRun, host: &str) -> usize {
    let Some(status) = &run.status else { return 0 };
    let failure = status.hosts.iter().find(|result| result.name == host).and_then(|result| result.failure.as_ref());
    // A step may have gone well on others where this one failed.
    let failed_in = failure.and_then(|failure| {
        let name = |step: &&crds::Step| step.name() == failure.step;
        run.spec.steps.iter().position(|step| name(&step))
    });
    let done = |step: &crds::Step| {
        let found = status.steps.iter().find(|told| told.name == *step);
        found.is_some_and(|told| told.phase == StepPhase::Succeeded)
    };
    let reached = failed_in.unwrap_or(run.spec.steps.len());
    run.spec.steps.iter().take(reached).take_while(|step| done(step)).count()
}

/// One earlier attempt at the same thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastAttempt {
    /// Name of the run.
    pub run: String,
    /// Its number.
    pub attempt: i32,
    /// Digest of what the ClusterDeployment wanted when it was made.
    pub wanted: Option<String>,
    /// Generation of the Host then.
    pub host_generation: Option<i64>,
    /// The retry that asked for it.
    pub retry: Option<String>,
    /// The retry that a person asks for on this very run.
    pub asked: Option<String>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// It began where another had stopped.
    pub resumed: bool,
    /// Steps that were done when it ended.
    pub steps_done: usize,
    /// How many machines it was about.
    pub machines: usize,
    /// What came out.
    pub outcome: Outcome,
}

/// The attempts at an intent for a machine, oldest first.
pub fn tried(runs: &[&PlaybookRun], intents: &[Intent], machine_uid: &str) -> Vec<PastAttempt> {
    let of_machine = |run: &PlaybookRun| {
        let mut targets = targets(run).into_iter();
        let ours = || targets.find(|(_, target)| target.uid == machine_uid);
        intents.contains(&run.spec.intent).then(ours).flatten()
    };
    tried_by(runs, of_machine)
}

/// The attempts that are ours, oldest first: each by the Host in whose outcome it came out, and its mark.
pub fn tried_by(
    runs: &[&PlaybookRun],
    ours: impl Fn(&PlaybookRun) -> Option<(String, TargetRecord)>,
) -> Vec<PastAttempt> {
    let mut tried: Vec<PastAttempt> = runs
        .iter()
        .filter_map(|run| {
            let (host, target) = ours(run)?;
            let name = run.name().to_owned();
            let asked = asked_retry(run.metadata.annotations.as_ref(), run.generation());
            Some(PastAttempt {
                asked: asked.map(|value| format!("run {name} {value}")),
                run: name,
                attempt: attempt_of(run),
                wanted: wanted_of(run).map(str::to_owned),
                host_generation: target.host_generation,
                retry: target.retry,
                ended: ended_at(run),
                resumed: run.spec.resume,
                steps_done: steps_done(run, &host),
                machines: targets(run).len(),
                outcome: outcome(run, &host),
            })
        })
        .collect();
    tried.sort_by_key(|tried| tried.attempt);
    tried
}
