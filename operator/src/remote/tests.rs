//! Promises of the watch of a cluster's Nodes, kept with an API server that speaks HTTP over real connections: how soon
//! a change is in the Machine's status, how many connections a cluster costs, alive and dead, and how it is found
//! again.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures::channel::mpsc::{UnboundedSender, unbounded};
use jiff::Timestamp;
use kube::{Client, Config};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use super::probe::probe;
use super::{Key, Registry};
use crate::fake_api::FakeApi;

/// What an API server was asked, and what it tells its watches.
#[derive(Default)]
struct Seen {
    nodes: Mutex<Vec<Value>>,
    watches: Mutex<Vec<UnboundedSender<Result<Bytes, std::io::Error>>>>,
    connections: AtomicUsize,
    lists: AtomicUsize,
    refuses_watches: AtomicBool,
    refusals: Mutex<Vec<Instant>>,
}

/// A small API server of a cluster.
#[derive(Clone)]
struct Server {
    seen: Arc<Seen>,
    address: SocketAddr,
}

struct Counting {
    listener: TcpListener,
    seen: Arc<Seen>,
}

impl axum::serve::Listener for Counting {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            if let Ok(accepted) = self.listener.accept().await {
                self.seen.connections.fetch_add(1, Ordering::SeqCst);
                return accepted;
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

async fn answer(State(seen): State<Arc<Seen>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let text = |text: String| text.into_response();
    match path.as_str() {
        "/readyz" => text("[+]ping ok\n[+]etcd ok\n".into()),
        "/version" => text(
            json!({"major": "1", "minor": "35", "gitVersion": "v1.35.4", "gitCommit": "", "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""})
                .to_string(),
        ),
        "/api/v1/namespaces/kube-system" => {
            text(json!({"metadata": {"name": "kube-system", "uid": "uid-1"}}).to_string())
        }
        "/apis/apps/v1/namespaces/kube-system/deployments" => {
            text(json!({"metadata": {}, "items": []}).to_string())
        }
        "/api/v1/nodes" if query.contains("watch=true") => {
            if seen.refuses_watches.load(Ordering::SeqCst) {
                seen.refusals.lock().push(Instant::now());
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            }
            let (sender, receiver) = unbounded();
            seen.watches.lock().push(sender);
            Body::from_stream(receiver).into_response()
        }
        "/api/v1/nodes" => {
            seen.lists.fetch_add(1, Ordering::SeqCst);
            let items = seen.nodes.lock().clone();
            text(json!({"metadata": {"resourceVersion": "1"}, "items": items}).to_string())
        }
        _ => {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": ""});
            (StatusCode::NOT_FOUND, status.to_string()).into_response()
        }
    }
}

fn node(version: u64, ready: &str, pressure: &str) -> Value {
    json!({
        "kind": "Node", "apiVersion": "v1",
        "metadata": {"name": "h1", "resourceVersion": version.to_string()},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.35.4", "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "", "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": ""},
            "conditions": [
                {"type": "DiskPressure", "status": pressure},
                {"type": "Ready", "status": ready, "message": "kubelet says so"},
            ],
        },
    })
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        seen.nodes.lock().push(node(1, "True", "False"));
        let router = Router::new().fallback(answer).with_state(seen.clone());
        let listener = Counting { listener, seen: seen.clone() };
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { seen, address }
    }

    fn client(&self) -> Client {
        let mut config = Config::new(format!("http://{}", self.address).parse().unwrap());
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }

    /// Tells every watch of a change of the node.
    fn tell(&self, node: &Value) {
        *self.seen.nodes.lock() = vec![node.clone()];
        let line = format!("{}\n", json!({"type": "MODIFIED", "object": node}));
        self.seen.watches.lock().retain(|watch| watch.unbounded_send(Ok(line.clone().into())).is_ok());
    }

    fn watches(&self) -> usize {
        self.seen.watches.lock().iter().filter(|watch| !watch.is_closed()).count()
    }

    fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }
}

fn key() -> Key {
    Key { namespace: "fleet".into(), name: "a".into() }
}

/// One look, as the Cluster controller looks.
async fn look(registry: &Registry, client: &Client) {
    let now = Timestamp::now();
    match probe(client, &registry.leases(&key()), now).await {
        Ok((seen, leases)) => registry.made(&key(), now, seen, leases),
        Err(_) => registry.lost(&key()),
    }
}

async fn until(what: &str, holds: impl Fn() -> bool) -> Duration {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "waited for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    begun.elapsed()
}

const MACHINE: &str = "{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {name: w1, namespace: fleet, generation: 1, finalizers: [clusterwright.dev/release-host]}, spec: {clusterName: a, role: worker, kubernetesVersion: 1.35.4, hostRef: {name: h1}}, status: {provisionedAt: '2026-01-01T00:00:00Z', conditions: []}}";
const HOST: &str = "{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {name: h1, namespace: fleet, uid: h1}, spec: {address: 10.0.0.1, ssh: {credentialsRef: {name: key}, hostKeyPolicy: TrustOnFirstUse}, claimRef: {kind: Machine, name: w1, uid: machines-fleet-w1-1}, claimEpoch: 1}}";
const DEPLOYMENT: &str = "{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {name: a, namespace: fleet, uid: cd}, spec: {kubernetesVersion: 1.35.4, controlPlane: {replicas: 1}}, status: {installedAt: '2026-01-01T00:00:00Z'}}";

/// Line 13: readiness, pressure, version and addresses, by the controllers as they run.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_node_is_in_its_machines_status_within_five_seconds() {
    let (server, api) = (Server::start().await, FakeApi::default());
    for (plural, object) in [("machines", MACHINE), ("hosts", HOST), ("clusterdeployments", DEPLOYMENT)] {
        api.put(plural, object);
    }
    let (ctx, _stop) = api.running();
    let mut tasks = tokio::task::JoinSet::new();
    crate::machine::spawn(&ctx, &mut tasks);
    ctx.cache.fill_with_nothing();
    ctx.cache.cluster_deployments.fill(api.list("clusterdeployments"));
    ctx.cache.hosts.fill(api.list("hosts"));
    ctx.cache.machines.fill(api.list("machines"));
    ctx.remote.put(&key(), server.client());
    look(&ctx.remote, &server.client()).await;
    let says = |type_: &str, status: &str, reason: &str| {
        let machine = api.get("machines/fleet/w1").unwrap();
        let conditions = machine["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| {
            condition["type"] == type_ && condition["status"] == status && condition["reason"] == reason
        })
    };
    until("the node to be seen", || says("NodeReady", "True", "NodeReady")).await;
    let machine = api.get("machines/fleet/w1").unwrap();
    assert_eq!(machine["status"]["addresses"], json!(["10.0.0.1"]));
    assert_eq!(machine["status"]["kubernetesVersion"], "1.35.4");
    until("the watch", || server.watches() == 1).await;

    let changes = [
        (node(2, "True", "True"), ("Healthy", "False", "NodePressure")),
        (node(3, "False", "True"), ("NodeReady", "False", "NodeNotReady")),
        (node(4, "Unknown", "False"), ("NodeReady", "Unknown", "NodeSilent")),
        (node(5, "True", "False"), ("Healthy", "True", "Running")),
    ];
    for (node, (type_, status, reason)) in changes {
        // The watch of the Machines is the API server's; here the test is it.
        ctx.cache.machines.fill(api.list("machines"));
        server.tell(&node);
        let took = until(reason, || says(type_, status, reason)).await;
        assert!(took < Duration::from_secs(5), "{reason} took {took:?}");
    }

    // Line 14: what is not known any more is Unknown, and no machine is unhealthy for it.
    ctx.cache.machines.fill(api.list("machines"));
    ctx.remote.lost(&key());
    let took = until("Unknown", || says("NodeReady", "Unknown", "ClusterUnreachable")).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(api.get("machines/fleet/w1").unwrap()["status"]["phase"], "Running");
}

