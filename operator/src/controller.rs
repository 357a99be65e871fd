//! Runs controllers: one reconcile an object at a time, a deadline for each, backoff for each object, one line of log
//! and the counters for each reconcile.
//!
//! ```text
//! pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
//!     let controller = controller::new(ctx, &ctx.cache.hosts)
//!         .watches_shared_stream(ctx.cache.machines.changes(), |machine| hosts_of(&machine));
//!     tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));
//! }
//! ```

use std::any::Any;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{FutureExt, StreamExt, future};
use kube::ResourceExt;
use kube::runtime::Controller;
use kube::runtime::controller::{Action, Config};
use kube::runtime::reflector::ObjectRef;
use parking_lot::Mutex;
use plan::Next;
use rand::Rng;

use crate::cache::{Kind, Watched};
use crate::context::Context;
use crate::error::{Error, chain};
use crate::reconcile::{Reconcile, Reconciled, reconcile};
use crate::tries::Tries;

const DEADLINE: Duration = Duration::from_secs(60);
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
const LONGEST_BACKOFF: Duration = Duration::from_secs(120);
/// Changes that come together make one reconcile.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// A controller of a kind that is watched; add what else triggers it.
pub fn new<K: Kind>(ctx: &Context, watched: &Watched<K>) -> Controller<K> {
    Controller::for_shared_stream(watched.changes(), watched.store().clone())
        .with_config(Config::default().debounce(DEBOUNCE).concurrency(ctx.settings.concurrency))
        .graceful_shutdown_on(ctx.stopped())
}

/// A reference to the object of this name in the namespace of another one.
pub fn beside<K: Kind>(other: &impl ResourceExt, name: &str) -> ObjectRef<K> {
    ObjectRef::new(name).within(&other.namespace().unwrap_or_default())
}

/// References to objects.
pub fn references<K: Kind>(objects: &[Arc<K>]) -> Vec<ObjectRef<K>> {
    objects.iter().map(|object| ObjectRef::from_obj(&**object)).collect()
}

/// Runs the controller until the program stops.
pub async fn run<R: Reconcile>(ctx: Arc<Context>, controller: Controller<R::Object>) {
    // An absence in a store that has not been filled yet would be taken for the truth.
    tokio::select! { () = ctx.cache.ready() => {}, () = ctx.stopped() => return }
    let runner = Arc::new(Runner { ctx, failures: Tries::default(), under_way: Mutex::default() });
    let reconcile = |object: Arc<R::Object>, runner: Arc<Runner>| async move {
        Ok::<_, Infallible>(runner.one(object, &reconcile::<R>).await)
    };
    // Errors end in `Runner::one`: the policy has nothing left to decide.
    let policy = |_: Arc<R::Object>, _: &Infallible, _: Arc<Runner>| Action::await_change();
    controller.run(reconcile, policy, runner).for_each(|_| future::ready(())).await;
}

struct Runner {
    ctx: Arc<Context>,
    /// Failures in a row.
    failures: Tries,
    under_way: Mutex<usize>,
}

impl Runner {
    async fn one<K, F, Fut>(&self, object: Arc<K>, reconcile: &F) -> Action
    where
        K: Kind,
        F: Fn(Arc<Context>, Arc<K>) -> Fut,
        Fut: Future<Output = Result<Reconciled, Error>>,
    {
        let kind = K::kind(&());
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let uid = object.uid().unwrap_or_default();
        let begun = Instant::now();
        self.count(&kind, 1);
        let result = tokio::time::timeout(DEADLINE, async { reconcile(self.ctx.clone(), object).await });
        // One object must not stop all others of its kind; nothing of this reconcile is used again.
        let result = match AssertUnwindSafe(result).catch_unwind().await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(Error::Deadline { seconds: DEADLINE.as_secs() }),
            Err(panic) => Err(Error::Panic { message: panic_message(&*panic).to_owned() }),
        };
        let took = begun.elapsed();
        let milliseconds = took.as_millis() as u64;
        let (outcome, action) = match result {
            Ok(reconciled) => {
                self.failures.end(&uid);
                let waits_for = reconciled.waits_for.as_deref().unwrap_or("-");
                let outcome = if reconciled.waits_for.is_some() { "waiting" } else { "settled" };
                tracing::info!(%kind, %namespace, %name, outcome, milliseconds, actions = reconciled.actions, waits_for);
                let action = match reconciled.next {
                    Next::OnChange => Action::await_change(),
                    Next::After(delay) => Action::requeue(delay),
                };
                (outcome, action)
            }
            Err(error) if error.is_conflict() => {
                let error = chain(&error);
                tracing::info!(%kind, %namespace, %name, outcome = "conflict", milliseconds, %error);
                ("conflict", Action::requeue(Duration::from_millis(rand::rng().random_range(50..250))))
            }
            Err(error) => {
                let failures = self.failures.count(&uid);
                let delay = backoff(failures, rand::rng().random());
                let (error, again_in) = (chain(&error), delay.as_secs_f32());
                tracing::warn!(%kind, %namespace, %name, outcome = "failed", milliseconds, failures, again_in, %error);
                ("failed", Action::requeue(delay))
            }
        };
        self.ctx.metrics.reconciled(&kind, outcome, took);
        self.count(&kind, -1);
        action
    }

    fn count(&self, kind: &str, change: isize) {
        let mut under_way = self.under_way.lock();
        *under_way = under_way.saturating_add_signed(change);
        self.ctx.metrics.queue(kind, *under_way, self.failures.len());
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

#[cfg(test)]
mod tests {
    use super::{LONGEST_BACKOFF, Reconciled, Runner, backoff};
    use std::sync::Arc;
    use std::time::Duration;

    use crds::Host;

    use crate::context::Context;
    use crate::error::Error;
    use crate::fake_api::FakeApi;

    async fn panics(_: Arc<Context>, host: Arc<Host>) -> Result<Reconciled, Error> {
        match host.metadata.name.as_deref() {
            Some("bad") => panic!("no time is after {}", "9999-12-30"),
            _ => Ok(Reconciled::settled()),
        }
    }

    #[tokio::test]
    async fn a_panic_in_a_reconcile_is_a_failure_of_its_object_alone_and_is_tried_again_later() {
        let host = |name: &str| {
            let text = format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: {name}, uid: {name}}}, spec: {{address: 10.0.0.1, ssh: {{credentialsRef: {{name: k}}}}}}}}"
            );
            Arc::new(serde_yaml::from_str::<Host>(&text).unwrap())
        };
        let ctx = FakeApi::default().context();
        let runner = Runner { ctx: ctx.clone(), failures: Default::default(), under_way: Default::default() };
        for _ in 0..3 {
            runner.one(host("bad"), &panics).await;
            runner.one(host("good"), &panics).await;
            assert_eq!(runner.failures.len(), 1, "the good one has none");
        }
        assert_eq!(runner.failures.count("bad"), 4);
        assert_eq!(*runner.under_way.lock(), 0);
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
