//! Provisioning: whether a Machine is part of its cluster yet, and whether its next attempt is due.

use crds::step::Intent;
use crds::{ClusterDeployment, Machine, PlaybookRun};
use jiff::Timestamp;

use crate::attempts::{self, Policy, Turn};

/// Attempts at an install, and at the join of a machine, for one generation of the ClusterDeployment.
pub const ATTEMPTS: usize = 3;

/// Where the machine's provisioning stands. What was recorded in its status counts, even if the run is gone.
pub fn turn(
    machine: &Machine,
    deployment: &ClusterDeployment,
    runs: &[&PlaybookRun],
    now: Timestamp,
) -> Turn {
    let recorded = machine
        .status
        .as_ref()
        .and_then(|status| status.provisioned_at.as_ref());
    if let Some(at) = recorded {
        let run = machine
            .status
            .as_ref()
            .and_then(|status| status.last_run.as_ref());
        return Turn::Done {
            run: run.map(|run| run.name.clone()).unwrap_or_default(),
            at: Some(at.0),
        };
    }
    let uid = machine.metadata.uid.as_deref().unwrap_or_default();
    let tried = attempts::tried(runs, &[Intent::Install, Intent::Join], uid, None);
    let policy = Policy {
        limit: Some(ATTEMPTS),
        generation: deployment.metadata.generation.unwrap_or_default(),
        retry: asked_retry(machine, deployment),
    };
    attempts::turn(&tried, &policy, now)
}

/// Whether any run of ours has ever been about this machine: one that was only claimed needs no cleaning.
pub fn was_touched(machine: &Machine, runs: &[&PlaybookRun]) -> bool {
    let uid = machine.metadata.uid.as_deref().unwrap_or_default();
    let status = machine.status.as_ref();
    let told = status.is_some_and(|status| status.provisioned_at.is_some() || status.last_run.is_some());
    told || runs
        .iter()
        .any(|run| attempts::marks(run).values().any(|mark| mark.uid == uid))
}

fn asked_retry(machine: &Machine, deployment: &ClusterDeployment) -> Option<String> {
    let of_machine = attempts::asked_retry(
        machine.metadata.annotations.as_ref(),
        machine.metadata.generation.unwrap_or_default(),
    );
    let of_deployment = attempts::asked_retry(
        deployment.metadata.annotations.as_ref(),
        deployment.metadata.generation.unwrap_or_default(),
    );
    of_machine
        .map(|value| format!("machine {value}"))
        .or(of_deployment.map(|value| format!("cluster {value}")))
}
