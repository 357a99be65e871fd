//! Whether an API refuses a kubeconfig: its user, or whoever asks by it finds that another authority is at work there.
//! One that is silent refuses nothing.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use kube::Client;
use tokio::time::timeout;

/// How long it has to say so.
const ANSWER: Duration = Duration::from_secs(5);

/// Asks it.
pub(super) async fn refuses(client: &Client) -> bool {
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else { return false };
    match timeout(ANSWER, client.request_text(request)).await {
        Ok(Err(kube::Error::Api(status))) => status.code == 401,
        Ok(Err(error)) => is_of_tls(&error),
        Ok(Ok(_)) | Err(_) => false,
    }
}

/// Whether the handshake of TLS failed, on either side.
fn is_of_tls(error: &(dyn StdError + 'static)) -> bool {
    if error.is::<rustls::Error>() {
        return true;
    }
    // What an error of the system wraps is not its source.
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    let wrapped = wrapped.is_some_and(|wrapped| is_of_tls(wrapped));
    wrapped || error.source().is_some_and(is_of_tls)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{is_of_tls, refuses};
    use crate::fake_api::FakeApi;

    #[test]
    fn a_handshake_that_failed_is_found_below_what_wraps_it() {
        let tls = || rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        assert!(is_of_tls(&tls()));
        assert!(is_of_tls(&io::Error::other(io::Error::other(tls()))));
        assert!(!is_of_tls(&io::Error::from(io::ErrorKind::ConnectionRefused)));
    }

    #[tokio::test]
    async fn a_user_whom_nobody_knows_is_refused_and_one_who_may_not_or_hears_nothing_is_not() {
        for (code, expected) in [(401, true), (403, false), (503, false)] {
            let api = FakeApi::default();
            api.refuse("GET ", usize::MAX, code, serde_json::Value::Null);
            assert_eq!(refuses(&api.client()).await, expected, "{code}");
        }
    }
}
