//! Watches that are cut, that hang, or that are refused because they are too old: what happened meanwhile is seen.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crds::{
    Cluster, ClusterDeployment, EtcdBackup, EtcdBackupSchedule, EtcdRestore, Host, KarmadaDeployment, Machine,
    MachineSet, PlaybookRun,
};
use futures::StreamExt;
use http::{Request, Response};
use hyper::body::{Body as HttpBody, Bytes, Frame};
use kube::client::Body;
use kube::{Client, ResourceExt};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::super::config;
use super::super::kind::Kind;
use super::super::source::Source;
use super::Watched;
use crate::fake_api::FakeApi;
use crate::stop::Stop;

/// What comes of a watch while something happens that it does not show.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The connection ends.
    Cut,
    /// It ends within an event.
    CutInALine,
    /// Nothing comes any more, and the connection stays.
    Hangs,
    /// An event says that its version is too old.
    TooOld,
    /// So does the answer to the request.
    Gone,
}

/// A server with two objects of one kind.
struct Server {
    objects: Vec<Value>,
    version: u64,
    /// Of the watches that come.
    faults: VecDeque<Fault>,
}

/// An answer, line by line; afterwards it ends, or nothing comes any more.
struct Lines {
    lines: VecDeque<Bytes>,
    ends: bool,
}

impl Lines {
    fn answer(lines: Vec<Bytes>, ends: bool) -> Response<Self> {
        Response::new(Self { lines: lines.into(), ends })
    }
}

