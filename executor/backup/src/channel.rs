//! A connection of gRPC to one member over byte streams that the caller connects, with TLS of our own on top.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use crate::alert::Explaining;
use crate::error::EtcdFailure;
use crate::text::chain;

/// A connection that shows no life for twice this time is dead. etcd takes a ping every five seconds.
const PING: Duration = Duration::from_secs(20);
/// Bytes that the member may send in one answer before they are read.
const WINDOW: u32 = 1 << 20;
/// The same in all answers: one that is not read, a snapshot's, leaves room for others.
const ALL: u32 = WINDOW * 2;

/// What a client of etcd proves who it is with, and knows the members by.
pub struct EtcdTls {
    /// The authority of the members' certificates, PEM.
    pub ca: Vec<u8>,
    /// The client's certificate, PEM, with those between it and its authority.
    pub certificate: Vec<u8>,
    /// Its key, PEM.
    pub key: Vec<u8>,
}

/// Connects to the client port at `url` (`https://10.0.0.1:2379`); `connect` is called anew for each connection. The
/// member's certificate has to name the URL's host. An error is one line that says what came back.
pub async fn connect<C, F, S>(url: &str, tls: &EtcdTls, limit: Duration, connect: C) -> Result<Channel, String>
where
    C: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = io::Result<S>> + Send,
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let uri: Uri = url.parse().map_err(|error| format!("its URL is wrong: {error}"))?;
    let host = uri.host().filter(|_| uri.scheme_str() == Some("https")).ok_or("its URL is none of https")?;
    let name = server_name(host).ok_or_else(|| format!("{host:?} can be in no certificate"))?;
    let tls = TlsConnector::from(Arc::new(configuration(tls)?));
    let connect = Arc::new(connect);
    let connected = Arc::new(AtomicBool::new(false));
    let was_connected = connected.clone();
    let connector = service_fn(move |_: Uri| {
        let (connect, tls, name, connected) = (connect.clone(), tls.clone(), name.clone(), connected.clone());
        async move {
            let stream = connect().await?;
            connected.store(true, Ordering::Relaxed);
            tls.connect(name, stream).await.map(|stream| TokioIo::new(Explaining(stream)))
        }
    });
    let endpoint = Endpoint::from(uri)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(ALL)
        .http2_keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    let seconds = limit.as_secs();
    match timeout(limit, endpoint.connect_with_connector(connector)).await {
        Ok(connected) => connected.map_err(|error| chain(&error)),
        Err(_) if was_connected.load(Ordering::Relaxed) => Err(format!(
            "connected, but no TLS handshake within {seconds} s: a member does not serve until it has seen a majority \
             of the members once since its start"
        )),
        Err(_) => Err(format!("no connection within {seconds} s")),
    }
}

/// What of TLS a failure to connect is about, by its words; none: something else.
pub fn tls_failure(answer: &str) -> Option<EtcdFailure> {
    match answer {
        _ if answer.contains("invalid peer certificate") => Some(EtcdFailure::Untrusted),
        _ if answer.contains("refuses the client's certificate") => Some(EtcdFailure::Refused),
        _ if answer.contains("received fatal alert") => Some(EtcdFailure::Refused),
        _ if answer.starts_with("etcd's C") || answer.starts_with("etcd's client ") => Some(EtcdFailure::Client),
        _ => None,
    }
}

/// The host of a URL as certificates name it: an IPv6 address is without its brackets.
fn server_name(host: &str) -> Option<ServerName<'static>> {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(host.to_owned()).ok()
}

fn configuration(tls: &EtcdTls) -> Result<ClientConfig, String> {
    let mut authorities = RootCertStore::empty();
    for certificate in certificates("CA", &tls.ca)? {
        authorities.add(certificate).map_err(|error| format!("etcd's CA is wrong: {error}"))?;
    }
    let certificate = certificates("client certificate", &tls.certificate)?;
    let key =
        PrivateKeyDer::from_pem_slice(&tls.key).map_err(|error| format!("etcd's client key is wrong: {error}"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut configuration = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(authorities)
        .with_client_auth_cert(certificate, key)
        .map_err(|error| format!("etcd's client certificate does not go with its key: {error}"))?;
    configuration.alpn_protocols = vec![b"h2".to_vec()];
    Ok(configuration)
}

fn certificates(what: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(certificates) if certificates.is_empty() => Err(format!("etcd's {what} holds no certificate in PEM")),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(format!("etcd's {what} is wrong: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_known_by_its_name_or_address() {
        for (host, address) in [("10.0.0.1", true), ("[fd00::1]", true), ("etcd-0.example.com", false)] {
            let name = server_name(host).unwrap();
            assert_eq!(matches!(name, ServerName::IpAddress(_)), address, "{host}");
        }
        assert!(server_name("a b").is_none());
    }

    #[test]
    fn files_that_are_no_pem_are_named() {
        let tls = EtcdTls { ca: b"x".to_vec(), certificate: Vec::new(), key: Vec::new() };
        let problem = configuration(&tls).err().unwrap();
        assert_eq!(problem, "etcd's CA holds no certificate in PEM");
        assert_eq!(tls_failure(&problem), Some(EtcdFailure::Client));
        assert_eq!(tls_failure("connection refused"), None);
    }
}
