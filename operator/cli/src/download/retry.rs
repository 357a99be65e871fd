//! Which failures of a download are worth another attempt.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use anyhow::Error;
use oci_client::errors::OciDistributionError;

/// How often a download is begun.
pub const ATTEMPTS: u32 = 5;

/// How long to wait after an attempt that failed. `None`: another one would fail too, or there were enough.
pub fn delay(error: &Error, attempt: u32) -> Option<Duration> {
    (attempt < ATTEMPTS && is_transient(error)).then(|| Duration::from_millis(500 << attempt))
}

/// Whether the network failed, or a server that may answer later.
fn is_transient(error: &Error) -> bool {
    error.chain().any(|cause| {
        if let Some(error) = cause.downcast_ref::<reqwest::Error>() {
            return is_passing(error);
        }
        match cause.downcast_ref::<OciDistributionError>() {
            Some(OciDistributionError::RequestError(error)) => is_passing(error),
            Some(OciDistributionError::ServerError { code, .. }) => *code >= 500 || *code == 429,
            Some(_) => false,
            None => cause.downcast_ref::<io::Error>().is_some_and(is_of_the_connection),
        }
    })
}

fn is_passing(error: &reqwest::Error) -> bool {
    match error.status() {
        Some(status) => status.is_server_error() || status.as_u16() == 429,
        None if is_tls(error) => false,
        None => error.is_connect() || error.is_timeout() || error.is_body() || error.is_decode() || error.is_request(),
    }
}

/// Whether the two could not agree on TLS, e.g. about a certificate.
fn is_tls(error: &(dyn StdError + 'static)) -> bool {
    // An io::Error does not name what it wraps as its source, but the source of that.
    let wrapped = error.downcast_ref::<io::Error>().and_then(|error| error.get_ref());
    let wrapped = wrapped.map(|inner| inner as &(dyn StdError + 'static));
    error.is::<rustls::Error>() || wrapped.or_else(|| error.source()).is_some_and(is_tls)
}

fn is_of_the_connection(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    let kinds = [Kind::ConnectionReset, Kind::ConnectionAborted, Kind::TimedOut, Kind::UnexpectedEof, Kind::BrokenPipe];
    // A stream of bytes wraps what the client says.
    kinds.contains(&error.kind()) || error.get_ref().is_some_and(|inner| inner.is::<reqwest::Error>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_found_in_whatever_wraps_it() {
        let tls = || rustls::Error::General("unknown issuer".to_owned());
        assert!(is_tls(&tls()) && is_tls(&io::Error::other(io::Error::other(tls()))));
        assert!(!is_tls(&io::Error::other("reset")) && !is_tls(&io::Error::from(io::ErrorKind::TimedOut)));
    }

    #[test]
    fn a_full_disk_and_a_refusal_are_final_and_a_reset_is_not() {
        let reset = || Error::from(io::Error::from(io::ErrorKind::ConnectionReset)).context("failed to download");
        assert_eq!(delay(&reset(), 1), Some(Duration::from_secs(1)));
        assert_eq!(delay(&reset(), ATTEMPTS), None);
        assert_eq!(delay(&Error::from(io::Error::from(io::ErrorKind::StorageFull)), 1), None);
        assert_eq!(delay(&Error::msg("another digest"), 1), None);
        let answer = |code| OciDistributionError::ServerError { code, url: String::new(), message: String::new() };
        assert!(delay(&answer(503).into(), 1).is_some());
        assert_eq!(delay(&answer(404).into(), 1), None);
    }
}
