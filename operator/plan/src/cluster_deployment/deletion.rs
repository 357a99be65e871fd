//! The end of a cluster: runs are canceled, machines deleted and cleaned (or let go as they are), and then it goes.

use crds::cluster_deployment::DeletionPolicy;
use crds::step::Intent;

use super::scene::Scene;
use super::tokens::Tokens;
use super::{Step, reset, runs};
use crate::{Next, sentence};

/// What is to be done.
pub(super) struct Deletion {
    pub steps: Vec<Step>,
    pub next: Next,
    pub reason: &'static str,
    pub message: String,
}

pub(super) fn of(scene: &Scene<'_>, tokens: &Tokens) -> Deletion {
    let waits = |reason, message: String| Deletion {
        steps: Vec::new(),
        next: Next::OnChange,
        reason,
        message,
    };
    if scene.live.is_empty() && scene.leaving.is_empty() && scene.active.is_empty() {
        return Deletion {
            steps: vec![Step::RemoveFinalizer],
            next: Next::OnChange,
            reason: "MachinesReleased",
            message: "every machine is given back".into(),
        };
    }
    let in_the_way: Vec<_> = scene
        .active
        .iter()
        .copied()
        .filter(|run| run.spec.intent != Intent::Reset)
        .collect();
    if let Some(first) = in_the_way.first() {
        let running = in_the_way.iter().filter(|run| !run.spec.cancel);
        let steps = running
            .map(|run| Step::CancelRun(Box::new((*run).clone())))
            .collect();
        let name = first.metadata.name.as_deref().unwrap_or_default();
        return Deletion {
            steps,
            ..waits(
                "CancelsRuns",
                format!("cancels run {name} ({})", runs::describe(scene, first)),
            )
        };
    }
    if !scene.live.is_empty() {
        let steps = scene
            .live
            .iter()
            .map(|member| Step::DeleteMachine(Box::new(member.machine.clone())));
        return Deletion {
            steps: steps.collect(),
            ..waits(
                "DeletesMachines",
                format!("deletes {}", sentence::count(scene.live.len(), "machine")),
            )
        };
    }
    if scene.deployment.spec.deletion_policy == DeletionPolicy::Reset {
        let paused = scene.deployment.spec.paused;
        if paused && scene.active.is_empty() {
            return waits(
                "Paused",
                "paused: set spec.paused to false to let the deletion go on".into(),
            );
        }
        if let Some(lost) = tokens.lost() {
            return Deletion {
                next: lost.next,
                ..waits(lost.reason, lost.message.clone())
            };
        }
        let resets = reset::of(scene);
        if let Some(run) = scene.active.first() {
            return Deletion {
                steps: resets.steps,
                ..waits("CleansMachines", runs::describe(scene, run))
            };
        }
        if let Some((member, at, cause)) = resets.later.iter().min_by_key(|(_, at, _)| *at) {
            let others = match resets.later.len() {
                1 => String::new(),
                more => format!(" (and {} more)", more - 1),
            };
            return Deletion {
                steps: resets.steps,
                next: until(scene, *at),
                reason: "ResetFailed",
                message: format!(
                    "cannot clean Host {}{others}: {}: {}; tried again at {} (spec.deletionPolicy Detach lets machines go as they are)",
                    member.host_name().unwrap_or_default(),
                    cause.reason,
                    cause.message,
                    at.strftime("%H:%M:%S UTC")
                ),
            };
        }
        if !resets.steps.is_empty() {
            return Deletion {
                steps: resets.steps,
                ..waits(
                    "CleansMachines",
                    format!("cleans {}", sentence::count(scene.leaving.len(), "machine")),
                )
            };
        }
    }
    let first = scene
        .leaving
        .first()
        .map(|member| format!("{}: {}", member.title(), member.says()));
    waits(
        "WaitsForMachines",
        format!(
            "waits for {} to go: {}",
            sentence::count(scene.leaving.len(), "machine"),
            first.unwrap_or_default()
        ),
    )
}

/// Look again then; times are whole seconds, so a little after.
pub(super) fn until(scene: &Scene<'_>, at: jiff::Timestamp) -> Next {
    let seconds = at.duration_since(scene.observed.now).as_secs().max(0);
    Next::after_seconds(u64::try_from(seconds).unwrap_or_default() + 1)
}
