//! A connection to one member of etcd, over a port that the host's API forwards to its Pod.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use http::{Request, header};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use plan::karmada_deployment::etcd::ETCD_CLIENT_PORT;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use super::answer::{Refusal, answer};
use crate::error::chain;
use crate::pki::authority::Certified;

/// Bytes that an answer may have.
const MOST: usize = 1 << 20;

/// A connection to one member.
pub(super) struct Session {
    sender: SendRequest<Body>,
    /// The host that requests name.
    host: String,
}

impl Session {
    /// Through the API of the host cluster, to this Pod, whose certificate is for this name.
    pub async fn forwarded(
        client: &Client,
        namespace: &str,
        (pod, name): (&str, &str),
        tls: Arc<ClientConfig>,
    ) -> Result<Self, Refusal> {
        let silent = |why: String| Refusal::Silent(why);
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let forwarded = pods.portforward(pod, &[ETCD_CLIENT_PORT]).await;
        let mut forwarded = forwarded.map_err(|error| silent(chain(&error)))?;
        let stream = forwarded.take_stream(ETCD_CLIENT_PORT).ok_or_else(|| silent("no port is forwarded".into()))?;
        let host = ServerName::try_from(name.to_owned()).map_err(|error| silent(chain(&error)))?;
        let stream = TlsConnector::from(tls).connect(host, stream).await.map_err(|error| silent(chain(&error)))?;
        Self::over(stream, name).await
    }

    /// To what answers in place of a Pod.
    #[cfg(test)]
    pub async fn with(router: axum::Router) -> Result<Self, Refusal> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let service = hyper_util::service::TowerToHyperService::new(router);
        let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(theirs), service);
        tokio::spawn(async move { drop(served.await) });
        Self::over(ours, "localhost").await
    }

    async fn over(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, host: &str) -> Result<Self, Refusal> {
        let (sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(|error| Refusal::Silent(chain(&error)))?;
        // Whoever waits for an answer gets the error by which it ends.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self { sender, host: host.to_owned() })
    }

    /// The answer to this.
    pub async fn post(&mut self, path: &str, body: &Value) -> Result<Value, Refusal> {
        let request = Request::post(path)
            .header(header::HOST, &self.host)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_string()))
            .map_err(|error| Refusal::Silent(chain(&error)))?;
        let response = self.sender.send_request(request).await.map_err(|error| Refusal::Silent(chain(&error)))?;
        let is_success = response.status().is_success();
        let body = to_bytes(Body::new(response.into_body()), MOST).await;
        answer(is_success, &body.map_err(|error| Refusal::Silent(chain(&error)))?)
    }
}

/// Trusts these authorities, and has this certificate.
pub(super) fn configuration(trusted: &str, client: &Certified) -> Result<ClientConfig, String> {
    let read = |pem: &str| CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let mut authorities = RootCertStore::empty();
    for authority in read(trusted).map_err(|error| chain(&error))? {
        authorities.add(authority).map_err(|error| chain(&error))?;
    }
    let certificate = read(&client.certificate).map_err(|error| chain(&error))?;
    let key = PrivateKeyDer::from_pem_slice(client.key.as_bytes()).map_err(|error| chain(&error))?;
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| chain(&error))?
        .with_root_certificates(authorities)
        .with_client_auth_cert(certificate, key)
        .map_err(|error| chain(&error))
}
