//! Events and counters about a changed status.

use std::time::Duration;

use crds::playbook_run::RunPhase;
use crds::{PlaybookRun, PlaybookRunStatus};

use crate::context::Context;

/// Reports a change of phase.
pub(super) async fn phase(ctx: &Context, run: &PlaybookRun, status: &PlaybookRunStatus) {
    let (before, after) = (run.status.as_ref().and_then(|status| status.phase), status.phase);
    let Some(phase) = after.filter(|_| before != after) else {
        return;
    };
    let message = status.message.as_deref().unwrap_or_default();
    let reason = format!("{phase:?}");
    match phase {
        RunPhase::Pending => {}
        RunPhase::Running | RunPhase::Succeeded => ctx.events.normal(run, &reason, message).await,
        RunPhase::Failed | RunPhase::Canceled | RunPhase::DeadlineExceeded | RunPhase::Unknown => {
            ctx.events.warning(run, &reason, message).await;
        }
    }
    if phase.is_final() {
        let (begun, ended) = (status.started_at.as_ref(), status.finished_at.as_ref());
        let took = begun.zip(ended).map_or(0, |(begun, ended)| ended.0.as_second() - begun.0.as_second());
        let took = Duration::from_secs(u64::try_from(took).unwrap_or(0));
        ctx.metrics.run_ended(run.spec.intent.spec().slug, &reason, took);
    }
}
