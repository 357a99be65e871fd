//! A proxy that stands in for all of upstream's servers, with the certificates of an authority of its own, as companies
//! have them that look into TLS: whoever goes through it asks for upstream's own names, and gets what the mirror has.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::uri::{PathAndQuery, Uri};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::serve::Listener;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Names of the API of Docker Hub, which is at other hosts than the one in the names of its images.
const DOCKER_HUB: [&str; 2] = ["registry-1.docker.io", "index.docker.io"];
/// Connections that are ready for their first request, and wait for it to be read.
const READY: usize = 16;

/// The proxy, until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    /// What `HTTPS_PROXY` is set to.
    pub url: String,
    /// The authority of its certificates, in PEM.
    pub ca: String,
    asked: Arc<Mutex<BTreeSet<String>>>,
    tasks: [JoinHandle<()>; 2],
}

impl Proxy {
    /// Takes the listener's connections. Every host is the folder of that name in the mirror.
    pub fn start(listener: TcpListener, mirror: Router) -> Result<Self> {
        let address = listener.local_addr().context("the proxy's listener has no address")?;
        let authority = Arc::new(Authority::make()?);
        let ca = authority.ca.clone();
        let asked: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let (ready, connections) = mpsc::channel(READY);
        let seen = Arc::clone(&asked);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, from)) = listener.accept().await {
                let (ready, authority, seen) = (ready.clone(), Arc::clone(&authority), Arc::clone(&seen));
                // Who does not believe the certificate goes away, and says so itself.
                tokio::spawn(async move {
                    if let Ok(stream) = authority.intercept(stream, &seen).await {
                        drop(ready.send((stream, from)).await);
                    }
                });
            }
        });
        let app = mirror.layer(from_fn(below_host));
        let serving = tokio::spawn(async move { drop(axum::serve(Intercepted { connections, address }, app).await) });
        Ok(Self { url: format!("http://{address}"), ca, asked, tasks: [accepting, serving] })
    }

    /// The hosts that it was asked for since the last call.
    pub fn hosts(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// What signs in each host's name.
struct Authority {
    ca: String,
    issuer: Issuer<'static, KeyPair>,
    acceptors: Mutex<HashMap<String, TlsAcceptor>>,
}

impl Authority {
    fn make() -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        // A leaf of the same name would be taken for one that has signed itself.
        params.distinguished_name.push(DnType::CommonName, "authority of the proxy");
        let key = KeyPair::generate()?;
        let ca = params.self_signed(&key)?.pem();
        Ok(Self { ca, issuer: Issuer::new(params, key), acceptors: Mutex::default() })
    }

    /// A connection that asks for a host, with TLS in that host's name.
    async fn intercept(&self, mut stream: TcpStream, asked: &Mutex<BTreeSet<String>>) -> Result<TlsStream<TcpStream>> {
        let host = connect(&mut stream).await?;
        asked.lock().unwrap_or_else(PoisonError::into_inner).insert(host.clone());
        Ok(self.acceptor(&host)?.accept(stream).await?)
    }

    fn acceptor(&self, host: &str) -> Result<TlsAcceptor> {
        let mut acceptors = self.acceptors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = acceptors.get(host) {
            return Ok(known.clone());
        }
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec![host.to_owned()])?;
        params.use_authority_key_identifier_extension = true;
        let leaf = params.signed_by(&key, &self.issuer)?;
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        acceptors.insert(host.to_owned(), acceptor.clone());
        Ok(acceptor)
    }
}

/// Connections with TLS.
struct Intercepted {
    connections: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
}

impl Listener for Intercepted {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.connections.recv().await {
            Some(connection) => connection,
            // Nobody accepts any more: the proxy is being dropped.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        Ok(self.address)
    }
}

/// Reads `CONNECT HOST:PORT`, says yes, and gives the host.
async fn connect(stream: &mut TcpStream) -> Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head)?;
    let target = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(':').next());
    let host = target.with_context(|| format!("no CONNECT but {head}"))?.to_owned();
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    Ok(host)
}

/// As a mirror has it: files below the name of their host, and the repositories of a registry below its name.
async fn below_host(mut request: Request, next: Next) -> Response {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let below = below(host.split(':').next().unwrap_or_default(), request.uri().path());
    if let Ok(path) = below.parse::<PathAndQuery>() {
        *request.uri_mut() = Uri::from(path);
    }
    next.run(request).await
}

fn below(host: &str, path: &str) -> String {
    let host = if DOCKER_HUB.contains(&host) { "docker.io" } else { host };
    match path.strip_prefix("/v2/") {
        Some("") => path.to_owned(),
        Some(rest) => format!("/v2/{host}/{rest}"),
        None => format!("/{host}{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_repositories_are_below_the_host_that_is_asked() {
        assert_eq!(below("dl.k8s.io", "/v1/kubelet"), "/dl.k8s.io/v1/kubelet");
        assert_eq!(below("registry.k8s.io", "/v2/pause/manifests/3"), "/v2/registry.k8s.io/pause/manifests/3");
        assert_eq!(below("index.docker.io", "/v2/a/b/blobs/c"), "/v2/docker.io/a/b/blobs/c");
        assert_eq!(below("registry.k8s.io", "/v2/"), "/v2/", "whether it is a registry");
    }
}