impl HttpBody for Lines {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        match self.lines.pop_front() {
            Some(line) => Poll::Ready(Some(Ok(Frame::data(line)))),
            None if self.ends => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

impl Server {
    fn new(kind: &str, spec: &Value) -> Self {
        let object = |(index, name): (usize, &str)| {
            let metadata = json!({
                "name": name, "namespace": "fleet", "uid": name, "resourceVersion": (index + 1).to_string(),
            });
            json!({ "apiVersion": "clusterwright.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec })
        };
        Self {
            objects: ["changes", "stays"].into_iter().enumerate().map(object).collect(),
            version: 2,
            faults: VecDeque::new(),
        }
    }

    fn change(&mut self) {
        self.version += 1;
        self.objects[0]["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects[0]["metadata"]["labels"] = json!({ "changed": "true" });
    }

    fn list(&self) -> Response<Lines> {
        let metadata = json!({ "resourceVersion": self.version.to_string() });
        let list = json!({ "kind": "List", "apiVersion": "v1", "metadata": metadata, "items": self.objects });
        Lines::answer(vec![Bytes::from(list.to_string())], true)
    }

    fn watch(&mut self, since: u64) -> Response<Lines> {
        let line = |event: Value| Bytes::from(format!("{event}\n"));
        let too_old = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 410, "reason": "Expired",
            "message": "too old resource version",
        });
        let Some(fault) = self.faults.pop_front() else {
            let is_news = |object: &&Value| {
                let version = object["metadata"]["resourceVersion"].as_str().unwrap();
                version.parse::<u64>().unwrap() > since
            };
            let news = self.objects.iter().filter(is_news);
            return Lines::answer(
                news.map(|object| line(json!({ "type": "MODIFIED", "object": object }))).collect(),
                false,
            );
        };
        self.change();
        match fault {
            Fault::Cut => Lines::answer(Vec::new(), true),
            Fault::CutInALine => Lines::answer(vec![Bytes::from("{\"type\": \"MODIFIED\", \"obj")], true),
            Fault::Hangs => Lines::answer(Vec::new(), false),
            Fault::TooOld => Lines::answer(vec![line(json!({ "type": "ERROR", "object": too_old }))], true),
            Fault::Gone => {
                let mut gone = Lines::answer(vec![Bytes::from(too_old.to_string())], true);
                *gone.status_mut() = http::StatusCode::GONE;
                gone
            }
        }
    }

    fn client(server: &Arc<Mutex<Self>>) -> Client {
        let server = server.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let value = |name: &str| {
                let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
                pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
            };
            let mut server = server.lock();
            let answer = match value("watch").as_deref() {
                Some("true") => server.watch(value("resourceVersion").and_then(|it| it.parse().ok()).unwrap_or(0)),
                _ => server.list(),
            };
            async move { Ok::<_, kube::Error>(answer) }
        });
        Client::new(service, "default")
    }
}

/// How long it takes until the change is in the store, and told to who follows the kind, though these watches came to
/// nothing.
async fn takes<K: Kind>(spec: &Value, faults: &[Fault]) -> Duration {
    let server = Arc::new(Mutex::new(Server::new(&K::kind(&()), spec)));
    server.lock().faults = faults.iter().copied().collect();
    let watched = Watched::<K>::new(&Arc::default());
    let mut told = std::pin::pin!(watched.changes());
    let (stops, stop) = Stop::new();
    let events = FakeApi::default().context().events.clone();
    let source = Source { client: Server::client(&server), namespace: None, events, stop };
    let mut tasks = JoinSet::new();
    let begun = Instant::now();
    watched.follow(&source, config(), &mut tasks);
    let is_changed = |object: &K| object.labels().contains_key("changed");
    while !told.next().await.is_some_and(|object| is_changed(&object)) {}
    let took = begun.elapsed();
    assert!(watched.get("fleet", "changes").is_some_and(|object| is_changed(&object)), "{faults:?}");
    assert_eq!(watched.store().len(), 2, "{faults:?}: nothing is taken for gone");
    drop(stops);
    while tasks.join_next().await.is_some() {}
    took
}

/// A cut is noticed at once, and tried again after pauses; a watch of which nothing comes is given up after little more
/// than a minute.
async fn check<K: Kind>(spec: Value) {
    use Fault::{Cut, CutInALine, Gone, Hangs, TooOld};
    let check = async |faults: &[Fault], seconds: u64| {
        let took = tokio::time::timeout(Duration::from_secs(3600), takes::<K>(&spec, faults)).await;
        let took = took.unwrap_or_else(|_| panic!("{} {faults:?}: never seen", K::kind(&())));
        assert!(took <= Duration::from_secs(seconds), "{} {faults:?}: {took:?}", K::kind(&()));
    };
    for fault in [Cut, CutInALine, TooOld, Gone] {
        check(&[fault], 5).await;
    }
    check(&[Hangs], 70).await;
    check(&[Cut, Gone, CutInALine, TooOld, Cut], 60).await;
    check(&[Hangs, TooOld, Hangs], 150).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_backups_or_restores_that_is_cut_hangs_or_is_too_old_misses_nothing_row_9() {
    let backed_up =
        json!({ "clusterName": "a", "storageRef": { "name": "s3" }, "encryption": { "recipients": ["age1x"] } });
    let template = json!({ "storageRef": { "name": "s3" }, "encryption": { "recipients": ["age1x"] } });
    let source = json!({ "backupRef": { "name": "nightly" } });
    check::<EtcdBackup>(backed_up).await;
    check::<EtcdRestore>(json!({ "clusterName": "a", "source": source, "identityRef": { "name": "i" } })).await;
    check::<EtcdBackupSchedule>(json!({ "clusterName": "a", "schedule": "0 3 * * *", "template": template })).await;
    check::<PlaybookRun>(json!({ "clusterName": "a", "intent": "Backup", "steps": ["backup-etcd"], "hosts": ["h1"] }))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_what_a_change_is_decided_by_that_is_cut_hangs_or_is_too_old_misses_nothing_row_9() {
    let of_machine = json!({ "clusterName": "a", "role": "worker", "kubernetesVersion": "1.35.4" });
    let template = json!({ "kubernetesVersion": "1.35.4" });
    check::<ClusterDeployment>(json!({ "kubernetesVersion": "1.35.4", "controlPlane": { "replicas": 1 } })).await;
    check::<MachineSet>(json!({ "clusterName": "a", "role": "worker", "replicas": 1, "template": template })).await;
    check::<Machine>(of_machine).await;
    check::<Host>(json!({ "address": "10.0.0.1", "ssh": { "credentialsRef": { "name": "k" } } })).await;
    check::<Cluster>(json!({ "kubeconfigRef": { "name": "k" } })).await;
    check::<PlaybookRun>(json!({ "clusterName": "a", "intent": "Upgrade", "steps": ["etcd"], "hosts": ["h1"] })).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_karmada_control_planes_or_their_machines_that_is_cut_hangs_or_is_too_old_misses_nothing_row_9() {
    let bundle = json!({ "bundle": { "url": "https://bundle.example.com" } });
    let of_plane = |spec: Value| {
        let mut spec = spec;
        spec["clusterName"] = json!("k1");
        spec["clusterKind"] = json!("KarmadaDeployment");
        spec
    };
    check::<KarmadaDeployment>(json!({ "version": "1.18.2", "crds": bundle })).await;
    check::<MachineSet>(of_plane(json!({ "role": "control-plane", "replicas": 1, "template": {} }))).await;
    check::<Machine>(of_plane(json!({ "role": "control-plane" }))).await;
    check::<PlaybookRun>(of_plane(json!({ "intent": "Configure", "steps": ["karmada-balancer"], "hosts": ["h1"] })))
        .await;
}
