//! Fetches the keys of a backup for the operator, into the Secret that was made for them. They are in memory, and
//! nowhere else on their way.

use std::path::Path;

use backup::{BackupError, Credentials, Identities, Source, Store, object_key, unpack};
use crds::Reason;
use crds::backup::{BackupManifest, FetchedBackup, FetchedPlane, KeysFetched, SNAPSHOT_KEY, StorageInputs};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tracing::error;

use crate::api_client;
use crate::cli::FetchKeys;
use crate::outcome::INPUTS_REFUSED;
use crate::sanitize::clean;
use crate::storage::{failure, read, report};

/// The files of a bundle.
const KEYS_FILE: &str = "pki.json";
const DEPLOYMENT_FILE: &str = "clusterdeployment.json";
const PLANE_FILE: &str = "karmadadeployment.json";
/// Characters that are reported of another's object.
const TOLD: usize = 253;

/// Why there are none.
type Failure = (Reason, String);

/// Fetches them, and writes what came of it; returns the exit code.
pub async fn fetch(args: &FetchKeys) -> u8 {
    let Some((storage, credentials)) = read(&args.storage) else {
        return INPUTS_REFUSED;
    };
    let Some((namespace, name)) = args.secret.split_once('/') else {
        error!(secret = args.secret, "--secret is no NAMESPACE/NAME");
        return INPUTS_REFUSED;
    };
    let fetched = match found(&storage, &credentials, args).await {
        Ok((keys, backup)) => written(namespace, name, &keys).await.map(|()| backup),
        Err(failure) => Err(failure),
    };
    let said = match fetched {
        Ok(backup) => KeysFetched { backup: Some(backup), ..KeysFetched::default() },
        Err((reason, message)) => {
            KeysFetched { reason: Some(reason.into()), message: Some(message), ..KeysFetched::default() }
        }
    };
    report(&args.storage, &said)
}

/// The keys, as the data of a Secret has them, and what the backup is.
async fn found(
    storage: &StorageInputs,
    credentials: &Credentials,
    args: &FetchKeys,
) -> Result<(Value, FetchedBackup), Failure> {
    let refused = |error: BackupError| failure(&error);
    let identities = identities(&args.identity)?;
    let store = Store::open(storage, credentials).await.map_err(refused)?;
    let source = Source::open(&store, &args.location, &identities).await.map_err(refused)?;
    is_of(args.plane, source.manifest(), &args.location)?;
    let bundle = unpack(&source).await.map_err(refused)?;
    let object = |file: &str| -> Result<Value, Failure> {
        let corrupt = |problem: String| failure(&source.corrupt(problem));
        let text = bundle.get(file).ok_or_else(|| corrupt(format!("its bundle has no {file}")))?;
        // The error of the parser would show what it found.
        serde_json::from_slice(text).map_err(|_| corrupt(format!("{file} of its bundle is no JSON")))
    };
    let file = if args.plane { PLANE_FILE } else { DEPLOYMENT_FILE };
    let (mut keys, deployment) = (object(KEYS_FILE)?, object(file)?);
    let mut data = keys["data"].take();
    if data.as_object().is_none_or(serde_json::Map::is_empty) {
        return Err(failure(&source.corrupt(format!("{KEYS_FILE} of its bundle holds no keys"))));
    }
    if args.plane {
        let key = object_key(&source, &source.manifest().snapshot).await.map_err(refused)?;
        data[SNAPSHOT_KEY] = json!(ByteString(key.to_vec()));
    }
    Ok((data, described(source.manifest(), &args.location, &deployment)))
}

/// Refuses a backup that is of no cluster, or, where that is wanted, of no plane.
fn is_of(is_plane: bool, manifest: &BackupManifest, location: &str) -> Result<(), Failure> {
    let is_it = match is_plane {
        true => manifest.karmada_deployment.is_some(),
        false => manifest.karmada_deployment.is_none() && !manifest.cluster.is_empty(),
    };
    if is_it {
        return Ok(());
    }
    let wanted = if is_plane { "plane" } else { "cluster" };
    let whose = clean(&manifest.subject(), TOLD);
    Err((Reason::BackupOfOtherCluster, format!("the backup at {location} is of {whose}: name one of a {wanted}")))
}