/// However often one looks, and however much changes. On one thread: a connection that is given back is there before a
/// request after the next asks for it, however busy the machine is.
#[tokio::test]
async fn a_cluster_costs_one_watch_and_a_connection_or_two_for_its_probes() {
    let (server, api) = (Server::start().await, FakeApi::default());
    let (ctx, client) = (api.context(), server.client());
    ctx.remote.put(&key(), client.clone());
    look(&ctx.remote, &client).await;
    until("the watch", || server.watches() == 1).await;
    for _ in 0..10 {
        look(&ctx.remote, &client).await;
    }
    for number in 2..200 {
        server.tell(&node(number, "True", "False"));
    }
    look(&ctx.remote, &client).await;
    // One that is just given back is not always found by the next request: a third may be idle.
    assert!(server.connections() <= 3, "{}", server.connections());
    assert_eq!(server.watches(), 1);
    assert_eq!(server.seen.lists.load(Ordering::SeqCst), 1, "listed once, then watched");
}

/// Line 14: a dead cluster is asked by its probe and by nothing else, and nothing is written for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_cluster_costs_no_more_than_its_probe() {
    let (server, api) = (Server::start().await, FakeApi::default());
    let (ctx, client) = (api.context(), server.client());
    ctx.remote.put(&key(), client.clone());
    look(&ctx.remote, &client).await;
    until("the watch", || server.watches() == 1).await;

    // Whoever connects from now on is not answered.
    let dead = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = Config::new(format!("http://{}", dead.local_addr().unwrap()).parse().unwrap());
    config.default_retry = false;
    let tried = Arc::new(AtomicUsize::new(0));
    let count = tried.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = dead.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    let gone = Client::try_from(config).unwrap();
    ctx.remote.lost(&key());
    ctx.remote.put(&key(), gone.clone());
    assert!(ctx.remote.nodes("fleet", "a").is_none() && ctx.remote.client("fleet", "a").is_none());
    for probes in 1..=3 {
        look(&ctx.remote, &gone).await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert_eq!(tried.load(Ordering::SeqCst), probes, "one connection a probe");
    }
    until("the end of the old watch", || server.watches() == 0).await;
    assert_eq!(api.writes(), 0);
}

/// A watch that breaks is taken up again, sooner than anybody waits for, and later each time it is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_breaks_is_taken_up_again_with_pauses_that_grow() {
    let server = Server::start().await;
    let gate = FakeApi::default().context();
    let registry = &gate.remote;
    registry.put(&key(), server.client());
    registry.made(&key(), Timestamp::now(), plan::cluster::Seen::default(), HashMap::new());
    until("the watch", || server.watches() == 1).await;

    server.seen.watches.lock().clear();
    let took = until("the watch again", || server.watches() == 1).await;
    assert!(took < Duration::from_secs(5), "{took:?}");

    server.seen.refuses_watches.store(true, Ordering::SeqCst);
    server.seen.watches.lock().clear();
    until("refusals", || server.seen.refusals.lock().len() >= 3).await;
    let refusals = server.seen.refusals.lock().clone();
    let pauses: Vec<Duration> = refusals.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.iter().all(|pause| *pause > Duration::from_millis(300)), "{pauses:?}");
    assert!(pauses[1] > pauses[0], "{pauses:?}");
    // While the watch is away the last that was seen counts: the probe says when contact is lost.
    assert_eq!(registry.nodes("fleet", "a").unwrap().len(), 1);
    server.seen.refuses_watches.store(false, Ordering::SeqCst);
    until("the watch at last", || server.watches() == 1).await;
    server.tell(&node(9, "False", "False"));
    until("what changed meanwhile", || {
        registry.node("fleet", "a", "h1").flatten().is_some_and(|node| node.ready == Some(false))
    })
    .await;
}
