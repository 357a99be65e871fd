//! A run without a Job: refused, waiting, or started. Order of creation: inputs, permission, Job.

use crds::ObjectExt;
use crds::PlaybookRunStatus;
use crds::Reason;
use crds::inputs::{MODEL_FILE, RunInputs};
use crds::names::finalizer;
use crds::playbook_run::{FrozenSettings, RunPhase};
use crds::step::Intent;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sha2::{Digest, Sha256};

use super::permission::permission;
use super::{Grant, InputsSeen, RunObserved, Step, frozen, holds, let_go, name_of, over, under_way};
use crate::inputs::{MODEL_LIMIT, refused, secrets_needed};
use crate::job::{JobWanted, job, metadata};
use crate::{Next, Plan, attempts};

/// A lock that is given is seen at once; this is for a change that nobody told.
const LOOK_AT_LOCK_SECONDS: u64 = 60;
/// Secrets are not watched.
const LOOK_AT_INPUTS_SECONDS: u64 = 10;

pub(super) fn plan(observed: &RunObserved<'_>) -> Plan<Step, PlaybookRunStatus> {
    let run = observed.run;
    if run.is_deleting() {
        let held = holds(run.metadata.finalizers.as_deref(), finalizer::RUN);
        let steps = if held { let_go().into() } else { Vec::new() };
        return Plan {
            steps,
            status: observed.status(),
            next: Next::OnChange,
            waits_for: None,
        };
    }
    if observed.stop_is_asked() {
        return ended(over(
            observed,
            RunPhase::Canceled,
            false,
            Reason::Canceled,
            "canceled before it began",
        ));
    }
    if let Some(problem) = refused(run) {
        return ended(over(
            observed,
            RunPhase::Failed,
            false,
            problem.reason,
            &problem.message,
        ));
    }
    if run.spec.paused {
        return waits(
            observed,
            Reason::Paused,
            "paused: it begins when the pause ends",
            LOOK_AT_LOCK_SECONDS,
        );
    }
    let token = match &observed.grant {
        Grant::Given { token } => *token,
        Grant::Waits { message } => {
            return waits(observed, Reason::WaitingForLock, message, LOOK_AT_LOCK_SECONDS);
        }
        Grant::NotLookedAt => {
            return waits(
                observed,
                Reason::WaitingForLock,
                "the lock has not been looked at",
                1,
            );
        }
    };
    let (text, model, settings) = match &observed.inputs {
        InputsSeen::Model {
            text,
            model,
            settings,
        } => (text, model, settings),
        InputsSeen::NotLookedAt => {
            return waits(
                observed,
                Reason::WaitingForInputs,
                "the inputs have not been looked at",
                1,
            );
        }
        InputsSeen::Problem(problem) if problem.permanent => {
            return ended(over(
                observed,
                RunPhase::Failed,
                problem.retriable,
                problem.reason,
                &problem.message,
            ));
        }
        InputsSeen::Problem(problem) if too_late(observed) => {
            let message = format!("not started in time: {}", problem.message);
            return ended(over(observed, RunPhase::Failed, true, problem.reason, &message));
        }
        InputsSeen::Problem(problem) => {
            return waits(observed, problem.reason, &problem.message, LOOK_AT_INPUTS_SECONDS);
        }
    };
    if text.len() > MODEL_LIMIT {
        let message = format!(
            "the inputs are {} bytes, at most {MODEL_LIMIT} fit: work on fewer hosts at once, or give smaller manifests or variables",
            text.len()
        );
        return ended(over(
            observed,
            RunPhase::Failed,
            false,
            Reason::InputsTooLarge,
            &message,
        ));
    }
    start(observed, token, text, model, settings.clone())
}

fn start(
    observed: &RunObserved<'_>,
    token: i64,
    text: &str,
    model: &RunInputs,
    settings: Option<FrozenSettings>,
) -> Plan<Step, PlaybookRunStatus> {
    let run = observed.run;
    let inputs = frozen(run, digest(text));
    let attempt = attempts::attempt_of(run);
    let image = observed.image;
    let config_map = ConfigMap {
        metadata: ObjectMeta {
            ..metadata(run, &name_of(run))
        },
        data: Some([(MODEL_FILE.to_owned(), text.to_owned())].into()),
        immutable: Some(true),
        ..ConfigMap::default()
    };
    let steps = vec![
        Step::Hold,
        Step::Freeze {
            config_map: Box::new(config_map),
            model: Box::new(model.clone()),
            needs: secrets_needed(model),
        },
        Step::Permit(Box::new(permission(run))),
        Step::Start(Box::new(job(&JobWanted {
            run,
            image,
            token,
            attempt,
            inputs: &inputs,
            pod: observed.pod,
        }))),
    ];
    let mut status = under_way(
        observed,
        RunPhase::Pending,
        Reason::Starting,
        "its Job is being made",
        "its Job is being made",
    );
    status.token = token;
    status.attempt = attempt;
    status.inputs = Some(inputs);
    status.settings = settings;
    Plan {
        steps,
        status,
        next: Next::after_seconds(5),
        waits_for: Some("its Job".into()),
    }
}

/// `sha256:<hex>` of a model's text.
fn digest(text: &str) -> String {
    let hex: String = Sha256::digest(text)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hex}")
}

/// A probe that cannot start makes room for the next one: only one is under way in a namespace.
fn too_late(observed: &RunObserved<'_>) -> bool {
    let run = observed.run;
    let created = run.created_at().map_or(observed.now, |time| time.0);
    run.spec.intent == Intent::Probe
        && observed.now.as_second() - created.as_second() > i64::from(run.spec.timeout_seconds)
}

fn waits(
    observed: &RunObserved<'_>,
    reason: Reason,
    message: &str,
    seconds: u64,
) -> Plan<Step, PlaybookRunStatus> {
    Plan {
        steps: Vec::new(),
        status: under_way(observed, RunPhase::Pending, reason, message, message),
        next: Next::after_seconds(seconds),
        waits_for: Some(message.to_owned()),
    }
}

fn ended(status: PlaybookRunStatus) -> Plan<Step, PlaybookRunStatus> {
    Plan {
        steps: Vec::new(),
        status,
        next: Next::OnChange,
        waits_for: None,
    }
}
