//! What a storage's error means. `object_store` keeps the status and the body of an answer in private types: both are
//! read from the text, as it prints them.

use std::io::ErrorKind;

use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};
use rustls::CertificateError;

use crate::error::StorageFailure;
use crate::text::{chain, find, sanitize};

/// Error codes of S3 and of servers that speak its protocol.
const CODES: &[(&str, StorageFailure)] = &[
    ("RequestTimeTooSkewed", StorageFailure::ClockSkewed),
    ("RequestExpired", StorageFailure::ClockSkewed),
    ("NoSuchBucket", StorageFailure::BucketNotFound),
    ("AccessDenied", StorageFailure::AccessDenied),
    ("AllAccessDisabled", StorageFailure::AccessDenied),
    ("AccountProblem", StorageFailure::AccessDenied),
    ("SignatureDoesNotMatch", StorageFailure::AccessDenied),
    ("InvalidAccessKeyId", StorageFailure::AccessDenied),
    // versitygw's, with 404.
    ("XAdminUserNotFound", StorageFailure::AccessDenied),
    ("InvalidToken", StorageFailure::AccessDenied),
    ("ExpiredToken", StorageFailure::AccessDenied),
    ("EntityTooLarge", StorageFailure::Full),
    ("QuotaExceeded", StorageFailure::Full),
    ("InsufficientStorage", StorageFailure::Full),
    ("InsufficientCapacity", StorageFailure::Full),
    ("XMinioStorageFull", StorageFailure::Full),
    ("XMinioAdminBucketQuotaExceeded", StorageFailure::Full),
    ("SlowDown", StorageFailure::Unreachable),
    ("ServiceUnavailable", StorageFailure::Unreachable),
];

/// What an error is, and what came back in one line.
pub fn classify(error: &Error) -> (StorageFailure, String) {
    let text = error.to_string();
    if let Some(answer) = Answer::parse(&text) {
        return (answer.failure(), answer.line());
    }
    if let Some(failure) = of_a_certificate(error) {
        return (failure, chain(innermost_that_tells(error)));
    }
    let failure = if let Some(error) = find::<std::io::Error>(error)
        && find::<HttpError>(error).is_none()
    {
        of_a_file(error.kind())
    } else {
        StorageFailure::Failed
    };
    let failure = match find::<HttpError>(error).map(HttpError::kind) {
        // A redirection to nowhere: the bucket is in another region.
        _ if text.contains("Received redirect without LOCATION") => StorageFailure::Rejected,
        Some(HttpErrorKind::Connect | HttpErrorKind::Request | HttpErrorKind::Timeout | HttpErrorKind::Interrupted) => {
            StorageFailure::Unreachable
        }
        _ => failure,
    };
    (failure, chain(innermost_that_tells(error)))
}

/// Whether the storage does not know what it was asked to do, as conditional writes.
pub fn is_not_implemented(error: &Error) -> bool {
    let text = error.to_string();
    matches!(error, Error::NotImplemented { .. } | Error::NotSupported { .. })
        || Answer::parse(&text).is_some_and(|answer| answer.status == 501 || answer.code == Some("NotImplemented"))
}

/// The error that carries the system's own: what stands around it names private paths and the client's settings.
fn innermost_that_tells(error: &Error) -> &(dyn std::error::Error + 'static) {
    if let Some(http) = find::<HttpError>(error) {
        return http;
    }
    match find::<std::io::Error>(error) {
        Some(io) => io,
        None => error,
    }
}

/// What is wrong with the storage's certificate, if that is what it is.
fn of_a_certificate(error: &Error) -> Option<StorageFailure> {
    let rustls::Error::InvalidCertificate(problem) = find::<rustls::Error>(error)? else { return None };
    Some(match problem {
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => StorageFailure::CertificateExpired,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            StorageFailure::CertificateOfOther
        }
        _ => StorageFailure::CertificateInvalid,
    })
}

fn of_a_file(kind: ErrorKind) -> StorageFailure {
    match kind {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => StorageFailure::AccessDenied,
        ErrorKind::NotADirectory | ErrorKind::InvalidInput | ErrorKind::InvalidFilename => StorageFailure::Rejected,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => StorageFailure::Full,
        ErrorKind::StaleNetworkFileHandle
        | ErrorKind::TimedOut
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NotConnected => StorageFailure::Unreachable,
        _ => StorageFailure::Failed,
    }
}

/// An answer of an HTTP server that is no success.
struct Answer<'a> {
    status: u16,
    phrase: &'a str,
    code: Option<&'a str>,
    message: Option<&'a str>,
}

