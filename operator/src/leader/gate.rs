//! The gate that every write of the operator passes, to the metadata cluster and to those behind its Clusters: it is
//! open while the Lease is held, by our own clock, and asked at the last moment before a request goes out. So a leader
//! that was stopped, and does not know yet that its time is over, writes nothing when it wakes up.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use http::{Method, Request};
use plan::leader::Moment;
use tower::{BoxError, Layer, Service};

use super::clock::Clock;

/// Open while the Lease is held; clones are the same one.
#[derive(Clone)]
pub struct Gate {
    clock: Clock,
    /// Nanoseconds on the clock; zero: it was never open.
    open_until: Arc<AtomicU64>,
}

/// A write that did not go out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{method} {path} was held back: this operator does not hold the lease now")]
pub struct HeldBack {
    method: Method,
    path: String,
}

impl Gate {
    /// A closed one.
    pub fn closed(clock: Clock) -> Self {
        Self { clock, open_until: Arc::default() }
    }

    /// Whether a write may go out now.
    pub fn is_open(&self) -> bool {
        nanoseconds(self.clock.now()) < self.open_until.load(Ordering::SeqCst)
    }

    /// Whether it was open, and is not any more: it does not open again.
    pub(super) fn is_over(&self) -> bool {
        let until = self.open_until.load(Ordering::SeqCst);
        until > 0 && nanoseconds(self.clock.now()) >= until
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn open_until(&self, moment: Moment) {
        self.open_until.store(nanoseconds(moment), Ordering::SeqCst);
    }

    pub(super) fn close(&self) {
        // The first moment of any clock has passed.
        self.open_until.store(1, Ordering::SeqCst);
    }
}

fn nanoseconds(moment: Moment) -> u64 {
    u64::try_from(moment.0.as_nanos()).unwrap_or(u64::MAX)
}

impl<S> Layer<S> for Gate {
    type Service = Gated<S>;
    fn layer(&self, inner: S) -> Gated<S> {
        Gated { inner, gate: self.clone() }
    }
}

/// What is behind a gate.
#[derive(Clone)]
pub struct Gated<S> {
    inner: S,
    gate: Gate,
}

impl<S, B> Service<Request<B>> for Gated<S>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let held_back = HeldBack { method: request.method().clone(), path: request.uri().path().to_owned() };
        let gate = self.gate.clone();
        let passes = move || reads || gate.is_open();
        let mut answer = passes().then(|| Box::pin(self.inner.call(request)));
        // A write may still wait for a connection when the time is over: asked each time, it does not go out then.
        Box::pin(std::future::poll_fn(move |cx| match &mut answer {
            Some(answer) if passes() => answer.as_mut().poll(cx).map_err(Into::into),
            _ => Poll::Ready(Err(held_back.clone().into())),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::Gate;
    use crate::error::{ResultExt, chain};
    use crate::leader::clock::Clock;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
    use kube::client::{Body, ClientBuilder};
    use plan::leader::Moment;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tower::service_fn;

    /// An API that answers after a second, and remembers what arrived; a clock that is moved by hand.
    struct Bench {
        arrived: Arc<Mutex<Vec<String>>>,
        seconds: Arc<AtomicU64>,
        gate: Gate,
        api: Api<ConfigMap>,
    }

    fn bench() -> Bench {
        let (seconds, arrived) = (Arc::new(AtomicU64::new(100)), Arc::new(Mutex::new(Vec::new())));
        let hand = seconds.clone();
        let gate = Gate::closed(Clock::new(move || Moment(Duration::from_secs(hand.load(Ordering::SeqCst)))));
        let wire = arrived.clone();
        let service = service_fn(move |request: http::Request<Body>| {
            let wire = wire.clone();
            async move {
                // As long as a connection takes.
                tokio::time::sleep(Duration::from_secs(1)).await;
                wire.lock().unwrap().push(request.method().to_string());
                let object = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"items":[]}"#;
                Ok::<_, kube::Error>(http::Response::new(Body::from(object.as_bytes().to_vec())))
            }
        });
        let client = ClientBuilder::new(service, "default").with_layer(&gate).build();
        let api = Api::namespaced(client, "default");
        Bench { arrived, seconds, gate, api }
    }

    impl Bench {
        fn arrived(&self) -> Vec<String> {
            std::mem::take(&mut self.arrived.lock().unwrap())
        }

        /// Every verb there is; the names of those that were held back.
        async fn every_verb(&self) -> Vec<&'static str> {
            let (api, post, map) = (&self.api, PostParams::default(), ConfigMap::default());
            let apply = Patch::Apply(serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap"}));
            let merge = Patch::Merge(serde_json::json!({}));
            let to_apply = PatchParams::apply("us");
            let outcomes = [
                ("get", api.get("a").await.map(drop)),
                ("list", api.list(&ListParams::default()).await.map(drop)),
                ("create", api.create(&post, &map).await.map(drop)),
                ("update", api.replace("a", &post, &map).await.map(drop)),
                ("apply", api.patch("a", &to_apply, &apply).await.map(drop)),
                ("patch", api.patch("a", &PatchParams::default(), &merge).await.map(drop)),
                ("status", api.patch_status("a", &PatchParams::default(), &merge).await.map(drop)),
                ("delete", api.delete("a", &DeleteParams::default()).await.map(drop)),
                ("collection", api.delete_collection(&DeleteParams::default(), &ListParams::default()).await.map(drop)),
            ];
            let held_back = |error: kube::Error| chain(&error).contains("was held back");
            outcomes.into_iter().filter_map(|(verb, outcome)| outcome.is_err_and(held_back).then_some(verb)).collect()
        }
    }

    const WRITES: [&str; 7] = ["create", "update", "apply", "patch", "status", "delete", "collection"];

    #[tokio::test(start_paused = true)]
    async fn while_the_lease_is_held_everything_passes() {
        let bench = bench();
        bench.gate.open_until(Moment(Duration::from_secs(110)));
        bench.seconds.store(109, Ordering::SeqCst);
        assert!(bench.every_verb().await.is_empty());
        assert_eq!(bench.arrived().len(), 9);
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_that_was_stopped_past_its_lease_reads_and_writes_nothing() {
        let bench = bench();
        bench.gate.open_until(Moment(Duration::from_secs(110)));
        // Stopped here; nothing told it that its time is over but the clock.
        bench.seconds.store(110, Ordering::SeqCst);
        assert_eq!(bench.every_verb().await, WRITES);
        assert_eq!(bench.arrived(), ["GET", "GET"]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_never_held_it_writes_nothing_nor_who_gave_it_away() {
        let bench = bench();
        assert_eq!(bench.every_verb().await, WRITES);
        bench.gate.open_until(Moment(Duration::from_secs(110)));
        bench.gate.close();
        assert_eq!(bench.every_verb().await, WRITES);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_waits_for_a_connection_when_the_time_is_over_does_not_go_out() {
        let bench = bench();
        bench.gate.open_until(Moment(Duration::from_secs(110)));
        let (api, deletion) = (bench.api.clone(), DeleteParams::default());
        let delete = tokio::spawn(async move { api.delete("a", &deletion).await.map(drop) });
        tokio::time::sleep(Duration::from_millis(500)).await;
        bench.seconds.store(111, Ordering::SeqCst);
        let error = delete.await.unwrap().doing(|| "delete ConfigMap a".into()).unwrap_err();
        assert_eq!(
            chain(&error),
            "failed to delete ConfigMap a: ServiceError: DELETE /api/v1/namespaces/default/configmaps/a was held back: \
             this operator does not hold the lease now"
        );
        assert!(bench.arrived().is_empty());
    }
}
