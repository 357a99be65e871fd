//! What the plane's API server reaches by the names of Services on the host: a proxy, and behind it servers that stand
//! in for Karmada's. They have the certificates that the operator has made, and answer once they are started.

use std::sync::Arc;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio_rustls::TlsAcceptor;

use crate::NAMESPACE;
use crate::clusters::{self, Reply};

/// Where the proxy is; clones are the same.
#[derive(Clone)]
pub struct Network {
    directory: Arc<tempfile::TempDir>,
}

const SOCKET: &str = "proxy.sock";

impl Network {
    /// Starts the proxy.
    pub async fn start(host: Client) -> Result<Self> {
        let directory = Arc::new(tempfile::tempdir()?);
        let listener = UnixListener::bind(directory.path().join(SOCKET))?;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let host = host.clone();
                // What goes wrong is what the API server says of it.
                tokio::spawn(async move { drop(connect(&host, stream).await) });
            }
        });
        Ok(Self { directory })
    }

    /// The configuration by which an API server goes through it.
    pub fn egress(&self) -> String {
        let through = |name: &str| {
            let transport = json!({"uds": {"udsName": self.directory.path().join(SOCKET)}});
            json!({"name": name, "connection": {"proxyProtocol": "HTTPConnect", "transport": transport}})
        };
        json!({
            "apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration",
            "egressSelections": [through("cluster"), through("controlplane")],
        })
        .to_string()
    }
}

/// `CONNECT k1-webhook.planes.svc:443`: only what is deployed on the host is there.
async fn connect(host: &Client, mut stream: UnixStream) -> Result<()> {
    let (head, _) = read_head(&mut stream, Vec::new()).await?.context("nobody asks")?;
    let target = head.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let service = target.split('.').next().unwrap_or_default().to_owned();
    let there = acceptor(host, &service).await;
    let acceptor = match there {
        Ok(acceptor) => acceptor,
        Err(_) => return Ok(stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await?),
    };
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    let mut stream = acceptor.accept(stream).await?;
    let mut rest = Vec::new();
    while let Some((head, body)) = read_request(&mut stream, rest).await? {
        let (answer, left) = body;
        rest = left;
        let reply = match clusters::is_asked(&head) {
            true => clusters::ask(host, &head, answer).await?,
            false => Reply::well(&answer_to(&head, &answer)),
        };
        let head = format!(
            "HTTP/1.1 {} Answer\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n",
            reply.code,
            reply.media_type,
            reply.body.len()
        );
        stream.write_all(&[head.as_bytes(), reply.body.as_slice()].concat()).await?;
    }
    Ok(())
}

/// The server of a Deployment, with the certificate of its Secret.
async fn acceptor(host: &Client, service: &str) -> Result<TlsAcceptor> {
    let deployments: Api<k8s_openapi::api::apps::v1::Deployment> = Api::namespaced(host.clone(), NAMESPACE);
    deployments.get(service).await?;
    let secrets: Api<Secret> = Api::namespaced(host.clone(), NAMESPACE);
    let data = secrets.get(service).await?.data.unwrap_or_default();
    let suffix = service.trim_start_matches("k1-");
    let file = |ending: &str| data.get(&format!("pki.{suffix}.{ending}")).map(|bytes| bytes.0.clone());
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&file("crt").context("no certificate")?)
        .map(|one| one.map(|one| one.into_owned()))
        .collect();
    let key = PrivateKeyDer::from_pem_slice(&file("key").context("no key")?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates?, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Everything is admitted, and every API but that of Clusters is there and has no kinds.
fn answer_to(head: &str, body: &[u8]) -> Value {
    let path = head.split_whitespace().nth(1).unwrap_or_default();
    match head.starts_with("POST") {
        true => {
            let review: Value = serde_json::from_slice(body).unwrap_or_default();
            json!({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "response": {"uid": review["request"]["uid"], "allowed": true},
            })
        }
        false => {
            let group = path.trim_start_matches("/apis/").split('?').next().unwrap_or_default();
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": []})
        }
    }
}

async fn read_head<S: AsyncReadExt + Unpin>(stream: &mut S, mut read: Vec<u8>) -> Result<Option<(String, Vec<u8>)>> {
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(end + 4);
            return Ok(Some((String::from_utf8(read)?, rest)));
        }
        let mut more = [0; 4096];
        match stream.read(&mut more).await? {
            0 => return Ok(None),
            length => read.extend_from_slice(&more[..length]),
        }
    }
}

type Body = (Vec<u8>, Vec<u8>);

/// The head of a request, its body, and what was read of the next one.
async fn read_request<S: AsyncReadExt + Unpin>(stream: &mut S, read: Vec<u8>) -> Result<Option<(String, Body)>> {
    let Some((head, mut body)) = read_head(stream, read).await? else { return Ok(None) };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let length = length.unwrap_or_default();
    while body.len() < length {
        let mut more = [0; 4096];
        match stream.read(&mut more).await? {
            0 => return Ok(None),
            count => body.extend_from_slice(&more[..count]),
        }
    }
    let rest = body.split_off(length);
    Ok(Some((head, (body, rest))))
}
