//! How a run ended: its last snapshot, its outcome, its exit code.

use crds::playbook_run::{HostFailure, RunOutcome, StepPhase};
use tracing::error;

use super::error::RunError;
use crate::fold::Snapshot;
use crate::outcome;
use crate::stop::Stop;

/// A run that has ended.
pub(super) struct Ended {
    pub snapshot: Snapshot,
    pub outcome: RunOutcome,
    pub exit_code: u8,
}

impl Ended {
    /// The end of a run that was played.
    pub(super) fn played(snapshot: Snapshot, outcome: RunOutcome, stop: Option<Stop>) -> Self {
        let exit_code = outcome::exit_code(&outcome, &snapshot.hosts, stop);
        Self { snapshot, outcome, exit_code }
    }

    /// The end of a run that failed before it was played: no host is done, and each says so.
    pub(super) fn not_played(error: &RunError, mut snapshot: Snapshot, digest: &str) -> Self {
        let (exit_code, chain) = (error.exit_code(), error.chain());
        error!(error = chain, "the run was not played");
        let retriable = exit_code == outcome::INTERNAL;
        let outcome = outcome::nothing_done(error.reason(), &chain, digest, snapshot.hosts.len(), retriable);
        for host in snapshot.hosts.iter_mut().filter(|host| host.failure.is_none()) {
            host.failure = Some(HostFailure {
                step: String::new(),
                task: String::new(),
                reason: outcome.reason.clone(),
                message: outcome.message.clone(),
            });
        }
        for step in snapshot.steps.iter_mut().filter(|step| step.phase == StepPhase::Pending) {
            step.phase = StepPhase::Skipped;
        }
        snapshot.outcome = Some(outcome.clone());
        Self { snapshot, outcome, exit_code }
    }
}
