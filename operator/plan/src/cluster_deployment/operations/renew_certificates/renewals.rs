//! The runs that renewed a machine's certificates, or tried to.

use crds::PlaybookRun;
use crds::playbook_run::RunPhase;
use crds::step::Intent;
use jiff::Timestamp;

use crate::attempts;
use crate::cluster_deployment::state::ClusterState;

/// The cluster's own renewals of a machine, the newest first.
pub(super) fn renewals<'a>(state: &ClusterState<'a>, uid: &str) -> Vec<&'a PlaybookRun> {
    state.newest_runs(|run| run.spec.intent == Intent::Renew && attempts::is_about(run, uid))
}

/// When a machine's certificates were renewed last.
pub(super) fn renewed_at(state: &ClusterState<'_>, uid: &str) -> Option<Timestamp> {
    let succeeded = |run: &&PlaybookRun| {
        let phase = run.status.as_ref().and_then(|status| status.phase);
        phase == Some(RunPhase::Succeeded)
    };
    renewals(state, uid).into_iter().filter(succeeded).filter_map(attempts::ended_at).max()
}
