//! A client of an S3 bucket.

use std::time::Duration;

use crds::backup::S3Inputs;
use crds::backup_storage::ServerSideAlgorithm;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{BackoffConfig, Certificate, ClientOptions, RetryConfig};

use crate::connector::Connector;
use crate::credentials::Credentials;
use crate::error::StorageFailure;
use crate::text::chain;

/// Name resolution, TCP and TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// One request with its body: a part of 16 MiB at half a megabit a second.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);
/// No attempt begins after this time: a storage that is away is reported within a minute.
const RETRY_TIMEOUT: Duration = Duration::from_secs(35);
/// More attempts than fit into that time.
const RETRIES: usize = 100;

/// Why there is no client.
pub type Unusable = (StorageFailure, String);

/// A client that tries again where that makes sense: for objects that only one attempt writes, and that are read back.
/// So over TLS the bodies of its requests are not signed: neither side computes their SHA-256 once more.
pub fn client(inputs: &S3Inputs, credentials: &Credentials) -> Result<AmazonS3, Unusable> {
    let builder = builder(inputs, credentials, RETRIES)?;
    builder.with_unsigned_payload(inputs.endpoint.starts_with("https://")).build().map_err(unusable)
}

/// A client that tries once: for writes that must not be repeated blindly. It signs each request with SHA-256 of its
/// body (x-amz-content-sha256), which servers check.
pub fn client_without_retries(inputs: &S3Inputs, credentials: &Credentials) -> Result<AmazonS3, Unusable> {
    builder(inputs, credentials, 0)?.build().map_err(unusable)
}

fn builder(inputs: &S3Inputs, credentials: &Credentials, retries: usize) -> Result<AmazonS3Builder, Unusable> {
    // The HTTP client takes the process's provider of cryptography. An error says that one was installed before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let missing = |name: &str| {
        (StorageFailure::AccessDenied, format!("{name} is missing from the Secret with its credentials, or is no text"))
    };
    let key = credentials.access_key_id.as_ref().ok_or_else(|| missing("accessKeyID"))?;
    let secret = credentials.secret_access_key.as_ref().ok_or_else(|| missing("secretAccessKey"))?;
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(500), max_backoff: Duration::from_secs(8), base: 2.0 };
    // The checksum headers of newer SDKs (CRC64 and the like), which many servers do not know, are not sent. Objects
    // are deleted one by one: not every server knows DeleteObjects.
    let mut builder = AmazonS3Builder::new()
        .with_endpoint(endpoint(inputs))
        .with_bucket_name(&inputs.bucket)
        .with_region(&inputs.region)
        .with_virtual_hosted_style_request(!inputs.path_style)
        .with_access_key_id(key)
        .with_secret_access_key(secret)
        .with_disable_bulk_delete(true)
        .with_client_options(client_options(inputs)?)
        .with_http_connector(Connector::default())
        .with_retry(RetryConfig { backoff, max_retries: retries, retry_timeout: RETRY_TIMEOUT });
    if let Some(token) = &credentials.session_token {
        builder = builder.with_token(token);
    }
    for (option, value) in encryption_options(inputs) {
        let option: AmazonS3ConfigKey = option.parse().map_err(unusable)?;
        builder = builder.with_config(option, value);
    }
    Ok(builder)
}

/// The client's options for encryption by the server: of the types of `object_store`, only their names are public.
fn encryption_options(inputs: &S3Inputs) -> Vec<(&'static str, String)> {
    let Some(encryption) = &inputs.server_side_encryption else { return Vec::new() };
    let algorithm = match encryption.algorithm {
        ServerSideAlgorithm::AES256 => "AES256",
        ServerSideAlgorithm::KMS => "aws:kms",
    };
    let key = encryption.kms_key_id.clone().map(|key| ("aws_sse_kms_key_id", key));
    [("aws_server_side_encryption", algorithm.to_owned())].into_iter().chain(key).collect()
}

fn unusable(error: object_store::Error) -> Unusable {
    (StorageFailure::Rejected, chain(&error))
}

fn client_options(inputs: &S3Inputs) -> Result<ClientOptions, Unusable> {
    let http = inputs.endpoint.starts_with("http://");
    let invalid = |problem: &str| (StorageFailure::CertificateInvalid, format!("its authorities {problem}"));
    let mut options = ClientOptions::new()
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_timeout(REQUEST_TIMEOUT)
        .with_allow_http(http)
        // Those of the platform need not be there where no certificate is checked, and do not count beside others.
        .with_no_system_certificates(http || inputs.authorities.is_some());
    if let Some(pem) = &inputs.authorities {
        let certificates = Certificate::from_pem_bundle(pem.as_bytes()).map_err(|error| invalid(&chain(&error)))?;
        if certificates.is_empty() {
            return Err(invalid("hold no certificate in PEM"));
        }
        for certificate in certificates {
            options = options.with_root_certificate(certificate);
        }
    }
    Ok(options)
}

/// The URL that requests go to: the bucket is in the name of the host unless it is in the path.
fn endpoint(inputs: &S3Inputs) -> String {
    let url = inputs.endpoint.trim_end_matches('/');
    match url.split_once("://") {
        Some((scheme, host)) if !inputs.path_style => format!("{scheme}://{}.{host}", inputs.bucket),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crds::backup_storage::ServerSideEncryption;

    fn inputs() -> S3Inputs {
        S3Inputs {
            endpoint: "https://s3.example.com:9000/".to_owned(),
            bucket: "etcd".to_owned(),
            prefix: String::new(),
            region: "us-east-1".to_owned(),
            path_style: true,
            authorities: None,
            server_side_encryption: None,
        }
    }

    #[test]
    fn the_bucket_is_in_the_path_or_in_the_name_of_the_host() {
        assert_eq!(endpoint(&inputs()), "https://s3.example.com:9000");
        assert_eq!(endpoint(&S3Inputs { path_style: false, ..inputs() }), "https://etcd.s3.example.com:9000");
    }

    #[test]
    fn missing_credentials_and_authorities_that_are_none_are_refused_and_every_encryption_is_known() {
        let (failure, text) = client(&inputs(), &Credentials::default()).unwrap_err();
        assert_eq!(failure, StorageFailure::AccessDenied);
        assert!(text.contains("accessKeyID"), "{text}");
        let known = Credentials::from_files([("accessKeyID", &b"a"[..]), ("secretAccessKey", &b"b"[..])]);
        let unreadable = S3Inputs { authorities: Some("no PEM".to_owned()), ..inputs() };
        for (algorithm, kms_key_id) in [
            (ServerSideAlgorithm::AES256, None),
            (ServerSideAlgorithm::KMS, None),
            (ServerSideAlgorithm::KMS, Some("alias/etcd".to_owned())),
        ] {
            let encryption = Some(ServerSideEncryption { algorithm, kms_key_id });
            let encrypted = S3Inputs { server_side_encryption: encryption, ..inputs() };
            assert!(client(&encrypted, &known).is_ok(), "{encrypted:?}");
        }
        assert_eq!(client(&unreadable, &known).unwrap_err().0, StorageFailure::CertificateInvalid);
    }
}
