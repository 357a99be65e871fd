use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use super::certificate::Certificate;
use super::{answer, chain};
use crate::fake_api::FakeApi;

/// Writes a certificate for `localhost` into the directory, as a Secret's volume has it; the certificate.
fn write_certificate(directory: &Path) -> String {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(directory.join("tls.crt"), certificate.pem()).unwrap();
    std::fs::write(directory.join("tls.key"), key.serialize_pem()).unwrap();
    certificate.pem()
}

/// What the server answers to one who trusts this certificate.
async fn get(address: SocketAddr, trusted: &str, path: &str) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config =
        config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

/// A server with a certificate of the directory, and where it listens.
async fn serve(directory: &Path, authorized: bool) -> (SocketAddr, Certificate, tokio::sync::watch::Sender<bool>) {
    let (ctx, stop) = FakeApi::default().running();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let certificate = Certificate::read(directory).unwrap();
    tokio::spawn(answer(ctx, listener, certificate.clone(), authorized));
    (address, certificate, stop)
}

#[tokio::test]
async fn metrics_are_served_over_tls_and_a_slow_handshake_holds_up_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let trusted = write_certificate(directory.path());
    let (address, _, _stop) = serve(directory.path(), false).await;
    // It says nothing, and is served before nobody else.
    let _silent = TcpStream::connect(address).await.unwrap();
    let answer = get(address, &trusted, "/metrics").await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("clusterwright_leader 0"), "{answer}");
    let answer = get(address, &trusted, "/healthz").await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}

#[tokio::test]
async fn without_a_token_nothing_is_said_where_authorization_is_wanted() {
    let directory = tempfile::tempdir().unwrap();
    let trusted = write_certificate(directory.path());
    let (address, _, _stop) = serve(directory.path(), true).await;
    let answer = get(address, &trusted, "/metrics").await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 401") && !answer.contains("clusterwright_"), "{answer}");
}

#[tokio::test]
async fn a_new_certificate_is_taken_and_one_that_is_broken_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let former = write_certificate(directory.path());
    let (address, certificate, _stop) = serve(directory.path(), false).await;
    assert!(!certificate.renew().unwrap());
    std::fs::write(directory.path().join("tls.key"), "no key").unwrap();
    let error = chain(&certificate.renew().unwrap_err());
    assert!(error.contains("failed to use tls.crt and tls.key of"), "{error}");
    assert!(get(address, &former, "/metrics").await.is_ok());
    let new = write_certificate(directory.path());
    assert!(certificate.renew().unwrap());
    assert!(get(address, &new, "/metrics").await.is_ok());
    assert!(get(address, &former, "/metrics").await.is_err());
}
