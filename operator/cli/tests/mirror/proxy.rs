//! Proxies: one that leads to servers as they are, and one that stands in for all of upstream's servers, with the
//! certificates of an authority of its own, as companies have them that look into TLS.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::serve::Listener;
use lab::cache::Cache;
use lab::images::architecture;
use lab::programs::component;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::upstream::Upstream;
use crate::wright::{Wright, said};

/// Hosts that the proxy was asked for, each as often as it was.
type Asked = Arc<Mutex<Vec<String>>>;

/// A proxy that takes every connection for itself. Ended when it is dropped.
struct Proxy {
    url: String,
    ca: String,
    asked: Asked,
    _runtime: Runtime,
}

/// Connections that ask for one host, with TLS in that host's name.
struct Intercepted {
    listener: TcpListener,
    issuer: Issuer<'static, KeyPair>,
    acceptors: HashMap<String, TlsAcceptor>,
    asked: Asked,
}

impl Listener for Intercepted {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (mut stream, address) = self.listener.accept().await.unwrap();
            let Some(host) = connect(&mut stream).await else { continue };
            self.asked.lock().unwrap().push(host.clone());
            let issuer = &self.issuer;
            let acceptor = self.acceptors.entry(host).or_insert_with_key(|host| acceptor(issuer, host));
            if let Ok(stream) = acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// Reads `CONNECT HOST:PORT`, says yes, and gives the host. None: it asks for something else.
async fn connect(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?;
    let host = head.strip_prefix("CONNECT ")?.split(':').next()?.to_owned();
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok()?;
    Some(host)
}

fn acceptor(issuer: &Issuer<'static, KeyPair>, host: &str) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
    params.use_authority_key_identifier_extension = true;
    let leaf = params.signed_by(&key, issuer).unwrap();
    crate::tls::acceptor(&leaf, &key)
}

impl Proxy {
    /// Every host is the mirror's folder of that name.
    fn before(mirror: Router) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        // A leaf of the same name would be taken for one that has signed itself.
        params.distinguished_name.push(DnType::CommonName, "authority of the proxy");
        let key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Asked::default();
        let listener = Intercepted { listener, issuer, acceptors: HashMap::new(), asked: Arc::clone(&asked) };
        let app = mirror.layer(from_fn(below_host));
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { url, ca, asked, _runtime: runtime }
    }

    /// The hosts that it was asked for since, each once.
    fn hosts(&self) -> Vec<String> {
        let mut hosts = std::mem::take(&mut *self.asked.lock().unwrap());
        hosts.sort();
        hosts.dedup();
        hosts
    }
}

/// As a mirror has it: files below the name of their host, and the repositories of a registry below its name.
async fn below_host(mut request: Request, next: Next) -> Response {
    let host = request.headers().get("host").and_then(|host| host.to_str().ok()).unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    // The API of Docker Hub is at another host than the one in the names of its images.
    let host = if ["registry-1.docker.io", "index.docker.io"].contains(&host) { "docker.io" } else { host };
    let path = request.uri().path();
    let below = match path.strip_prefix("/v2/") {
        Some("") => path.to_owned(),
        Some(rest) => format!("/v2/{host}/{rest}"),
        None => format!("/{host}{path}"),
    };
    *request.uri_mut() = below.parse().unwrap();
    next.run(request).await
}

/// The hosts of the catalogue. The API of Docker Hub has two names: wright's library takes the one, and machines take
/// the other.
fn all_hosts(docker: &str) -> [&str; 4] {
    ["dl.k8s.io", "github.com", docker, "registry.k8s.io"]
}

fn through(wright: &Wright, proxy: &Proxy, arguments: &[&str]) -> crate::wright::Said {
    let mut command = wright.command(arguments);
    said(&command.env("HTTPS_PROXY", &proxy.url).env("NO_PROXY", "10.0.0.0/8,.svc").output().unwrap())
}

/// The catalogue as it is, upstream's own names, and programs and images as the lab has built them.
#[test]
fn machines_take_all_from_upstream_by_a_lock_through_a_proxy() {
    let kubernetes = component("kubernetes").unwrap().version;
    let proxy = Proxy::before(lab::upstream::router(&Cache::from_env().bundle()).unwrap());
    let wright = Wright::plain();
    std::fs::write(wright.path("ca.crt"), &proxy.ca).unwrap();
    let lock = ["lock", "--kubernetes", kubernetes, "--arch", architecture(), "--ca", "ca.crt"];
    through(&wright, &proxy, &lock).ended(0, &["7 digests were trusted on first use", "[14/14]", "lockRef"]);
    assert_eq!(proxy.hosts(), all_hosts("index.docker.io"));

    for lock in ["bundle.lock", ""] {
        let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let output = Command::new("python3")
            .arg(here.join("tests/mirror/read_upstream.py"))
            .args([&here.join("../../hack/bundle/catalogue"), &wright.path("ca.crt")])
            .args([&proxy.url, kubernetes, &wright.path("cache").to_string_lossy(), lock])
            .current_dir(wright.directory.path())
            .env("PYTHONPATH", here.join("../../executor/ansible"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .unwrap();
        said(&output).ended(0, &["14 artifacts"]);
        assert_eq!(proxy.hosts(), all_hosts("registry-1.docker.io"), "everything passes the proxy");
    }
}

#[test]
fn a_bundle_is_made_through_the_proxy_of_the_environment_but_for_what_is_reached_without() {
    let kubernetes = component("kubernetes").unwrap().version;
    let proxy = Proxy::before(lab::upstream::router(&Cache::from_env().bundle()).unwrap());
    let wright = Wright::plain();
    std::fs::write(wright.path("ca.crt"), &proxy.ca).unwrap();
    let create = ["create", "--kubernetes", kubernetes, "--arch", architecture()];
    through(&wright, &proxy, &create).ended(2, &["certificate"]);
    through(&wright, &proxy, &[&create[..], &["--ca", "ca.crt"]].concat()).ended(0, &["7 digests were"]);
    through(&wright, &proxy, &["verify"]).ended(0, &["nothing is missing"]);
    proxy.hosts();

    // A mirror of the site is asked without it.
    let upstream = Upstream::small();
    let direct = Wright::new(&upstream);
    let arguments = direct.create_arguments("b", &[]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = direct.command(&arguments);
    command.env("HTTP_PROXY", "http://127.0.0.1:1").env("HTTPS_PROXY", "http://127.0.0.1:1");
    said(&command.output().unwrap()).ended(2, &["127.0.0.1"]);
    said(&command.env("NO_PROXY", "127.0.0.1").output().unwrap()).ended(0, &[]);
    assert_eq!(proxy.hosts(), [""; 0]);
}
