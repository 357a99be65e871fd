//! The archive of a chart in an artifact bundle, over HTTP.

use std::time::Duration;

use crds::Reason;
use crds::chart::{CA_FILE, LARGEST_ARCHIVE, TOKEN_FILE};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, StatusCode};

use super::failure::Failure;
use super::login::{login, text};
use crate::secrets::Secrets;

/// Name resolution, TCP and TLS.
const CONNECT: Duration = Duration::from_secs(10);
/// A download of which nothing comes for so long has ended.
const STALL: Duration = Duration::from_secs(60);

/// What is at the URL.
pub(super) async fn download(url: &str, secrets: &Secrets) -> Result<Vec<u8>, Failure> {
    let failed = |message: String| Failure::new(Reason::ChartNotFetched, message);
    let lost = |error: reqwest::Error| failed(format!("{url} does not answer: {}", chain(&error)));
    let mut request = client(url, secrets).map_err(lost)?.get(url);
    if let Some(token) = text(secrets, TOKEN_FILE) {
        request = request.bearer_auth(token);
    } else if let Some((username, password)) = login(secrets) {
        request = request.basic_auth(username, Some(password));
    }
    let mut answer = request.send().await.map_err(lost)?;
    if answer.status() != StatusCode::OK {
        return Err(failed(format!("{url} answers {}", answer.status())));
    }
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(lost)? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > LARGEST_ARCHIVE {
            return Err(failed(format!("{url} has more than {LARGEST_ARCHIVE} bytes")));
        }
    }
    Ok(bytes)
}

fn client(url: &str, secrets: &Secrets) -> Result<Client, reqwest::Error> {
    // The HTTP client takes the process's provider of cryptography. An error says that one was installed before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder().connect_timeout(CONNECT).read_timeout(STALL);
    // What is asked for is on this server, and a login is for nobody else.
    builder = builder.redirect(Policy::none()).https_only(url.starts_with("https://"));
    if let Some(pem) = secrets.get(CA_FILE) {
        builder = builder.tls_certs_only(Certificate::from_pem_bundle(pem)?);
    }
    builder.build()
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