impl<'a> Answer<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let refused = "Server returned non-2xx status code: ";
        // An answer of 200 whose body is an error after all.
        let failed = "Server returned error response: ";
        let (status, rest) = if let Some(at) = text.find(refused) {
            text[at + refused.len()..].split_at_checked(3)?
        } else {
            ("200", &text[text.find(failed)? + failed.len()..])
        };
        let (phrase, _) = rest.split_once(':').unwrap_or((rest, ""));
        Some(Self {
            status: status.parse().ok()?,
            phrase: if status == "200" { "OK" } else { phrase.trim() },
            code: element(rest, "Code"),
            message: element(rest, "Message"),
        })
    }

    fn failure(&self) -> StorageFailure {
        let known = CODES.iter().find(|(code, _)| Some(*code) == self.code).map(|(_, failure)| *failure);
        known.unwrap_or(match self.status {
            401 | 403 => StorageFailure::AccessDenied,
            413 | 507 => StorageFailure::Full,
            408 | 429 | 502..=504 => StorageFailure::Unreachable,
            300..=499 => StorageFailure::Rejected,
            _ => StorageFailure::Failed,
        })
    }

    fn line(&self) -> String {
        let mut line = format!("{} {}", self.status, self.phrase);
        for part in [self.code, self.message].into_iter().flatten() {
            line = format!("{line}: {part}");
        }
        sanitize(&line)
    }
}

/// The text of an element of XML that holds nothing else.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    Some(text.trim()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classified(text: &str) -> (StorageFailure, String) {
        classify(&Error::Generic { store: "S3", source: text.to_owned().into() })
    }

    #[test]
    fn an_answer_is_known_by_its_code_before_its_status() {
        let (failure, line) = classified(
            "Error performing PUT http://s3/b/k in 1ms - Server returned non-2xx status code: 403 Forbidden: \
             <Error><Code>RequestTimeTooSkewed</Code><Message>Too\nlarge</Message></Error>",
        );
        assert_eq!(
            (failure, line.as_str()),
            (StorageFailure::ClockSkewed, "403 Forbidden: RequestTimeTooSkewed: Too large")
        );
        for (status, code, expected) in [
            ("404 Not Found", "NoSuchBucket", StorageFailure::BucketNotFound),
            ("403 Forbidden", "SignatureDoesNotMatch", StorageFailure::AccessDenied),
            ("403 Forbidden", "QuotaExceeded", StorageFailure::Full),
            ("400 Bad Request", "EntityTooLarge", StorageFailure::Full),
            ("503 Service Unavailable", "SlowDown", StorageFailure::Unreachable),
            ("507 Insufficient Storage", "Unknown", StorageFailure::Full),
            ("401 Unauthorized", "", StorageFailure::AccessDenied),
            ("404 Not Found", "XAdminUserNotFound", StorageFailure::AccessDenied),
            ("400 Bad Request", "AuthorizationHeaderMalformed", StorageFailure::Rejected),
            ("500 Internal Server Error", "InternalError", StorageFailure::Failed),
        ] {
            let body = format!("Server returned non-2xx status code: {status}: <Code>{code}</Code>");
            assert_eq!(classified(&body).0, expected, "{body}");
        }
        let late = classified("Server returned error response: <Error><Code>SlowDown</Code></Error>");
        assert_eq!(late, (StorageFailure::Unreachable, "200 OK: SlowDown".to_owned()));
    }

    #[test]
    fn an_error_of_a_file_system_is_known_by_its_kind() {
        for (kind, expected) in [
            (ErrorKind::StorageFull, StorageFailure::Full),
            (ErrorKind::QuotaExceeded, StorageFailure::Full),
            (ErrorKind::PermissionDenied, StorageFailure::AccessDenied),
            (ErrorKind::ReadOnlyFilesystem, StorageFailure::AccessDenied),
            (ErrorKind::StaleNetworkFileHandle, StorageFailure::Unreachable),
            (ErrorKind::InvalidData, StorageFailure::Failed),
        ] {
            let error = Error::Generic { store: "LocalFileSystem", source: std::io::Error::from(kind).into() };
            assert_eq!(classify(&error).0, expected, "{kind:?}");
        }
    }

    #[test]
    fn a_conditional_write_that_is_unknown_is_recognised() {
        let text = "Server returned non-2xx status code: 501 Not Implemented: ".to_owned();
        assert!(is_not_implemented(&Error::Generic { store: "S3", source: text.into() }));
        let text = "Server returned non-2xx status code: 503 Service Unavailable: ".to_owned();
        assert!(!is_not_implemented(&Error::Generic { store: "S3", source: text.into() }));
    }
}
