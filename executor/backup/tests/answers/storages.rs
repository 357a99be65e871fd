//! Storages, and what is said of each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::any;
use backup::{BackupError, Credentials, Store, list, probe, verify};
use crds::backup::{S3Inputs, StorageInputs};
use rcgen::{CertificateParams, KeyPair};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

fn inputs(endpoint: String) -> StorageInputs {
    StorageInputs::S3(S3Inputs {
        endpoint,
        bucket: "etcd".to_owned(),
        prefix: "clusterwright".to_owned(),
        region: "us-east-1".to_owned(),
        path_style: true,
        authorities: None,
        server_side_encryption: None,
    })
}

async fn open(inputs: &StorageInputs) -> Store {
    let files =
        [("accessKeyID", &b"AKIAPUBLIC"[..]), ("secretAccessKey", &b"s3cr3t"[..]), ("sessionToken", &b"t0k3n"[..])];
    Store::open(inputs, &Credentials::from_files(files)).await.unwrap()
}

/// A server that gives every request one answer.
async fn server(status: StatusCode, code: &'static str) -> Store {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>since\nI say so</Message></Error>");
    let router = Router::new().fallback(any(async move || (status, body.clone())));
    tokio::spawn(async move { axum::serve(listener, router).await });
    open(&inputs(endpoint)).await
}

#[tokio::test]
async fn an_answer_is_told_with_its_reason_and_what_to_do_and_without_credentials() {
    for (status, code, reason, retriable) in [
        (403, "AccessDenied", "StorageAccessDenied", false),
        (403, "InvalidAccessKeyId", "StorageAccessDenied", false),
        (403, "SignatureDoesNotMatch", "StorageAccessDenied", false),
        (403, "RequestTimeTooSkewed", "StorageClockSkewed", false),
        (403, "QuotaExceeded", "StorageFull", false),
        (400, "EntityTooLarge", "StorageFull", false),
        (404, "NoSuchBucket", "BucketNotFound", false),
        (400, "AuthorizationHeaderMalformed", "StorageFailed", false),
    ] {
        let store = server(StatusCode::from_u16(status).unwrap(), code).await;
        for error in [
            probe(&store).await.unwrap_err(),
            verify(&store, "paris/uid/now").await.unwrap_err(),
            list(&store).await.unwrap_err(),
        ] {
            assert_eq!((error.reason(), error.retriable()), (reason, retriable), "{error}");
            let text = error.to_string();
            let told = [
                format!("{status}"),
                code.to_owned(),
                "since I say so".to_owned(),
                "bucket etcd at http://".to_owned(),
            ];
            assert!(told.iter().all(|part| text.contains(part)), "{text}");
            assert!(["AKIAPUBLIC", "s3cr3t", "t0k3n"].iter().all(|secret| !text.contains(secret)), "{text}");
        }
    }
}

#[tokio::test]
async fn a_bucket_without_the_object_is_no_failure_of_the_storage() {
    let store = server(StatusCode::NOT_FOUND, "NoSuchKey").await;
    let error = verify(&store, "paris/uid/now").await.unwrap_err();
    assert!(matches!(error, BackupError::Corrupt { .. }) && error.to_string().contains("manifest.json"), "{error}");
}

/// A server whose certificate nobody knows.
async fn unknown_certificate() -> Store {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
    let authority = CertificateParams::new(Vec::new()).unwrap().self_signed(&KeyPair::generate().unwrap()).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let StorageInputs::S3(inputs) = inputs(format!("https://{}", listener.local_addr().unwrap())) else {
        unreachable!()
    };
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(acceptor.accept(stream));
        }
    });
    open(&StorageInputs::S3(S3Inputs { authorities: Some(authority.pem()), ..inputs })).await
}

/// A server that takes connections and says nothing.
async fn silent() -> Store {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut taken = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            taken.push(stream);
        }
    });
    open(&inputs(endpoint)).await
}

#[tokio::test]
async fn a_storage_that_is_away_overloaded_silent_or_a_stranger_is_reported_within_a_minute() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let gone = open(&inputs(format!("http://{gone}"))).await;
    let overloaded = server(StatusCode::SERVICE_UNAVAILABLE, "SlowDown").await;
    let (unknown, silent) = (unknown_certificate().await, silent().await);
    let since = Instant::now();
    let asked = [
        (&gone, "StorageUnreachable", "onnection refused"),
        (&overloaded, "StorageUnreachable", "503 Service Unavailable: SlowDown"),
        (&unknown, "StorageCertificateInvalid", "invalid peer certificate"),
        (&silent, "StorageUnreachable", "no answer within 60 s"),
    ]
    .map(async |(store, reason, told)| {
        let error = verify(store, "paris/uid/now").await.unwrap_err();
        println!("{:.0?}: {error}", since.elapsed());
        assert!(error.reason() == reason && error.to_string().contains(told), "{error}");
        assert!(since.elapsed() < Duration::from_secs(65), "{:?}: {error}", since.elapsed());
    });
    futures::future::join_all(asked).await;
}

#[tokio::test]
async fn a_directory_is_probed_and_one_that_cannot_be_written_is_named() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("backups");
    let directory = StorageInputs::Directory(path.display().to_string());
    let store = Store::open(&directory, &Credentials::default()).await.unwrap();
    probe(&store).await.unwrap();
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
    assert!(store.free_space().await.unwrap().unwrap() > 0);
    // A file system's own directory, which only root may read, and backups beside it.
    std::fs::create_dir_all(path.join("lost+found")).unwrap();
    assert_eq!(list(&store).await.unwrap().backups, 0);

    let file = place.path().join("file");
    std::fs::write(&file, "").unwrap();
    let inputs = StorageInputs::Directory(file.join("below").display().to_string());
    let error = Store::open(&inputs, &Credentials::default()).await.unwrap_err();
    assert!(error.reason() == "StorageFailed" && error.to_string().contains("file/below"), "{error}");
    let inputs = StorageInputs::Directory("/proc/clusterwright".to_owned());
    let error = Store::open(&inputs, &Credentials::default()).await.unwrap_err();
    assert!(error.to_string().contains("/proc/clusterwright"), "{error}");
}
