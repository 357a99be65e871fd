//! A server with the paths of upstream's servers, below their names, which can fail in the ways that servers do.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, RANGE, WWW_AUTHENTICATE};
use axum::http::{Response, StatusCode};
use axum::serve::Listener;
use bundle::digest;
use futures::{StreamExt, stream};
use lab::cache::Cache;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::registry::Registry;
use crate::tls::Tls;

/// What happens to the next answer at a path.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// The connection is cut after that many bytes.
    Cut(usize),
    /// Nothing more comes after that many bytes.
    Stall(usize),
    /// The answer is that status.
    Status(u16),
}

#[derive(Debug, Default)]
pub struct Site {
    files: HashMap<String, Bytes>,
    faults: HashMap<String, Fault>,
    /// Each request: path, and the range that it asked for.
    asked: Vec<(String, Option<String>)>,
    pub registry: Registry,
}

/// The server, until it is dropped.
pub struct Upstream {
    pub site: Arc<Mutex<Site>>,
    address: String,
    runtime: Option<Runtime>,
}

impl Upstream {
    /// With nothing, at a port of its own.
    pub fn start() -> Self {
        Self::listen(|listener| listener)
    }

    /// With what the lab has built, at upstream's own paths.
    pub fn of_what_was_built() -> Self {
        let router = lab::upstream::router(&Cache::from_env().bundle()).unwrap();
        Self::serve(router, Arc::default(), |listener| listener)
    }

    fn listen<L: Listener<Addr = SocketAddr>>(listen: impl FnOnce(TcpListener) -> L) -> Self {
        let site: Arc<Mutex<Site>> = Arc::default();
        Self::serve(Router::new().fallback(answer).with_state(Arc::clone(&site)), site, listen)
    }

    fn serve<L: Listener<Addr = SocketAddr>>(
        app: Router,
        site: Arc<Mutex<Site>>,
        listen: impl FnOnce(TcpListener) -> L,
    ) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let listener = listen(listener);
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { site, address, runtime: Some(runtime) }
    }

    /// With all that the small catalogue names for amd64.
    pub fn small() -> Self {
        Self::start().with_small()
    }

    /// The same, with TLS.
    pub fn small_with_tls(listen: impl FnOnce(TcpListener) -> Tls) -> Self {
        Self::listen(listen).with_small()
    }

    fn with_small(self) -> Self {
        let upstream = self;
        upstream.publish("dl.example/v1.35.4/amd64/kubelet", &content("kubelet"), Some("kubelet.sha256"));
        upstream.publish(
            "releases.example/etcd/v3.6.16/etcd-v3.6.16-linux-amd64.tar.gz",
            &content("etcd"),
            Some("SHA256SUMS"),
        );
        upstream.publish("releases.example/tool-1.0-amd64", &content("tool"), None);
        upstream.site.lock().unwrap().registry.publish_small("registry.example/kube-proxy", "v1.35.4", &["amd64"]);
        upstream
    }

    pub fn address(&self) -> String {
        self.address.clone()
    }

    /// Lets `path` have these bytes, and a file of checksums beside it list them.
    pub fn publish(&self, path: &str, bytes: &[u8], sums: Option<&str>) {
        self.put(path, bytes.to_vec().into());
        if let Some(sums) = sums {
            self.list(path, &digest::of_bytes(bytes), sums);
        }
    }

    /// Lets the file of checksums beside `path` list that digest: alone in dl.k8s.io's way, else with the file's name.
    pub fn list(&self, path: &str, sha256: &str, sums: &str) {
        let (folder, name) = path.rsplit_once('/').unwrap();
        let text = if path.starts_with("dl.") { sha256.to_owned() } else { format!("{sha256}  {name}\n") };
        self.put(&format!("{folder}/{sums}"), text.into());
    }

    fn put(&self, path: &str, content: Bytes) {
        self.site.lock().unwrap().files.insert(format!("/up/{path}"), content);
    }

    pub fn fault(&self, path: &str, fault: Fault) {
        self.site.lock().unwrap().faults.insert(path.to_owned(), fault);
    }

    /// Ranges that were asked for at a path, one entry for each request; forgets all requests.
    pub fn asked(&self, path: &str) -> Vec<Option<String>> {
        let asked = std::mem::take(&mut self.site.lock().unwrap().asked);
        asked.into_iter().filter(|(asked, _)| asked == path).map(|(_, range)| range).collect()
    }

    /// How many requests there were; forgets them.
    pub fn requests(&self) -> usize {
        std::mem::take(&mut self.site.lock().unwrap().asked).len()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// 300 kB that differ by name, so that a part of them is more than one read.
pub fn content(name: &str) -> Vec<u8> {
    format!("{name}, and more of it\n").repeat(20_000).into_bytes()
}

async fn answer(State(site): State<Arc<Mutex<Site>>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let path = parts.uri.path().to_owned();
    let range = parts.headers.get(RANGE).map(|range| range.to_str().unwrap().to_owned());
    let mut site = site.lock().unwrap();
    site.asked.push((path.clone(), range.clone()));
    let fault = site.faults.remove(&path);
    if let Some(Fault::Status(status)) = fault {
        return plain(StatusCode::from_u16(status).unwrap());
    }
    if path.starts_with("/v2/") {
        let login = parts.headers.get(AUTHORIZATION).and_then(|login| login.to_str().ok());
        if site.registry.login.is_some() && site.registry.login.as_deref() != login {
            let mut refused = plain(StatusCode::UNAUTHORIZED);
            refused.headers_mut().insert(WWW_AUTHENTICATE, "Basic realm=\"fleet\"".parse().unwrap());
            return refused;
        }
        let query = parts.uri.query().unwrap_or_default();
        match site.registry.answer(&parts.method, &path, query, &body) {
            Ok(response) => return response,
            Err(None) => return plain(StatusCode::NOT_FOUND),
            Err(Some(content)) => return deliver(&content, range, fault),
        }
    }
    match site.files.get(&path).cloned() {
        Some(content) => deliver(&content, range, fault),
        None => plain(StatusCode::NOT_FOUND),
    }
}

fn deliver(bytes: &Bytes, range: Option<String>, fault: Option<Fault>) -> Response<Body> {
    let from = range.map_or(0, |range| range.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap());
    let mut response = Response::builder();
    if from > 0 {
        response = response.status(StatusCode::PARTIAL_CONTENT);
        response = response.header(CONTENT_RANGE, format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len()));
    }
    let rest = bytes.slice(from..);
    response = response.header(CONTENT_LENGTH, rest.len());
    let body = match fault {
        None | Some(Fault::Status(_)) => Body::from(rest),
        Some(Fault::Cut(size)) => {
            let first = stream::iter([Ok(rest.slice(..size))]);
            // What was not sent yet would be cut too.
            let end = stream::once(async {
                tokio::time::sleep(Duration::from_millis(300)).await;
                Err(std::io::Error::other("cut"))
            });
            Body::from_stream(first.chain(end))
        }
        Some(Fault::Stall(size)) => {
            let first = stream::iter([Ok::<_, std::io::Error>(rest.slice(..size))]);
            Body::from_stream(first.chain(stream::pending()))
        }
    };
    response.body(body).unwrap()
}

fn plain(status: StatusCode) -> Response<Body> {
    Response::builder().status(status).body(Body::from("not here")).unwrap()
}
