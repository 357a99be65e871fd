//! What is counted. Labels are kinds, verbs, outcomes and phases; never the names of objects.

mod objects;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

pub use objects::Objects;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindOutcome {
    kind: String,
    outcome: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct IntentOutcome {
    intent: String,
    outcome: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfIntent {
    intent: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbResource {
    verb: String,
    resource: String,
}

/// All counters; clones count into the same.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    reconciles: Family<KindOutcome, Counter>,
    reconcile_seconds: Family<OfKind, Histogram, fn() -> Histogram>,
    queue: Family<OfKind, Gauge>,
    failing: Family<OfKind, Gauge>,
    runs: Family<IntentOutcome, Counter>,
    run_seconds: Family<OfIntent, Histogram, fn() -> Histogram>,
    objects: objects::Gauges,
    undecodable: Family<OfKind, Gauge>,
    api_writes: Family<VerbResource, Counter>,
    start: Gauge<f64, AtomicU64>,
    leader: Gauge,
}

fn pass_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 16))
}

fn run_buckets() -> Histogram {
    Histogram::new(exponential_buckets(4.0, 2.0, 11))
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Counters at zero.
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Arc::default(),
            reconciles: Family::default(),
            reconcile_seconds: Family::new_with_constructor(pass_buckets),
            queue: Family::default(),
            failing: Family::default(),
            runs: Family::default(),
            run_seconds: Family::new_with_constructor(run_buckets),
            objects: objects::Gauges::default(),
            undecodable: Family::default(),
            api_writes: Family::default(),
            start: Gauge::default(),
            leader: Gauge::default(),
        };
        let mut registry = Registry::with_prefix("clusterwright");
        registry.register("reconciles", "Passes, by kind and outcome", metrics.reconciles.clone());
        registry.register("reconcile_duration_seconds", "How long a reconcile took", metrics.reconcile_seconds.clone());
        registry.register("queue_depth", "Objects whose reconcile is due or under way", metrics.queue.clone());
        registry.register("objects_failing", "Objects whose last reconcile failed", metrics.failing.clone());
        registry.register("runs", "Runs that ended, by intent and outcome", metrics.runs.clone());
        registry.register("run_duration_seconds", "How long a run took", metrics.run_seconds.clone());
        metrics.objects.register(&mut registry);
        registry.register(
            "objects_undecodable",
            "Objects that the operator cannot decode, by kind; what is decided by them is on hold",
            metrics.undecodable.clone(),
        );
        registry.register("api_writes", "Writes to the metadata cluster's API", metrics.api_writes.clone());
        registry.register("start_time_seconds", "When the operator started", metrics.start.clone());
        registry.register("leader", "1 while this operator holds the lease", metrics.leader.clone());
        metrics.start.set(Timestamp::now().as_second() as f64);
        metrics.registry = Arc::new(registry);
        metrics
    }

    /// A reconcile ended.
    pub fn reconciled(&self, kind: &str, outcome: &str, took: Duration) {
        self.reconciles.get_or_create(&KindOutcome { kind: kind.into(), outcome: outcome.into() }).inc();
        self.reconcile_seconds.get_or_create(&OfKind { kind: kind.into() }).observe(took.as_secs_f64());
    }

    /// How many objects' reconciles are due or under way, and how many objects' last reconcile failed.
    pub fn queue(&self, kind: &str, due: usize, failing: usize) {
        self.queue.get_or_create(&OfKind { kind: kind.into() }).set(due as i64);
        self.failing.get_or_create(&OfKind { kind: kind.into() }).set(failing as i64);
    }

    /// Whether this operator leads.
    pub fn leads(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// A run ended.
    pub fn run_ended(&self, intent: &str, outcome: &str, took: Duration) {
        self.runs.get_or_create(&IntentOutcome { intent: intent.into(), outcome: outcome.into() }).inc();
        self.run_seconds.get_or_create(&OfIntent { intent: intent.into() }).observe(took.as_secs_f64());
    }

    /// A request goes to the API; reads are not counted.
    pub fn api_request(&self, method: &Method, path: &str) {
        let verb = match *method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => return,
        };
        let resource = resource_of(path);
        self.api_writes.get_or_create(&VerbResource { verb: verb.into(), resource }).inc();
    }

    /// How many objects of each kind cannot be decoded.
    pub fn undecodable(&self, counts: &BTreeMap<String, usize>) {
        self.undecodable.clear();
        for (kind, count) in counts {
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            self.undecodable.get_or_create(&OfKind { kind: kind.clone() }).set(count);
        }
    }

    /// Everything as text, with the objects as they are now.
    pub fn text(&self, objects: &Objects) -> Result<String, std::fmt::Error> {
        self.objects.set(objects, Timestamp::now());
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// `playbookruns/status` of `/apis/clusterwright.dev/v1alpha1/namespaces/n/playbookruns/a/status`: a path without its
/// names.
fn resource_of(path: &str) -> String {
    let mut parts = path.trim_start_matches('/').split('/');
    let group = match parts.next() {
        Some("api") => parts.next(),
        Some("apis") => parts.nth(1),
        _ => None,
    };
    if group.is_none() {
        return "other".into();
    }
    let mut rest: Vec<&str> = parts.collect();
    if rest.len() > 2 && rest[0] == "namespaces" {
        rest.drain(..2);
    }
    match rest.as_slice() {
        [resource] | [resource, _] => (*resource).into(),
        [resource, _, subresource, ..] => format!("{resource}/{subresource}"),
        [] => "other".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Metrics, Objects, resource_of};
    use http::Method;

    #[test]
    fn a_path_is_counted_without_its_names() {
        let check = |path, expected: &str| assert_eq!(resource_of(path), expected);
        check("/api/v1/namespaces/fleet/secrets", "secrets");
        check("/api/v1/namespaces/fleet/secrets/a", "secrets");
        check("/api/v1/namespaces/fleet", "namespaces");
        check("/apis/clusterwright.dev/v1alpha1/namespaces/n/playbookruns/a/status", "playbookruns/status");
        check("/apis/batch/v1/namespaces/n/jobs/a", "jobs");
        check("/version", "other");
    }

    #[test]
    fn only_writes_are_counted() {
        let metrics = Metrics::new();
        metrics.api_request(&Method::GET, "/api/v1/namespaces/a/secrets");
        metrics.api_request(&Method::POST, "/api/v1/namespaces/a/secrets");
        let text = metrics.text(&Objects::default()).unwrap();
        assert!(text.contains("clusterwright_api_writes_total{verb=\"create\",resource=\"secrets\"} 1"), "{text}");
        assert!(!text.contains("verb=\"get\""), "{text}");
    }
}
