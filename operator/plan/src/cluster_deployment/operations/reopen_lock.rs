//! Opens a lock whose last token was lost with the status, once all that may know one have been asked.

use std::cmp::Reverse;

use crds::Conditions;
use crds::PlaybookRun;
use crds::names::condition;
use crds::step::Intent;

use crate::attempts;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::state::ClusterState;
use crate::lock::tokens::Lost;

/// Probes that are kept whatever they say: by the newest it is known when the next one is due.
const NEWEST: usize = 8;

pub(super) fn propose(_: &ClusterState<'_>, round: &Round) -> Proposal {
    let lost = round.tokens.lost();
    let proposal = Proposal::default().condition(condition::LOCK_AVAILABLE, lost.map(Lost::statement));
    match lost {
        None => proposal,
        Some(lost) => {
            let probe = lost.probe.clone().map(Action::CreateRun);
            Proposal { actions: probe.into_iter().collect(), requeue: lost.next, ..proposal }
        }
    }
}

/// Probes in which a machine told its token, and the newest of all.
pub(super) fn keeps(state: &ClusterState<'_>) -> Vec<String> {
    let open = state.deployment.condition(condition::LOCK_AVAILABLE);
    if open.is_none_or(|open| open.status != "False") {
        return Vec::new();
    }
    let is_probe = |run: &&PlaybookRun| run.spec.intent == Intent::Probe;
    let mut probes: Vec<&PlaybookRun> = state.observed.runs.iter().copied().filter(is_probe).collect();
    probes.sort_by_key(|run| Reverse(attempts::ended_at(run)));
    let told = |run: &PlaybookRun| {
        let mut results = run.status.iter().flat_map(|status| &status.hosts);
        results.any(|result| result.fence.is_some())
    };
    let kept = probes.iter().enumerate().filter(|(age, run)| *age < NEWEST || told(run));
    kept.filter_map(|(_, run)| run.metadata.name.clone()).collect()
}
