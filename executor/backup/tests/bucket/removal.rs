//! A backup that is removed from a bucket: what the server is asked for.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::routing::any;
use backup::{Credentials, Store, remove_backup};
use crds::backup::{S3Inputs, StorageInputs};
use serde_json::json;
use tokio::net::TcpListener;

const LOCATION: &str = "paris/7f1c/20261124T030000Z-9b1d";

/// A bucket with these keys, each with the manifest of EtcdBackup nightly.
#[derive(Clone, Default)]
struct Bucket(Arc<Mutex<Vec<String>>>);

impl Bucket {
    fn keys(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn answer(&self, method: &Method, uri: &Uri) -> (StatusCode, String) {
        let query = uri.query().unwrap_or_default().replace("%2F", "/");
        let key = uri.path().trim_start_matches("/etcd").trim_matches('/').to_owned();
        let mut keys = self.0.lock().unwrap();
        let is_asked_for = |there: &String| *there == key;
        match *method {
            Method::GET if query.contains("list-type=2") => {
                let prefix = query.split('&').find_map(|part| part.strip_prefix("prefix=")).unwrap_or_default();
                let rest = "<Size>1</Size><ETag>x</ETag><LastModified>2026-11-24T03:00:00.000Z</LastModified>";
                let entry = |key: &String| format!("<Contents><Key>{key}</Key>{rest}</Contents>");
                let listed: String = keys.iter().filter(|key| key.starts_with(prefix)).map(entry).collect();
                let whole = format!("<IsTruncated>false</IsTruncated>{listed}");
                (StatusCode::OK, format!("<ListBucketResult>{whole}</ListBucketResult>"))
            }
            Method::GET if keys.iter().any(is_asked_for) => (StatusCode::OK, manifest()),
            Method::DELETE => {
                keys.retain(|there| *there != key);
                (StatusCode::NO_CONTENT, String::new())
            }
            _ => (StatusCode::NOT_FOUND, "<Error><Code>NoSuchKey</Code><Message>no</Message></Error>".into()),
        }
    }
}

fn manifest() -> String {
    let object = json!({ "name": "x", "size": 1, "sha256": "", "plainSize": 1, "plainSha256": "" });
    let manifest = json!({
        "format": crds::backup::FORMAT, "backup": "nightly", "cluster": "paris", "clusterUid": "7f1c",
        "etcdClusterID": "1", "member": "m", "revision": 7, "keys": 5, "etcdVersion": "3.6.16",
        "startedAt": "2026-11-24T03:00:00Z", "completedAt": "2026-11-24T03:00:01Z",
        "snapshot": object, "bundle": object
    });
    manifest.to_string()
}

/// The bucket behind a server, with a backup and one whose name begins alike; and every state that it was in.
async fn stored() -> (Store, Bucket, Arc<Mutex<Vec<Vec<String>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let files = ["cluster.tar.age", "manifest.json", "snapshot.db.age"];
    let keys = [LOCATION.to_owned(), format!("{LOCATION}2")]
        .into_iter()
        .flat_map(|location| files.map(|file| format!("clusterwright/{location}/{file}")));
    let bucket = Bucket(Arc::new(Mutex::new(keys.collect())));
    let states = Arc::new(Mutex::new(vec![bucket.keys()]));
    let (answering, seen) = (bucket.clone(), states.clone());
    let router = Router::new().fallback(any(async move |method: Method, uri: Uri| {
        let answer = answering.answer(&method, &uri);
        seen.lock().unwrap().push(answering.keys());
        answer
    }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let inputs = StorageInputs::S3(S3Inputs {
        endpoint,
        bucket: "etcd".to_owned(),
        prefix: "clusterwright".to_owned(),
        region: "us-east-1".to_owned(),
        path_style: true,
        authorities: None,
        server_side_encryption: None,
    });
    let files = [("accessKeyID", &b"AKIAPUBLIC"[..]), ("secretAccessKey", &b"s3cr3t"[..])];
    (Store::open(&inputs, &Credentials::from_files(files)).await.unwrap(), bucket, states)
}

#[tokio::test]
async fn the_manifest_goes_first_and_nothing_whose_name_begins_alike() {
    let (store, bucket, states) = stored().await;
    remove_backup(&store, LOCATION, "nightly").await.unwrap();
    let left = ["cluster.tar.age", "manifest.json", "snapshot.db.age"];
    assert_eq!(bucket.keys(), left.map(|file| format!("clusterwright/{LOCATION}2/{file}")));
    let manifest = format!("clusterwright/{LOCATION}/manifest.json");
    for state in states.lock().unwrap().iter() {
        assert!(!state.contains(&manifest) || state.len() == 6, "the manifest is there without the rest: {state:?}");
    }
    remove_backup(&store, LOCATION, "nightly").await.unwrap();
    assert_eq!(bucket.keys().len(), 3);
}

#[tokio::test]
async fn a_backup_of_another_name_and_a_directory_of_several_are_left_alone() {
    let (store, bucket, _) = stored().await;
    for (location, name) in [(LOCATION, "weekly"), ("paris/7f1c", "nightly"), ("paris", "nightly"), ("", "nightly")] {
        let error = remove_backup(&store, location, name).await.unwrap_err();
        assert_eq!(error.reason(), "StorageFailed", "{location}: {error}");
        assert_eq!(bucket.keys().len(), 6, "{location}");
    }
}
