//! The API servers of all clusters, in one process: a port for each of them, a few paths, and Nodes that are always
//! Ready. A stand-in: what is measured is who asks them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::{Stream, StreamExt, stream};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::{SignedDuration, Timestamp};
use operator::pki::Pki;
use operator::pki::authority::Leaf;
use parking_lot::Mutex;
use plan::cluster_deployment::pki::TABLE;
use plan::encryption::Scheme;
use plan::rotation::Subject;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio_rustls::TlsAcceptor;

/// A watch is ended then, as an API server does.
const WATCH: Duration = Duration::from_secs(90);

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// All of them.
pub struct Targets {
    /// The keys that all clusters share: making 1 000 is no part of what is measured.
    pub pki: Pki,
    targets: Vec<Arc<Target>>,
}

/// One cluster's API.
struct Target {
    port: u16,
    uid: String,
    nodes: Mutex<Nodes>,
    changes: broadcast::Sender<Value>,
}

#[derive(Default)]
struct Nodes {
    version: u64,
    by_name: BTreeMap<String, Value>,
}

impl Targets {
    /// Listens for so many clusters, on the lab's bridge.
    pub async fn start(count: usize) -> Result<Self> {
        let pki = Pki::generate(TABLE, &Scheme::default(), Timestamp::now())?;
        let acceptor = TlsAcceptor::from(Arc::new(server_config(&pki)?));
        let mut targets = Vec::new();
        for number in 0..count {
            let listener = TcpListener::bind((lab::network::HOST_ADDRESS, 0)).await.context("failed to listen")?;
            let target = Arc::new(Target {
                port: listener.local_addr()?.port(),
                uid: format!("uid-of-cluster-{number}"),
                nodes: Mutex::default(),
                changes: broadcast::channel(64).0,
            });
            tokio::spawn(accept(listener, acceptor.clone(), target.clone()));
            targets.push(target);
        }
        Ok(Self { pki, targets })
    }

    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Where a cluster's API answers.
    pub fn port(&self, cluster: usize) -> Option<u16> {
        self.targets.get(cluster).map(|target| target.port)
    }

    /// A machine registers its Node.
    pub fn register(&self, cluster: usize, node: &str, address: &str) {
        if let Some(target) = self.targets.get(cluster) {
            target.apply(node, "ADDED", |_| self::node(node, address));
        }
    }
}

fn server_config(pki: &Pki) -> Result<ServerConfig> {
    let leaf = Leaf {
        common_name: "kube-apiserver".into(),
        addresses: vec![IpAddr::V4(lab::network::HOST_ADDRESS)],
        serves: true,
        ..Leaf::default()
    };
    let signer = pki.authority(Subject::Ca)?.signer();
    let issued = signer.issue(&leaf, SignedDuration::from_hours(24), Timestamp::now())?;
    let chain = CertificateDer::pem_slice_iter(issued.certificate.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_no_client_auth().with_single_cert(chain, key)?)
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, target: Arc<Target>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, target) = (acceptor.clone(), target.clone());
        tokio::spawn(async move {
            // A connection that ends is the client's affair.
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let answer = service_fn(move |request| {
                let target = target.clone();
                async move { Ok::<_, Infallible>(target.answer(request).await) }
            });
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

impl Target {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let watches = request.uri().query().is_some_and(|query| query.contains("watch="));
        let node = path.strip_prefix("/api/v1/nodes/").map(str::to_owned);
        let sent = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let sent: Value = serde_json::from_slice(&sent).unwrap_or_default();
        match (&method, path.as_str(), node) {
            (&Method::GET, "/readyz", _) => text("[+]ping ok\n[+]etcd ok\nreadyz check passed"),
            (&Method::GET, "/version", _) => object(200, &version()),
            (&Method::GET, "/api/v1/namespaces/kube-system", _) => {
                object(200, &json!({"metadata": {"name": "kube-system", "uid": self.uid}}))
            }
            (&Method::GET, "/api/v1/nodes", _) if watches => self.watch(),
            (&Method::GET, "/api/v1/nodes", _) => object(200, &self.list()),
            (&Method::PATCH, _, Some(name)) => object(200, &self.apply(&name, "MODIFIED", |there| merged(there, sent))),
            (&Method::POST, ..) => object(201, &sent),
            (&Method::DELETE, ..) => object(200, &json!({"kind": "Status", "apiVersion": "v1", "status": "Success"})),
            (&Method::GET, "/apis/apps/v1/namespaces/kube-system/deployments", _) => {
                object(200, &json!({"kind": "DeploymentList", "apiVersion": "apps/v1", "metadata": {}, "items": []}))
            }
            _ => object(404, &not_found()),
        }
    }

    fn list(&self) -> Value {
        let nodes = self.nodes.lock();
        let items: Vec<&Value> = nodes.by_name.values().collect();
        let version = nodes.version.to_string();
        json!({"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": items})
    }

    /// What changes from now on, until the watch is ended.
    fn watch(&self) -> Response<Body> {
        let changes = changes(self.changes.subscribe()).take_until(tokio::time::sleep(WATCH));
        let frames = changes.map(|change| Ok(Frame::data(Bytes::from(format!("{change}\n")))));
        response(200, BodyExt::boxed_unsync(StreamBody::new(frames)))
    }

    fn apply(&self, name: &str, event: &str, change: impl FnOnce(Value) -> Value) -> Value {
        let mut nodes = self.nodes.lock();
        nodes.version += 1;
        let mut node = change(nodes.by_name.remove(name).unwrap_or_default());
        if let Some(version) = node.pointer_mut("/metadata/resourceVersion") {
            *version = nodes.version.to_string().into();
        }
        nodes.by_name.insert(name.to_owned(), node.clone());
        // Nobody may be watching.
        let _ = self.changes.send(json!({"type": event, "object": node}));
        node
    }
}

fn changes(receiver: broadcast::Receiver<Value>) -> impl Stream<Item = Value> {
    stream::unfold(receiver, |mut receiver| async move {
        let change = receiver.recv().await.ok()?;
        Some((change, receiver))
    })
}

fn node(name: &str, address: &str) -> Value {
    json!({
        "kind": "Node", "apiVersion": "v1",
        "metadata": {"name": name, "uid": format!("uid-of-{name}"), "resourceVersion": "0"},
        "spec": {},
        "status": {
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}],
            "nodeInfo": {
                "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "",
                "kubeProxyVersion": "", "kubeletVersion": format!("v{}", crate::fleet::VERSION), "machineID": "",
                "operatingSystem": "linux", "osImage": "", "systemUUID": "",
            },
        },
    })
}

/// As a JSON merge patch (RFC 7386) does.
fn merged(there: Value, patch: Value) -> Value {
    match (there, patch) {
        (Value::Object(mut there), Value::Object(patch)) => {
            for (key, value) in patch {
                let old = there.remove(&key).unwrap_or_default();
                if !value.is_null() {
                    there.insert(key, merged(old, value));
                }
            }
            Value::Object(there)
        }
        (_, patch) => patch,
    }
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "35", "gitVersion": format!("v{}", crate::fleet::VERSION), "gitCommit": "",
        "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
    })
}

fn not_found() -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
        "message": "there is no such path here",
    })
}

fn object(code: u16, object: &Value) -> Response<Body> {
    response(code, http_body_util::Full::from(object.to_string()).boxed_unsync())
}

fn text(text: &'static str) -> Response<Body> {
    response(200, http_body_util::Full::from(text).boxed_unsync())
}

fn response(code: u16, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}
