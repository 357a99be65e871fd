//! A run without a Job: refused, waiting, or started. Order of creation: inputs, what takes its
//! results, permission, Job.

use crds::PlaybookRunStatus;
use crds::Reason;
use crds::inputs::{MODEL_FILE, RunInputs};
use crds::names::finalizer;
use crds::playbook_run::{FrozenInputs, FrozenSettings, RunPhase};
use crds::{ObjectExt, PlaybookRun};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sha2::{Digest, Sha256};

use super::Grant;
use super::action::Action;
use super::observed::{InputsSeen, RunObserved};
use super::permission::permission;
use super::receiver::receiver;
use super::releasing::let_go;
use super::status::{over, under_way};
use crate::inputs::{MODEL_LIMIT, refused, secrets_needed};
use crate::job::{JobWanted, job, metadata};
use crate::{Next, Plan, attempts};

/// A lock that is given is seen at once; this is for a change that nobody told.
const LOOK_AT_LOCK_SECONDS: u64 = 60;
/// Secrets are not watched.
const LOOK_AT_INPUTS_SECONDS: u64 = 10;

pub(super) fn plan(observed: &RunObserved<'_>) -> Plan<Action, PlaybookRunStatus> {
    let run = observed.run;
    if run.is_deleting() {
        let held = run.has_finalizer(finalizer::RUN);
        let actions = if held { let_go().into() } else { Vec::new() };
        return Plan { actions, ..ended(observed.status()) };
    }
    if observed.stop_is_asked() {
        let (phase, reason) = (RunPhase::Canceled, Reason::Canceled);
        return ended(over(observed, phase, false, reason, "canceled before it began"));
    }
    if let Some(problem) = refused(run) {
        return failed(observed, false, problem.reason, &problem.message);
    }
    if run.spec.paused {
        let message = "paused: it begins when the pause ends";
        return waits(observed, Reason::Paused, message, LOOK_AT_LOCK_SECONDS);
    }
    let token = match &observed.grant {
        Grant::Given { token } => *token,
        Grant::Waits { message } => {
            return waits(observed, Reason::WaitingForLock, message, LOOK_AT_LOCK_SECONDS);
        }
        Grant::NotLookedAt => {
            let message = "the lock has not been looked at";
            return waits(observed, Reason::WaitingForLock, message, 1);
        }
    };
    start_with_inputs(observed, token)
}

fn start_with_inputs(observed: &RunObserved<'_>, token: i64) -> Plan<Action, PlaybookRunStatus> {
    match &observed.inputs {
        InputsSeen::Model { text, .. } if text.len() > MODEL_LIMIT => {
            let message = format!(
                "the inputs are {} bytes, at most {MODEL_LIMIT} fit: work on fewer hosts at once, or give smaller manifests or variables",
                text.len()
            );
            failed(observed, false, Reason::InputsTooLarge, &message)
        }
        InputsSeen::Model { text, model, settings } => start(observed, token, text, model, settings.clone()),
        InputsSeen::NotLookedAt => {
            let message = "the inputs have not been looked at";
            waits(observed, Reason::WaitingForInputs, message, 1)
        }
        InputsSeen::Problem(problem) if problem.permanent => {
            failed(observed, problem.retriable, problem.reason, &problem.message)
        }
        InputsSeen::Problem(problem) if too_late(observed) => {
            let message = format!("not started in time: {}", problem.message);
            failed(observed, true, problem.reason, &message)
        }
        InputsSeen::Problem(problem) => waits(observed, problem.reason, &problem.message, LOOK_AT_INPUTS_SECONDS),
    }
}

fn start(
    observed: &RunObserved<'_>,
    token: i64,
    text: &str,
    model: &RunInputs,
    settings: Option<FrozenSettings>,
) -> Plan<Action, PlaybookRunStatus> {
    let run = observed.run;
    let inputs = frozen(run, digest(text));
    let attempt = attempts::attempt_of(run);
    let image = observed.image;
    let config_map = ConfigMap {
        metadata: ObjectMeta { ..metadata(run, run.name()) },
        data: Some([(MODEL_FILE.to_owned(), text.to_owned())].into()),
        immutable: Some(true),
        ..ConfigMap::default()
    };
    let receiver = receiver(run).map(|secret| Action::MakeReceiver(Box::new(secret)));
    let before = [
        Action::Hold,
        Action::Freeze {
            config_map: Box::new(config_map),
            model: Box::new(model.clone()),
            needs: secrets_needed(model),
        },
    ];
    let then = [
        Action::Permit(Box::new(permission(run))),
        Action::Start(Box::new(job(&JobWanted {
            run,
            image,
            token,
            attempt,
            inputs: &inputs,
            pod: observed.pod,
            volume_claim: volume_claim(model),
        }))),
    ];
    let actions = before.into_iter().chain(receiver).chain(then).collect();
    let mut status =
        under_way(observed, RunPhase::Pending, Reason::Starting, "its Job is being made", "its Job is being made");
    status.token = token;
    status.attempt = attempt;
    status.inputs = Some(inputs);
    status.settings = settings;
    Plan { actions, status, next: Next::after_seconds(5), waits_for: Some("its Job".into()) }
}

/// The volume of the storage that a run writes a backup to, or reads one from.
fn volume_claim(model: &RunInputs) -> Option<&str> {
    let written = model.backup.as_ref().and_then(|backup| backup.volume_claim.as_deref());
    written.or(model.staging.as_ref().and_then(|staging| staging.volume_claim.as_deref()))
}

/// `sha256:<hex>` of a model's text.
fn digest(text: &str) -> String {
    let hex: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// A probe or a comparison that cannot start makes room for the next one.
fn too_late(observed: &RunObserved<'_>) -> bool {
    let run = observed.run;
    let created = run.created_at().map_or(observed.now, |time| time.0);
    run.spec.intent.changes_nothing()
        && observed.now.as_second() - created.as_second() > i64::from(run.spec.timeout_seconds)
}

fn waits(observed: &RunObserved<'_>, reason: Reason, message: &str, seconds: u64) -> Plan<Action, PlaybookRunStatus> {
    Plan {
        actions: Vec::new(),
        status: under_way(observed, RunPhase::Pending, reason, message, message),
        next: Next::after_seconds(seconds),
        waits_for: Some(message.to_owned()),
    }
}

fn failed(
    observed: &RunObserved<'_>,
    retriable: bool,
    reason: Reason,
    message: &str,
) -> Plan<Action, PlaybookRunStatus> {
    ended(over(observed, RunPhase::Failed, retriable, reason, message))
}

fn ended(status: PlaybookRunStatus) -> Plan<Action, PlaybookRunStatus> {
    Plan { actions: Vec::new(), status, next: Next::OnChange, waits_for: None }
}

/// What a frozen model is called, and its digest.
pub fn frozen(run: &PlaybookRun, digest: String) -> FrozenInputs {
    FrozenInputs { digest, config_map: run.name().to_owned(), secret: run.name().to_owned() }
}
