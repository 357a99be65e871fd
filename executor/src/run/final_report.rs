//! The final report of a run: to its termination message, a file, the log and its status.

use std::path::PathBuf;
use std::time::Duration;

use crds::playbook_run::RunOutcome;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{error, info, warn};

use super::ended::Ended;
use crate::api_client;
use crate::cli::Run;
use crate::fold::Snapshot;
use crate::outcome;
use crate::report::{Reporter, Status};
use crate::stop::Stops;

const TERMINATION_LOG: &str = "/dev/termination-log";
/// A run has at least this long for its final report.
const REPORT: Duration = Duration::from_secs(60);
/// One that is stopped is over before its Pod is killed, 120 s after it was asked to end.
const GRACE: Duration = Duration::from_secs(110);
const SHORTEST_REPORT: Duration = Duration::from_secs(5);
/// One without a deadline has this long.
const REPORT_WITHOUT_DEADLINE: Duration = Duration::from_secs(600);

/// Reports to the run's status, if there is one.
pub(super) async fn reporter(args: &Run, watching: watch::Receiver<Snapshot>) -> Option<Reporter> {
    let (namespace, name) = args.run.as_deref()?.split_once('/')?;
    match api_client::client().await {
        Ok(client) => Some(Reporter::start(Status::new(client, namespace, name), watching)),
        Err(error) => {
            error!(%error, "failed to find the API server: the termination message alone tells the outcome");
            None
        }
    }
}

/// Writes the termination message, if there is to be one.
pub(super) fn write_termination_message(args: &Run, outcome: &RunOutcome) {
    let file = args.termination_message.clone().or(args.run.as_ref().map(|_| PathBuf::from(TERMINATION_LOG)));
    if let Some(file) = file
        && let Err(error) = outcome::write_termination_message(&file, outcome)
    {
        warn!(%error, file = %file.display(), "failed to write the termination message");
    }
}

/// Sends the final report: first where it cannot fail, then to the status.
pub(super) async fn send(args: &Run, ended: &Ended, reporter: Option<Reporter>, stops: &Stops) {
    write_termination_message(args, &ended.outcome);
    if let Some(file) = &args.result {
        let text = serde_json::to_vec_pretty(&ended.snapshot).unwrap_or_default();
        if let Err(error) = std::fs::write(file, text) {
            warn!(%error, file = %file.display(), "failed to write the result");
        }
    }
    let outcome = &ended.outcome;
    info!(phase = ?outcome.phase, reason = outcome.reason, message = outcome.message, exit_code = ended.exit_code, "run ended");
    if let Some(reporter) = reporter {
        let now = Instant::now();
        let until = match (stops.stopped(), stops.deadline()) {
            (Some(stopped), _) => (stopped + GRACE).max(now + SHORTEST_REPORT),
            (None, Some(deadline)) => deadline.max(now + REPORT),
            (None, None) => now + REPORT_WITHOUT_DEADLINE,
        };
        reporter.finish(ended.snapshot.clone(), until).await;
    }
}
