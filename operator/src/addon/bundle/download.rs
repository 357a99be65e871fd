//! One download from a bundle's server: of a limited size, with its SHA-256.

use std::time::Duration;

use crds::Reason;
use plan::addon::Problem;
use plan::message::quote;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, RequestBuilder, StatusCode};
use sha2::{Digest, Sha256};

use crate::error::chain;

/// Name resolution, TCP and TLS.
const CONNECT: Duration = Duration::from_secs(5);
/// All of a download: a reconcile does not wait for longer.
const WHOLE: Duration = Duration::from_secs(20);

/// How a bundle's server is reached. There is no `Debug` of it: it has a login.
#[derive(Default, Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// The field that has `credentialsRef`, as messages have it.
    pub login_field: &'static str,
    /// Authorities in PEM; none: those of the image.
    pub ca: Option<String>,
    /// User and password.
    pub basic: Option<(String, String)>,
    /// A token.
    pub token: Option<String>,
}

impl Server {
    /// What is at the URL, and its SHA-256 in hexadecimal digits; `field` is the field that names the bundle.
    pub async fn get(&self, url: &str, field: &str, largest: u64) -> Result<(Vec<u8>, String), Problem> {
        let lost =
            |error: &reqwest::Error| not_fetched(format!("{url} does not answer the operator: {}", chain(error)));
        let client = self.client(url).map_err(|error| lost(&error))?;
        let mut answer = self.with_login(client.get(url)).send().await.map_err(|error| lost(&error))?;
        match answer.status() {
            StatusCode::OK => {}
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                return Err(not_fetched(format!(
                    "{url} answers {status}: correct {}.credentialsRef",
                    self.login_field
                )));
            }
            status if status.is_redirection() => {
                return Err(not_fetched(format!(
                    "{url} answers {status}: give the URL that it leads to in {field}.url"
                )));
            }
            status => {
                return Err(not_fetched(format!(
                    "{url} answers {status}: correct {field}.url, or make the bundle anew"
                )));
            }
        }
        let mut bytes = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|error| lost(&error))? {
            bytes.extend_from_slice(&piece);
            if bytes.len() as u64 > largest {
                let message = format!("{url} has more than {largest} bytes, which is the most that is taken: split it");
                return Err(Problem { reason: Reason::BundleInvalid, message });
            }
        }
        let sha256 = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((bytes, sha256))
    }

    fn client(&self, url: &str) -> Result<Client, reqwest::Error> {
        // The HTTP client takes the process's provider of cryptography. An error says that one was installed before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder().connect_timeout(CONNECT).timeout(WHOLE);
        // What is asked for is on this server, and a login is for nobody else.
        builder = builder.redirect(Policy::none()).https_only(url.starts_with("https://"));
        if let Some(pem) = &self.ca {
            builder = builder.tls_certs_only(Certificate::from_pem_bundle(pem.as_bytes())?);
        }
        builder.build()
    }

    fn with_login(&self, request: RequestBuilder) -> RequestBuilder {
        match (&self.token, &self.basic) {
            (Some(token), _) => request.bearer_auth(token),
            (None, Some((name, password))) => request.basic_auth(name, Some(password)),
            (None, None) => request,
        }
    }
}

fn not_fetched(message: String) -> Problem {
    Problem { reason: Reason::BundleNotFetched, message: quote(message) }
}
