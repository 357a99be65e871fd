//! The manifest of a backup in its storage: written last and once; nothing is a backup without it.

use std::time::Duration;

use bytes::Bytes;
use crds::backup::{BackupManifest, MANIFEST_FILE};
use tokio::time::{Instant, sleep};

use crate::error::BackupError;
use crate::location::Location;
use crate::store::{Created, Store};

/// No attempt to write begins after this time.
const WRITE: Duration = Duration::from_secs(35);

/// How the attempt to write a manifest ended.
pub enum Outcome {
    /// It is there.
    Written,
    /// It is not there: what was stored may be removed.
    Absent(BackupError),
    /// Another one is there, or nobody knows: what was stored may belong to it.
    Unclear(BackupError),
}

/// Reads the manifest of the backup at a location. Errors: there is none, or it is none that this version reads
/// (`BackupCorrupt`); or those of the storage.
pub async fn read_manifest(store: &Store, location: &str) -> Result<BackupManifest, BackupError> {
    let parsed = Location::parse(location).map_err(|problem| corrupt(store, location, problem))?;
    match store.get(&parsed.object(MANIFEST_FILE)).await? {
        Some(text) => BackupManifest::parse(&text).map_err(|error| corrupt(store, location, error.to_string())),
        None => Err(corrupt(store, location, format!("it has no {MANIFEST_FILE}"))),
    }
}

/// Checks that a backup is there with all that its manifest names, in the sizes that it says, and returns its manifest.
/// Nothing else is downloaded. Errors: something is missing or has another size (`BackupCorrupt`); or those of the
/// storage.
pub async fn verify(store: &Store, location: &str) -> Result<BackupManifest, BackupError> {
    let manifest = read_manifest(store, location).await?;
    let parsed = Location::parse(location).map_err(|problem| corrupt(store, location, problem))?;
    for object in [&manifest.snapshot, &manifest.bundle] {
        let problem = match store.size(&parsed.object(&object.name)).await? {
            Some(size) if size == object.size => continue,
            Some(size) => format!("{} has {size} bytes, and its manifest says {}", object.name, object.size),
            None => format!("{} is missing", object.name),
        };
        return Err(corrupt(store, location, problem));
    }
    Ok(manifest)
}

/// An error where there is a manifest already, of whatever content.
pub async fn refuse_existing(store: &Store, location: &Location) -> Result<(), BackupError> {
    match store.get(&location.object(MANIFEST_FILE)).await? {
        Some(_) => Err(exists(store, location)),
        None => Ok(()),
    }
}

/// Writes a manifest where there is none. A write may succeed whose answer is lost: so each is one attempt, and what is
/// there after one that failed tells.
pub async fn write(store: &Store, location: &Location, manifest: &BackupManifest) -> Outcome {
    let path = location.object(MANIFEST_FILE);
    let text = match serde_json::to_vec_pretty(manifest) {
        Ok(text) => Bytes::from(text),
        Err(error) => return Outcome::Absent(corrupt(store, location, error.to_string())),
    };
    let since = Instant::now();
    let mut pause = Duration::from_secs(1);
    loop {
        let failed = match store.create(&path, text.clone()).await {
            Ok(Created::Written) => return Outcome::Written,
            Ok(Created::Exists) => exists(store, location),
            // That there is none was seen when the backup began, and is seen below again.
            Ok(Created::NotImplemented) => match store.get(&path).await {
                Ok(None) => match store.put(&path, text.clone()).await {
                    Ok(()) => return Outcome::Written,
                    Err(error) => error,
                },
                Ok(Some(_)) => exists(store, location),
                Err(error) => error,
            },
            Err(error) => error,
        };
        match store.get(&path).await {
            Ok(Some(found)) if found == text => return Outcome::Written,
            Ok(Some(_)) => return Outcome::Unclear(exists(store, location)),
            Ok(None) if !failed.retriable() || since.elapsed() > WRITE => return Outcome::Absent(failed),
            Err(_) if since.elapsed() > WRITE => return Outcome::Unclear(failed),
            Ok(None) | Err(_) => (),
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(8));
    }
}

fn exists(store: &Store, location: &Location) -> BackupError {
    BackupError::Exists { storage: store.name().to_owned(), location: location.to_string() }
}

