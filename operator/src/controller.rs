//! The frame that every controller runs in: one pass an object at a time, a deadline round each, backoff for each
//! object, one line of log and the counters for each pass.
//!
//! ```text
//! pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
//!     let controller = controller::of(ctx, &ctx.cache.hosts)
//!         .watches_shared_stream(ctx.cache.machines.changes(), |machine| hosts_of(&machine));
//!     tasks.spawn(controller::run(ctx.clone(), controller, pass));
//! }
//! async fn pass(ctx: Arc<Context>, host: Arc<Host>) -> Result<Pass, Error> { ... }
//! ```

use std::any::Any;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::{FutureExt, StreamExt, future};
use kube::ResourceExt;
use kube::runtime::Controller;
use kube::runtime::controller::{Action, Config};
use plan::{Next, Plan};
use rand::Rng;

use crate::cache::{Kind, Watched};
use crate::context::Context;
use crate::error::{Error, chain};

const DEADLINE: Duration = Duration::from_secs(60);
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
const LONGEST_BACKOFF: Duration = Duration::from_secs(120);
/// Nobody is woken when an object that they wait for can be decoded again.
const LOOK_AT_HELD_SECONDS: u64 = 15;
/// Changes that come together make one pass.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// How a pass ended well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// When to look again.
    pub next: Next,
    /// Steps carried out (a status that was written counts).
    pub steps: usize,
    /// What unfinished work waits for.
    pub waits_for: Option<String>,
}

impl Pass {
    /// A pass that carried out a plan; `status_written` says whether its status was news.
    pub fn of<Step, Status>(plan: &Plan<Step, Status>, status_written: bool) -> Self {
        let steps = plan.steps.len() + usize::from(status_written);
        Self {
            next: plan.next,
            steps,
            waits_for: plan.waits_for.clone(),
        }
    }

    /// Nothing may be done while an object cannot be decoded; it may be corrected at any time.
    pub fn held(message: String) -> Self {
        Self {
            next: Next::after_seconds(LOOK_AT_HELD_SECONDS),
            steps: 0,
            waits_for: Some(message),
        }
    }

    /// Nothing to do until something changes.
    pub fn settled() -> Self {
        Self {
            next: Next::OnChange,
            steps: 0,
            waits_for: None,
        }
    }
}

/// A controller of a kind that is watched; add what else triggers it.
pub fn of<K: Kind>(ctx: &Context, watched: &Watched<K>) -> Controller<K> {
    Controller::for_shared_stream(watched.changes(), watched.store().clone())
        .with_config(
            Config::default()
                .debounce(DEBOUNCE)
                .concurrency(ctx.settings.concurrency),
        )
        .graceful_shutdown_on(ctx.stopped())
}

