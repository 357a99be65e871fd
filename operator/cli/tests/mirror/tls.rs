//! A mirror with a certificate of a private authority, and a registry that asks for a login.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::serve::Listener;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::upstream::Upstream;
use crate::wright::{Wright, said};

/// Takes connections with TLS.
pub struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = std::net::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = self.listener.accept().await.unwrap();
            // Who does not believe the certificate goes away.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// An authority's certificate in PEM, and what makes a listener of its own.
pub fn authority() -> (String, impl FnOnce(TcpListener) -> Tls) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let ca = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let acceptor = acceptor(&leaf, &key);
    (ca.pem(), move |listener| Tls { listener, acceptor })
}

/// Shows this certificate to every client.
fn acceptor(leaf: &Certificate, key: &KeyPair) -> TlsAcceptor {
    let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

#[test]
fn an_authority_of_ones_own_is_trusted_once_it_is_given() {
    let (ca, listen) = authority();
    let upstream = Upstream::small_with_tls(listen);
    let wright = Wright::new(&upstream);
    std::fs::write(wright.path("ca.crt"), ca).unwrap();
    let host = upstream.address();
    let mirror = format!("https://{host}/up");
    let fixed = ["create", "b", "--kubernetes", "1.35.4", "--arch", "amd64", "--catalogue", "catalogue"];
    let from = [&fixed[..], &["--mirror", &mirror, "--image-mirror", &host]].concat();
    let begun = Instant::now();
    wright.run(&from).ended(2, &["certificate"]);
    assert!(begun.elapsed() < Duration::from_secs(5), "another attempt would end in the same way");
    wright.run(&[&from[..], &["--ca", "ca.crt"]].concat()).ended(0, &["kube-proxy v1.35.4 linux/amd64: downloaded"]);
    std::fs::write(wright.path("none.crt"), "").unwrap();
    wright.run(&[&from[..], &["--ca", "none.crt"]].concat()).ended(2, &["none.crt has no certificates in PEM"]);
}

#[test]
fn a_registry_is_given_the_login_that_docker_login_has_kept() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    let login = BASE64_STANDARD.encode("fleet:canary-Zk3-secret");
    upstream.site.lock().unwrap().registry.login = Some(format!("Basic {login}"));
    wright.create("b", &[]).ended(2, &["failed to read the manifest of"]);
    let folder = wright.path("docker");
    std::fs::create_dir(&folder).unwrap();
    let config = serde_json::json!({"auths": {upstream.address(): {"auth": login}}});
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    let logged_in = |arguments: &[String]| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        said(&wright.command(&arguments).env("DOCKER_CONFIG", &folder).output().unwrap())
    };
    let text = logged_in(&wright.create_arguments("b", &[])).ended(0, &["kube-proxy v1.35.4 linux/amd64: downloaded"]);
    assert!(!text.contains("canary"), "{text}");
    let host = upstream.address();
    let push = ["push", "b", &format!("oci://{host}/site/bundle:1"), "--insecure-registry", &host].map(str::to_owned);
    logged_in(&push).ended(0, &["digest: "]);
    wright.run_all(&push).ended(2, &["failed to push"]);
}