fn identities(file: &Path) -> Result<Identities, Failure> {
    let text = std::fs::read(file).map_err(|error| {
        (Reason::KeysNotFetched, format!("the identity at {} cannot be read: {error}", file.display()))
    })?;
    Identities::parse(&text).map_err(|error| failure(&error))
}

fn described(manifest: &BackupManifest, location: &str, deployment: &Value) -> FetchedBackup {
    let text = |field: &str| {
        let value = deployment["spec"]["networking"][field].as_str();
        clean(value.unwrap_or_default(), TOLD)
    };
    let plane = manifest.karmada_deployment.as_ref().map(|plane| FetchedPlane {
        name: clean(&plane.name, TOLD),
        uid: clean(&plane.uid, TOLD),
        version: plane.version.as_ref().map(|version| version.as_str().to_owned()),
        endpoint: deployment["status"]["endpoint"].as_str().map(|endpoint| clean(endpoint, TOLD)),
    });
    let of_plane =
        plane.is_some().then(|| clean(deployment["spec"]["hostDNSDomain"].as_str().unwrap_or("cluster.local"), TOLD));
    FetchedBackup {
        plane,
        backup: clean(&manifest.backup, TOLD),
        cluster: clean(&manifest.cluster, TOLD),
        cluster_uid: clean(&manifest.cluster_uid, TOLD),
        location: location.to_owned(),
        taken_at: manifest.started_at.clone(),
        revision: manifest.revision,
        size: i64::try_from(manifest.snapshot.plain_size).unwrap_or(i64::MAX),
        sha256: clean(&manifest.snapshot.plain_sha256, TOLD),
        etcd_version: clean(&manifest.etcd_version, TOLD),
        kubernetes_version: manifest.kubernetes_version,
        pod_cidr: text("podCIDR"),
        service_cidr: text("serviceCIDR"),
        dns_domain: of_plane.unwrap_or_else(|| text("dnsDomain")),
    }
}