/// Runs the controller until the program stops.
pub async fn run<K, F, Fut>(ctx: Arc<Context>, controller: Controller<K>, pass: F)
where
    K: Kind,
    F: Fn(Arc<Context>, Arc<K>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Pass, Error>> + Send + 'static,
{
    // An absence in a store that has not been filled yet would be taken for the truth.
    tokio::select! { () = ctx.cache.ready() => {}, () = ctx.stopped() => return }
    let frame = Arc::new(Frame {
        ctx,
        failures: Mutex::default(),
        under_way: Mutex::default(),
    });
    let pass = Arc::new(pass);
    let reconcile = move |object: Arc<K>, frame: Arc<Frame>| {
        let pass = pass.clone();
        async move { Ok::<_, std::convert::Infallible>(frame.one(object, &*pass).await) }
    };
    // Errors end in `Frame::one`: the policy has nothing left to decide.
    let policy = |_: Arc<K>, _: &std::convert::Infallible, _: Arc<Frame>| Action::await_change();
    controller
        .run(reconcile, policy, frame)
        .for_each(|_| future::ready(()))
        .await;
}

struct Frame {
    ctx: Arc<Context>,
    /// Failures in a row, by UID.
    failures: Mutex<HashMap<String, u32>>,
    under_way: Mutex<usize>,
}

impl Frame {
    async fn one<K, F, Fut>(&self, object: Arc<K>, pass: &F) -> Action
    where
        K: Kind,
        F: Fn(Arc<Context>, Arc<K>) -> Fut,
        Fut: Future<Output = Result<Pass, Error>>,
    {
        let kind = K::kind(&());
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let uid = object.uid().unwrap_or_default();
        let begun = Instant::now();
        self.count(&kind, 1);
        let pass = tokio::time::timeout(DEADLINE, async { pass(self.ctx.clone(), object).await });
        // One object must not stop all others of its kind; nothing of this pass is used again.
        let result = match AssertUnwindSafe(pass).catch_unwind().await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(Error::Deadline {
                seconds: DEADLINE.as_secs(),
            }),
            Err(panic) => Err(Error::Panic {
                message: panic_message(&*panic).to_owned(),
            }),
        };
        let took = begun.elapsed();
        let milliseconds = took.as_millis() as u64;
        let (outcome, action) = match result {
            Ok(pass) => {
                lock(&self.failures).remove(&uid);
                let waits_for = pass.waits_for.as_deref().unwrap_or("-");
                let outcome = if pass.waits_for.is_some() {
                    "waiting"
                } else {
                    "settled"
                };
                tracing::info!(%kind, %namespace, %name, outcome, milliseconds, steps = pass.steps, waits_for);
                let action = match pass.next {
                    Next::OnChange => Action::await_change(),
                    Next::After(delay) => Action::requeue(delay),
                };
                (outcome, action)
            }
            Err(error) if error.is_conflict() => {
                let error = chain(&error);
                tracing::info!(%kind, %namespace, %name, outcome = "conflict", milliseconds, %error);
                (
                    "conflict",
                    Action::requeue(Duration::from_millis(rand::rng().random_range(50..250))),
                )
            }
            Err(error) => {
                let failures = self.failed(&uid);
                let delay = backoff(failures, rand::rng().random());
                let (error, again_in) = (chain(&error), delay.as_secs_f32());
                tracing::warn!(%kind, %namespace, %name, outcome = "failed", milliseconds, failures, again_in, %error);
                ("failed", Action::requeue(delay))
            }
        };
        self.ctx.metrics.pass(&kind, outcome, took);
        self.count(&kind, -1);
        action
    }

    fn failed(&self, uid: &str) -> u32 {
        let mut failures = lock(&self.failures);
        let count = failures.entry(uid.to_owned()).or_default();
        *count = count.saturating_add(1);
        *count
    }

    fn count(&self, kind: &str, change: isize) {
        let mut under_way = lock(&self.under_way);
        *under_way = under_way.saturating_add_signed(change);
        self.ctx
            .metrics
            .queue(kind, *under_way, lock(&self.failures).len());
    }
}

/// What a panic says.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}

/// Doubles with each failure in a row up to the cap; `chance` (0 to 1) spreads it over the upper half.
fn backoff(failures: u32, chance: f64) -> Duration {
    let exponent = failures.saturating_sub(1).min(16);
    let full = FIRST_BACKOFF.saturating_mul(1 << exponent).min(LONGEST_BACKOFF);
    full.mul_f64(0.5 + 0.5 * chance.clamp(0.0, 1.0))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{Frame, LONGEST_BACKOFF, Pass, backoff, lock};
    use std::sync::Arc;
    use std::time::Duration;

    use crds::Host;

    use crate::context::Context;
    use crate::error::Error;
    use crate::fake_api::FakeApi;

    async fn panics(_: Arc<Context>, host: Arc<Host>) -> Result<Pass, Error> {
        match host.metadata.name.as_deref() {
            Some("bad") => panic!("no time is after {}", "9999-12-30"),
            _ => Ok(Pass::settled()),
        }
    }

    #[tokio::test]
    async fn a_panic_in_a_pass_is_a_failure_of_its_object_alone_and_is_tried_again_later() {
        let host = |name: &str| {
            let text = format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: {name}, uid: {name}}}, spec: {{address: 10.0.0.1, ssh: {{credentialsRef: {{name: k}}}}}}}}"
            );
            Arc::new(serde_yaml::from_str::<Host>(&text).unwrap())
        };
        let ctx = FakeApi::default().context();
        let frame = Frame {
            ctx: ctx.clone(),
            failures: Default::default(),
            under_way: Default::default(),
        };
        for failures in 1..=3 {
            frame.one(host("bad"), &panics).await;
            frame.one(host("good"), &panics).await;
            assert_eq!(lock(&frame.failures).get("bad"), Some(&failures));
            assert_eq!(lock(&frame.failures).get("good"), None);
        }
        assert_eq!(*lock(&frame.under_way), 0);
        let text = ctx.metrics.text(&crate::metrics::Objects::default()).unwrap();
        let failed = "clusterwright_reconciles_total{kind=\"Host\",outcome=\"failed\"} 3";
        assert!(text.contains(failed), "{text}");
    }

    #[test]
    fn failures_in_a_row_wait_longer_up_to_a_cap() {
        assert_eq!(backoff(1, 1.0), Duration::from_millis(500));
        assert_eq!(backoff(2, 1.0), Duration::from_secs(1));
        assert_eq!(backoff(2, 0.0), Duration::from_millis(500));
        assert_eq!(backoff(1_000_000, 1.0), LONGEST_BACKOFF);
    }
}
