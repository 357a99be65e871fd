//! Reports progress in the run's status: at most once a second, not at all when nothing changed, and the final report
//! until it arrives. Only the executor's own fields are sent; the operator's are never touched.

use std::time::Duration;

use crds::PlaybookRun;
use crds::names::EXECUTOR_FIELD_MANAGER;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};

use crate::fold::Snapshot;
use crate::play::Pauses;

const INTERVAL: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// One request.
const REQUEST: Duration = Duration::from_secs(15);

/// Where the status goes. Of the answer no more is read than is needed: the definitions may be a newer release's by
/// now, without a field that this one requires.
pub struct Status {
    api: Api<DynamicObject>,
    run: String,
}

/// Reports in the background.
pub struct Reporter {
    last: oneshot::Sender<(Snapshot, Instant)>,
    asks: mpsc::Sender<oneshot::Sender<bool>>,
    task: JoinHandle<bool>,
}

impl Status {
    /// The status of `namespace/name`.
    pub fn new(client: kube::Client, namespace: &str, run: &str) -> Self {
        let runs = ApiResource::erase::<PlaybookRun>(&());
        Self { api: Api::namespaced_with(client, namespace, &runs), run: run.to_owned() }
    }

    /// True when the run is to pause, as the answer shows its spec.
    async fn send(&self, snapshot: &Snapshot) -> Result<bool, Failure> {
        let patch = json!({
            "apiVersion": <PlaybookRun as kube::Resource>::api_version(&()),
            "kind": <PlaybookRun as kube::Resource>::kind(&()),
            "status": fields(snapshot),
        });
        let params = PatchParams::apply(EXECUTOR_FIELD_MANAGER).force();
        match timeout(REQUEST, self.api.patch_status(&self.run, &params, &Patch::Apply(&patch))).await {
            Ok(Ok(run)) => Ok(run.data["spec"]["paused"] == json!(true)),
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
    /// The API server refuses the report.
    Refused(String),
    /// It may arrive the next time.
    Lost(String),
}

impl Reporter {
    /// Starts to report what the watch shows.
    pub fn start(status: Status, snapshots: watch::Receiver<Snapshot>) -> Self {
        let (last, report_last) = oneshot::channel();
        let (asks, asked) = mpsc::channel(1);
        let task = tokio::spawn(report(status, snapshots, asked, report_last));
        Self { last, asks, task }
    }

    /// Asks whether the run is to pause.
    pub fn pauses(&self) -> Pauses {
        Pauses::asking(self.asks.clone())
    }

    /// Sends the final report, again and again until it arrives or the deadline is over; true when it arrived.
    pub async fn finish(self, snapshot: Snapshot, deadline: Instant) -> bool {
        // When the task has ended already, the run is gone.
        let _ = self.last.send((snapshot, deadline));
        self.task.await.unwrap_or(false)
    }
}

async fn report(
    status: Status,
    mut snapshots: watch::Receiver<Snapshot>,
    mut asks: mpsc::Receiver<oneshot::Sender<bool>>,
    mut last: oneshot::Receiver<(Snapshot, Instant)>,
) -> bool {
    let mut sent: Option<Snapshot> = None;
    let mut asked: Option<oneshot::Sender<bool>> = None;
    // As in the last answer; an API server that does not answer holds nobody up.
    let mut paused = false;
    let (mut wait, mut due) = (INTERVAL, Instant::now());
    let last = loop {
        let current = snapshots.borrow_and_update().clone();
        let is_new = sent.as_ref() != Some(&current);
        if (is_new || asked.is_some()) && Instant::now() >= due {
            match status.send(&current).await {
                Ok(wanted) => (sent, wait, paused) = (Some(current), INTERVAL, wanted),
                Err(Failure::Gone) => {
                    warn!("the PlaybookRun is gone: nothing more is reported");
                    return false;
                }
                Err(Failure::Refused(problem) | Failure::Lost(problem)) => {
                    warn!(problem, "failed to report progress");
                    (wait, paused) = ((wait * 2).min(LONGEST_WAIT), false);
                }
            }
            due = Instant::now() + wait;
        }
        if let Some(asked) = asked.take() {
            // Whoever asked may have gone meanwhile.
            let _ = asked.send(paused);
        }
        let is_current = sent.as_ref() == Some(&*snapshots.borrow());
        let next = async {
            sleep_until(due).await;
            // Closed: only the final report is missing.
            if is_current && snapshots.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            received = &mut last => break received,
            Some(ask) = asks.recv() => asked = Some(ask),
            () = next => {}
        }
    };
    match last {
        Ok((snapshot, deadline)) => send_last(&status, snapshot, deadline).await,
        Err(_) => false,
    }
}

async fn send_last(status: &Status, mut snapshot: Snapshot, deadline: Instant) -> bool {
    let mut wait = INTERVAL;
    let mut bare = false;
    loop {
        match status.send(&snapshot).await {
            Ok(_) => {
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

/// Removes the details that nothing is decided by.
fn strip(snapshot: &mut Snapshot) {
    for host in &mut snapshot.hosts {
        host.findings.clear();
        host.leftovers.clear();
        host.facts = None;
        host.host_key = None;
        if let Some(failure) = &mut host.failure {
            failure.message = crate::sanitize::cut(&failure.message, 100);
        }
    }
}

/// The executor's fields of the status.
fn fields(snapshot: &Snapshot) -> Value {
    serde_json::to_value(snapshot).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};
    use tokio::sync::watch;
    use tokio::time::{Instant, sleep};

    use super::{Reporter, Status};
    use crate::fold::{Ending, Fold, Snapshot};
    use crate::redact::Redactor;

    /// Patches as they came, with the time since the start in seconds.
    type Seen = Arc<Mutex<Vec<(u64, Value)>>>;

    /// An API server that answers with these codes in turn, and then 200.
    fn status(codes: &[u16]) -> (Status, Seen) {
        let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
        let (seen, begun) = (Seen::default(), Instant::now());
        let record = Arc::clone(&seen);
        let mut codes: VecDeque<u16> = codes.iter().copied().collect();
        tokio::spawn(async move {
            while let Some((request, answer)) = handle.next_request().await {
                assert_eq!(
                    request.uri().to_string(),
                    "/apis/clusterwright.dev/v1alpha1/namespaces/n/playbookruns/r/status?&force=true&fieldManager=clusterwright-executor"
                );
                assert_eq!(request.headers()["content-type"], "application/apply-patch+yaml");
                let body = request.into_body().collect_bytes().await.unwrap();
                record.lock().unwrap().push((begun.elapsed().as_secs(), serde_json::from_slice(&body).unwrap()));
                let code = codes.pop_front().unwrap_or(200);
                let text = match code {
                    // As the definitions of a newer release may have it: without what this one requires.
                    200 => json!({"metadata": {"name": "r"}, "spec": {"laterField": 1}}),
                    _ => {
                        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": "x", "code": code})
                    }
                };
                answer.send_response(
                    Response::builder().status(code).body(text.to_string().into_bytes().into()).unwrap(),
                );
            }
        });
        (Status::new(kube::Client::new(service, "n"), "n", "r"), seen)
    }

    fn fold() -> Fold {
        let mut model = crate::example::model();
        model.steps = vec![crds::Step::Prepare];
        Fold::new(&model, "sha256:0")
    }

    fn task(fold: &mut Fold, name: &str) -> Snapshot {
        fold.line(json!({"event": "task", "at": 1, "name": name}).to_string().as_bytes(), &Redactor::default());
        fold.snapshot()
    }

    fn tasks(seen: &Seen) -> Vec<(u64, String)> {
        let seen = seen.lock().unwrap();
        seen.iter().map(|(at, patch)| (*at, patch["status"]["progress"]["task"].as_str().unwrap().to_owned())).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn progress_is_told_once_a_second_at_most_and_not_without_a_change() {
        let (status, seen) = status(&[]);
        let mut fold = fold();
        let (shown, watching) = watch::channel(fold.snapshot());
        let reporter = Reporter::start(status, watching);
        for number in 0..30 {
            shown.send_replace(task(&mut fold, &number.to_string()));
            sleep(Duration::from_millis(100)).await;
        }
        sleep(Duration::from_secs(60)).await;
        shown.send_replace(fold.snapshot());
        sleep(Duration::from_secs(60)).await;
        let told = tasks(&seen);
        assert!((3..=4).contains(&told.len()), "{told:?}");
        assert!(told.last().unwrap().1 == "29" && told.last().unwrap().0 <= 4, "{told:?}");

        fold.end(Ending::Exited(Some(0)));
        assert!(reporter.finish(fold.snapshot(), Instant::now() + Duration::from_secs(60)).await);
        let last = seen.lock().unwrap().last().unwrap().1.clone();
        assert_eq!(last["status"]["outcome"]["reason"], "NotDone");
        assert_eq!((&last["apiVersion"], &last["kind"]), (&json!("clusterwright.dev/v1alpha1"), &json!("PlaybookRun")));
        let fields: Vec<_> = last["status"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, ["hosts", "outcome", "progress", "steps"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_events_and_questions_is_still_one_patch_a_second() {
        let (status, seen) = status(&[]);
        let mut fold = fold();
        let (shown, watching) = watch::channel(fold.snapshot());
        let reporter = Reporter::start(status, watching);
        let pauses = reporter.pauses();
        for number in 0..5000 {
            shown.send_replace(task(&mut fold, &number.to_string()));
            if number % 7 == 0 {
                assert!(!pauses.wanted().await);
            }
            sleep(Duration::from_millis(1)).await;
        }
        let patches = seen.lock().unwrap().len();
        assert!((5..=6).contains(&patches), "{patches}");
        // Nothing changed: a question alone is a patch, when the last answer is old.
        sleep(Duration::from_secs(60)).await;
        let before = seen.lock().unwrap().len();
        for _ in 0..10 {
            assert!(!pauses.wanted().await);
        }
        assert_eq!(seen.lock().unwrap().len(), before + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn whether_to_pause_is_read_from_a_fresh_answer_and_nobody_waits_for_a_silent_server() {
        let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
        tokio::spawn(async move {
            for paused in [false, true] {
                let (_, answer) = handle.next_request().await.unwrap();
                let run = json!({"metadata": {"name": "r"}, "spec": {"intent": "Probe", "steps": [], "hosts": [], "paused": paused}});
                answer.send_response(Response::new(run.to_string().into_bytes().into()));
            }
            // Then it is silent.
            let silent = handle.next_request().await;
            sleep(Duration::from_secs(1000)).await;
            drop(silent);
        });
        let mut fold = fold();
        let (shown, watching) = watch::channel(fold.snapshot());
        let reporter = Reporter::start(Status::new(kube::Client::new(service, "n"), "n", "r"), watching);
        let pauses = reporter.pauses();
        sleep(Duration::from_millis(500)).await;
        assert!(!pauses.wanted().await, "the answer is fresh");
        sleep(Duration::from_secs(2)).await;
        assert!(pauses.wanted().await, "it was asked again");
        sleep(Duration::from_secs(2)).await;
        shown.send_replace(task(&mut fold, "next"));
        let begun = Instant::now();
        assert!(!pauses.wanted().await);
        assert!(begun.elapsed() <= Duration::from_secs(6), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_told_is_told_later_although_nothing_more_happens() {
        let (status, seen) = status(&[200, 500]);
        let mut fold = fold();
        let (shown, watching) = watch::channel(fold.snapshot());
        let _reporter = Reporter::start(status, watching);
        sleep(Duration::from_secs(2)).await;
        shown.send_replace(task(&mut fold, "lost"));
        sleep(Duration::from_secs(30)).await;
        let told = tasks(&seen);
        assert_eq!(told.len(), 3, "{told:?}");
        assert_eq!(told[2].1, "lost");
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_word_is_repeated_until_it_is_heard() {
        let (status, seen) = status(&[200, 500, 503, 429, 401]);
        let mut fold = fold();
        let (_shown, watching) = watch::channel(fold.snapshot());
        let reporter = Reporter::start(status, watching);
        sleep(Duration::from_secs(5)).await;
        fold.end(Ending::Canceled);
        assert!(reporter.finish(fold.snapshot(), Instant::now() + Duration::from_secs(600)).await);
        assert_eq!(seen.lock().unwrap().len(), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_word_has_a_deadline() {
        let (status, _) = status(&[500; 1000]);
        let mut fold = fold();
        let (_shown, watching) = watch::channel(fold.snapshot());
        let reporter = Reporter::start(status, watching);
        fold.end(Ending::Canceled);
        let begun = Instant::now();
        assert!(!reporter.finish(fold.snapshot(), begun + Duration::from_secs(60)).await);
        assert!(begun.elapsed() < Duration::from_secs(61));
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_that_is_refused_is_told_without_details() {
        let (status, seen) = status(&[200, 422]);
        let mut fold = fold();
        let (_shown, watching) = watch::channel(fold.snapshot());
        let reporter = Reporter::start(status, watching);
        sleep(Duration::from_secs(5)).await;
        let facts = json!({"event": "result", "host": "w1", "status": "ok", "finding": {"kind": "facts"}});
        fold.line(facts.to_string().as_bytes(), &Redactor::default());
        fold.end(Ending::Canceled);
        assert!(reporter.finish(fold.snapshot(), Instant::now() + Duration::from_secs(60)).await);
        let seen = seen.lock().unwrap();
        let facts: Vec<_> = seen.iter().map(|(_, patch)| patch["status"]["hosts"][0].get("facts").is_some()).collect();
        assert_eq!(facts, [false, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_told_to_a_run_that_is_gone() {
        let (status, seen) = status(&[404]);
        let fold = fold();
        let (_shown, watching) = watch::channel(fold.snapshot());
        let reporter = Reporter::start(status, watching);
        sleep(Duration::from_secs(5)).await;
        assert!(!reporter.finish(fold.snapshot(), Instant::now() + Duration::from_secs(60)).await);
        assert_eq!(seen.lock().unwrap().len(), 1);
    }
}
