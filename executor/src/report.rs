//! Says in the run's status where things stand: at most once a second, not at all when nothing changed, and the last word until it is
//! heard. Only the executor's own fields are sent; the operator's are never touched.

use std::time::Duration;

use crds::PlaybookRun;
use crds::names::EXECUTOR_FIELD_MANAGER;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::fold::Snapshot;

const INTERVAL: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// One request.
const REQUEST: Duration = Duration::from_secs(15);

/// Where the status goes.
pub struct Status {
    api: Api<PlaybookRun>,
    run: String,
}

/// Reports in the background.
pub struct Reporter {
    last: oneshot::Sender<(Snapshot, Instant)>,
    task: JoinHandle<bool>,
}

impl Status {
    /// The status of `namespace/name`.
    pub fn new(client: kube::Client, namespace: &str, run: &str) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            run: run.to_owned(),
        }
    }

    async fn send(&self, snapshot: &Snapshot) -> Result<(), Failure> {
        let patch = json!({
            "apiVersion": <PlaybookRun as kube::Resource>::api_version(&()),
            "kind": <PlaybookRun as kube::Resource>::kind(&()),
            "status": fields(snapshot),
        });
        let params = PatchParams::apply(EXECUTOR_FIELD_MANAGER).force();
        match timeout(
            REQUEST,
            self.api.patch_status(&self.run, &params, &Patch::Apply(&patch)),
        )
        .await
        {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Err(Failure::Gone),
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 413 | 422) => {
                Err(Failure::Refused(status.message.clone()))
            }
            Ok(Err(error)) => Err(Failure::Lost(error.to_string())),
            Err(_) => Err(Failure::Lost("no answer within 15 s".to_owned())),
        }
    }
}

/// Why a report did not arrive.
enum Failure {
    /// The run is not there any more: nobody listens.
    Gone,
    /// The API server does not take what was said.
    Refused(String),
    /// It may arrive the next time.
    Lost(String),
}

impl Reporter {
    /// Starts to report what the watch shows.
    pub fn start(status: Status, snapshots: watch::Receiver<Snapshot>) -> Self {
        let (last, word) = oneshot::channel();
        let task = tokio::spawn(report(status, snapshots, word));
        Self { last, task }
    }

    /// Sends the last word, again and again until it arrives or the deadline is over; true when it arrived.
    pub async fn finish(self, snapshot: Snapshot, deadline: Instant) -> bool {
        // When the task has ended already, the run is gone.
        let _ = self.last.send((snapshot, deadline));
        self.task.await.unwrap_or(false)
    }
}

async fn report(
    status: Status,
    mut snapshots: watch::Receiver<Snapshot>,
    mut last: oneshot::Receiver<(Snapshot, Instant)>,
) -> bool {
    let mut sent: Option<Snapshot> = None;
    let mut wait = INTERVAL;
    let word = loop {
        let current = snapshots.borrow_and_update().clone();
        if sent.as_ref() != Some(&current) {
            match status.send(&current).await {
                Ok(()) => {
                    sent = Some(current);
                    wait = INTERVAL;
                }
                Err(Failure::Gone) => {
                    warn!("the PlaybookRun is gone: nothing more is reported");
                    return false;
                }
                Err(Failure::Refused(problem) | Failure::Lost(problem)) => {
                    warn!(problem, "failed to report progress");
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
            }
        }
        let next = async {
            sleep(wait).await;
            // Closed: only the last word is missing.
            if sent.is_some() && snapshots.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            word = &mut last => break word,
            () = next => {}
        }
    };
    match word {
        Ok((snapshot, deadline)) => send_last(&status, snapshot, deadline).await,
        Err(_) => false,
    }
}

async fn send_last(status: &Status, mut snapshot: Snapshot, deadline: Instant) -> bool {
    let mut wait = INTERVAL;
    let mut bare = false;
    loop {
        match status.send(&snapshot).await {
            Ok(()) => {
                info!("the outcome is in the status");
                return true;
            }
            Err(Failure::Gone) => {
                warn!("the PlaybookRun is gone: the outcome stands in the termination message only");
                return false;
            }
            Err(Failure::Refused(problem)) if !bare => {
                warn!(problem, "the status was refused: trying without details");
                strip(&mut snapshot);
                bare = true;
            }
            Err(Failure::Refused(problem) | Failure::Lost(problem)) => {
                warn!(problem, "failed to report the outcome");
                if Instant::now() + wait >= deadline {
                    return false;
                }
                sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        }
    }
}

/// Leaves only what decides.
fn strip(snapshot: &mut Snapshot) {
    for host in &mut snapshot.hosts {
        host.findings.clear();
        host.leftovers.clear();
        host.facts = None;
        host.host_key = None;
        if let Some(failure) = &mut host.failure {
            failure.message = crate::foreign_text::cut(&failure.message, 100);
        }
    }
}

/// The executor's fields of the status.
fn fields(snapshot: &Snapshot) -> Value {
    serde_json::to_value(snapshot).unwrap_or(Value::Null)
}