/// Puts them into the Secret, which must be there: this may not make one.
async fn written(namespace: &str, name: &str, keys: &Value) -> Result<(), Failure> {
    let failed = |error: kube::Error| {
        (Reason::KeysNotFetched, format!("the keys were not written into Secret {namespace}/{name}: {error}"))
    };
    let client = api_client::client().await.map_err(failed)?;
    let api: Api<Secret> = Api::namespaced(client, namespace);
    let patch = Patch::Merge(json!({ "data": keys }));
    api.patch(name, &PatchParams::default(), &patch).await.map(drop).map_err(failed)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use crds::Reason;
    use serde_json::{Value, json};

    use super::{described, fetch, is_of};
    use crate::cli::{Cli, Command};

    fn manifest() -> crds::backup::BackupManifest {
        let object = json!({ "name": "x", "size": 1, "sha256": "", "plainSize": 1, "plainSha256": "a0" });
        serde_json::from_value(json!({
            "format": crds::backup::FORMAT, "backup": "nightly", "cluster": "paris", "clusterUid": "7f1c",
            "etcdClusterID": "1", "member": "m", "revision": 7, "keys": 5, "etcdVersion": "3.6.16",
            "startedAt": "2026-11-24T03:00:00Z", "completedAt": "2026-11-24T03:00:01Z",
            "snapshot": object, "bundle": object
        }))
        .unwrap()
    }

    #[test]
    fn a_cluster_does_not_begin_with_the_backup_of_a_plane_or_of_an_etcd_without_a_cluster() {
        let of_cluster = |manifest: &crds::backup::BackupManifest, at: &str| is_of(false, manifest, at);
        assert_eq!(of_cluster(&manifest(), "l"), Ok(()));
        let bare = crds::backup::BackupManifest { cluster: String::new(), ..manifest() };
        let refused = of_cluster(&bare, "l").unwrap_err();
        assert_eq!(refused.0, Reason::BackupOfOtherCluster);
        assert!(refused.1.contains("an etcd without a cluster"), "{}", refused.1);
        let plane = serde_json::from_value(json!({ "name": "k1", "uid": "u" })).unwrap();
        let refused = of_cluster(&crds::backup::BackupManifest { karmada_deployment: Some(plane), ..bare }, "l");
        assert!(refused.unwrap_err().1.contains("KarmadaDeployment k1"));
    }

    #[test]
    fn a_plane_begins_with_the_backup_of_a_plane_alone_and_is_told_where_that_one_was_reached() {
        assert!(is_of(true, &manifest(), "l").unwrap_err().1.contains("name one of a plane"));
        let plane = json!({ "name": "k1", "uid": "u", "version": "1.18.2" });
        let manifest = crds::backup::BackupManifest {
            karmada_deployment: Some(serde_json::from_value(plane).unwrap()),
            cluster: String::new(),
            ..manifest()
        };
        assert_eq!(is_of(true, &manifest, "l"), Ok(()));
        let object = json!({ "spec": { "hostDNSDomain": "a.b" }, "status": { "endpoint": "https://10.0.0.9:5443" } });
        let told = described(&manifest, "l", &object);
        let plane = told.plane.unwrap();
        assert_eq!(
            (told.dns_domain.as_str(), plane.uid.as_str(), plane.version.as_deref()),
            ("a.b", "u", Some("1.18.2"))
        );
        assert_eq!(plane.endpoint.as_deref(), Some("https://10.0.0.9:5443"));
    }

    #[test]
    fn what_the_data_depends_on_is_told_and_nothing_that_breaks_a_line() {
        let deployment = json!({ "spec": { "networking": {
            "podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16\n", "dnsDomain": "cluster.local" } } });
        let told = described(&manifest(), "paris/7f1c/1", &deployment);
        assert_eq!((told.pod_cidr.as_str(), told.dns_domain.as_str()), ("10.0.0.0/16", "cluster.local"));
        assert_eq!((told.cluster.as_str(), told.cluster_uid.as_str(), told.size), ("paris", "7f1c", 1));
        assert!(!told.service_cidr.contains('\n'));
    }

    #[tokio::test]
    async fn what_cannot_be_fetched_says_why_and_is_no_failure() {
        let place = tempfile::tempdir().unwrap();
        let message = place.path().join("message");
        let storage = json!({ "directory": place.path().join("backups") }).to_string();
        let identity = place.path().join("identity");
        let words = |secret: &str| {
            let words = ["executor", "fetch-keys", "--storage", &storage, "--location", "a/b", "--secret", secret];
            let mut words: Vec<String> = words.map(str::to_owned).into();
            words.extend(["--identity".into(), identity.display().to_string()]);
            words.extend(["--termination-message".into(), message.display().to_string()]);
            words
        };
        let run = async |secret: &str| {
            let Command::FetchKeys(arguments) = Cli::parse_from(words(secret)).command else { panic!("no fetch") };
            let code = fetch(&arguments).await;
            (code, std::fs::read(&message).ok().map_or(Value::Null, |text| serde_json::from_slice(&text).unwrap()))
        };
        assert_eq!(run("no-namespace").await, (10, Value::Null));
        let (code, said) = run("n/s").await;
        assert_eq!((code, &said["reason"]), (0, &json!("KeysNotFetched")), "{said}");
        std::fs::write(&identity, "hunter2hunter2").unwrap();
        let (code, said) = run("n/s").await;
        assert!(code == 0 && said["message"].is_string() && said.get("backup").is_none(), "{said}");
        assert!(!said.to_string().contains("hunter2"), "{said}");
    }
}