fn corrupt(store: &Store, location: impl ToString, problem: String) -> BackupError {
    BackupError::Corrupt { storage: store.name().to_owned(), location: location.to_string(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    use axum::Router;
    use axum::body::Bytes as Body;
    use axum::extract::State;
    use axum::http::{HeaderMap, StatusCode};
    use axum::routing::any;
    use crds::backup::{FORMAT, S3Inputs, StorageInputs};

    use crate::credentials::Credentials;

    /// What a server does with a conditional write; and the object that it has.
    #[derive(Clone)]
    struct Server {
        conditional: Conditional,
        object: Arc<Mutex<Option<Body>>>,
    }

    #[derive(Clone, Copy)]
    enum Conditional {
        Known,
        Unknown,
        /// It takes the object, and answers with an error once.
        AnswerLost,
    }

    async fn answer(
        State(server): State<Server>,
        method: axum::http::Method,
        headers: HeaderMap,
        body: Body,
    ) -> (StatusCode, [(&'static str, &'static str); 2], Body) {
        let mut object = server.object.lock().unwrap();
        let headed = [("etag", "\"1\""), ("last-modified", "Sun, 01 Mar 2026 12:00:00 GMT")];
        let said = |status, text: &'static str| (status, headed, Body::from_static(text.as_bytes()));
        if method == "GET" {
            return match &*object {
                Some(object) => (StatusCode::OK, headed, object.clone()),
                None => said(StatusCode::NOT_FOUND, "<Error><Code>NoSuchKey</Code></Error>"),
            };
        }
        let conditional = headers.contains_key("if-none-match");
        if conditional && matches!(server.conditional, Conditional::Unknown) {
            return said(StatusCode::NOT_IMPLEMENTED, "<Error><Code>NotImplemented</Code></Error>");
        }
        if conditional && object.is_some() {
            return said(StatusCode::PRECONDITION_FAILED, "<Error><Code>PreconditionFailed</Code></Error>");
        }
        *object = Some(body);
        match server.conditional {
            Conditional::AnswerLost => {
                said(StatusCode::INTERNAL_SERVER_ERROR, "<Error><Code>InternalError</Code></Error>")
            }
            _ => said(StatusCode::OK, ""),
        }
    }

    async fn store(server: &Server) -> Store {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(any(answer)).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let inputs = S3Inputs {
            endpoint,
            bucket: "etcd".to_owned(),
            prefix: "a/b".to_owned(),
            region: "us-east-1".to_owned(),
            path_style: true,
            authorities: None,
            server_side_encryption: None,
        };
        let credentials = Credentials::from_files([("accessKeyID", &b"a"[..]), ("secretAccessKey", &b"b"[..])]);
        Store::open(&StorageInputs::S3(inputs), &credentials).await.unwrap()
    }

    fn manifest() -> BackupManifest {
        serde_json::from_value(serde_json::json!({
            "format": FORMAT, "backup": "b", "cluster": "c", "clusterUid": "u", "etcdClusterID": "1", "member": "m",
            "revision": 1, "keys": 1, "etcdVersion": "3.6.0", "startedAt": "2026-03-01T12:00:00Z",
            "completedAt": "2026-03-01T12:00:00Z",
            "snapshot": {"name": "s", "size": 1, "sha256": "", "plainSize": 1, "plainSha256": ""},
            "bundle": {"name": "b", "size": 1, "sha256": "", "plainSize": 1, "plainSha256": ""},
        }))
        .unwrap()
    }

    #[tokio::test]
    async fn a_manifest_is_written_once_whatever_the_storage_knows_and_answers() {
        for conditional in [Conditional::Known, Conditional::Unknown, Conditional::AnswerLost] {
            let server = Server { conditional, object: Arc::default() };
            let store = store(&server).await;
            let location = Location::parse("c/u/1").unwrap();
            refuse_existing(&store, &location).await.unwrap();
            assert!(matches!(write(&store, &location, &manifest()).await, Outcome::Written));
            assert_eq!(read_manifest(&store, "c/u/1").await.unwrap(), manifest());
            let other = BackupManifest { revision: 2, ..manifest() };
            let Outcome::Unclear(refused) = write(&store, &location, &other).await else { panic!("it was replaced") };
            assert_eq!(refused.reason(), "BackupExists");
            assert_eq!(read_manifest(&store, "c/u/1").await.unwrap(), manifest());
            assert_eq!(refuse_existing(&store, &location).await.unwrap_err().reason(), "BackupExists");
        }
    }
}
