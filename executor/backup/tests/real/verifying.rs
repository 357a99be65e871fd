//! Backups of a real etcd that are verified from what is stored: whole, damaged, and of something else than they say.

use std::fs;
use std::path::Path;

use age::secrecy::ExposeSecret;
use age::x25519::Identity;
use backup::{
    BackupError, Identities, Programs, Restored, Source, Store, verify_decrypted, verify_restored, verify_stored,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::backup::{BUNDLE_FILE, BackupManifest, MANIFEST_FILE, SNAPSHOT_FILE, VerificationInputs};
use crypto_secretbox::aead::{Aead, KeyInit};
use crypto_secretbox::{Nonce, XSalsa20Poly1305};
use serde_json::{Value, json};

use super::fixture::{Fixture, NEVER};
use super::process::{Member, programs};

const KEY: [u8; 32] = [7; 32];

/// The bundle of a cluster, as the operator makes it.
fn bundle(cluster: &str, uid: &str, key: &[u8]) -> Vec<(String, Vec<u8>)> {
    let key = STANDARD.encode(STANDARD.encode(key));
    let keys = json!({ "metadata": { "name": format!("{cluster}-pki") }, "data": { "encryption.key": key } });
    let deployment = json!({ "metadata": { "name": cluster, "uid": uid }, "spec": {} });
    [("pki.json", keys), ("clusterdeployment.json", deployment)]
        .map(|(name, object)| (name.to_owned(), object.to_string().into_bytes()))
        .into()
}

/// An object as the API server writes it.
fn object(kind: &str) -> Vec<u8> {
    let field =
        |number: u8, content: &[u8]| [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat();
    let type_meta = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
    [&b"k8s\0"[..], &field(1, &type_meta), &field(2, b"raw")].concat()
}

/// The same, encrypted with a key.
fn encrypted(key: &[u8], value: &[u8]) -> Vec<u8> {
    let nonce = [9; 24];
    let sealed = XSalsa20Poly1305::new_from_slice(key).unwrap().encrypt(&Nonce::from(nonce), value).unwrap();
    [&b"k8s:enc:secretbox:v1:key1:"[..], &nonce, &sealed].concat()
}

/// What an etcd of a cluster holds, so much that it is read in pages.
fn objects() -> Vec<(String, Vec<u8>)> {
    let mut objects = vec![
        ("/registry/namespaces/kube-system".to_owned(), object("Namespace")),
        ("/registry/secrets/default/login".to_owned(), encrypted(&KEY, &object("Secret"))),
        ("/registry/example.com/things/a".to_owned(), br#"{"apiVersion": "example.com/v1", "kind": "Thing"}"#.to_vec()),
        ("/registry/example.com/raw".to_owned(), b"1234".to_vec()),
        ("compact_rev_key".to_owned(), b"1".to_vec()),
    ];
    objects.extend((0..40).map(|n| (format!("/registry/configmaps/default/{n}"), object("ConfigMap"))));
    objects
}

struct Stored {
    fixture: Fixture,
    wanted: VerificationInputs,
    manifest: BackupManifest,
}

impl Stored {
    /// A backup of a member that holds these, with this bundle; and what was written down of it.
    async fn new(objects: &[(String, Vec<u8>)], bundle: Vec<(String, Vec<u8>)>) -> Self {
        let mut fixture = Fixture::new().await;
        fixture.bundle = bundle;
        let member = Member::alone(fixture.place.path(), &fixture.pki).await;
        let mut client = member.client().await;
        for (key, value) in objects {
            client.put(key.as_str(), value.clone(), None).await.unwrap();
        }
        let manifest = fixture.take(&member, NEVER).await.unwrap();
        let wanted = json!({
            "how": "Restore", "location": fixture.inputs.location, "backup": "nightly", "cluster": "paris",
            "revision": manifest.revision, "keys": manifest.keys, "size": manifest.snapshot.plain_size,
            "sha256": manifest.snapshot.plain_sha256
        });
        Self { fixture, wanted: serde_json::from_value(wanted).unwrap(), manifest }
    }

    async fn whole() -> Self {
        Self::new(&objects(), bundle("paris", "7f1c", &KEY)).await
    }

    fn store(&self) -> &Store {
        &self.fixture.store
    }

    /// By the objects alone.
    async fn hashed(&self) -> Result<u64, BackupError> {
        verify_stored(self.store(), &self.wanted).await
    }

    async fn decrypted(&self, identity: &Identity) -> Result<(), BackupError> {
        let identities = identities(identity);
        let source = Source::open(self.store(), &self.wanted.location, &identities).await?;
        verify_decrypted(&source, &self.wanted, &mut tokio::io::sink()).await.map(|_| ())
    }

    async fn restored(&self) -> Result<Restored, BackupError> {
        let (identities, directory) = (identities(&self.fixture.identity), self.fixture.place.path().join("scratch"));
        fs::create_dir_all(&directory).unwrap();
        let source = Source::open(self.store(), &self.wanted.location, &identities).await?;
        let restored = verify_restored(&source, &self.wanted, &real(), &directory).await;
        assert!(is_empty(&directory), "something is left");
        restored
    }

    /// Writes another manifest, and takes for granted that it is what was written down.
    fn rewrite(&mut self, change: impl FnOnce(&mut Value)) {
        let mut manifest = serde_json::to_value(&self.manifest).unwrap();
        change(&mut manifest);
        fs::write(self.fixture.file(MANIFEST_FILE), manifest.to_string()).unwrap();
        self.wanted.revision = manifest["revision"].as_i64().unwrap();
        self.wanted.keys = manifest["keys"].as_i64().unwrap();
    }
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

fn real() -> Programs {
    Programs { etcd: programs().join("etcd"), etcdutl: programs().join("etcdutl") }
}

fn identities(identity: &Identity) -> Identities {
    Identities::parse(identity.to_string().expose_secret().as_bytes()).unwrap()
}

/// It is damaged, and these words say how.
fn check<T: std::fmt::Debug>(verified: Result<T, BackupError>, words: &str) {
    let error = verified.unwrap_err();
    assert!(error.is_damage() && error.reason() == "BackupCorrupt", "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_backup_passes_however_it_is_verified() {
    let stored = Stored::whole().await;
    assert_eq!(stored.hashed().await.unwrap(), stored.manifest.snapshot.size + stored.manifest.bundle.size);
    stored.decrypted(&stored.fixture.identity).await.unwrap();
    let expected = Restored { keys: 45, revision: 46, objects: 43, decrypted: 1, sealed: 0, others: 1 };
    assert_eq!(stored.restored().await.unwrap(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_cut_off_or_lost_in_the_storage_is_found_and_named() {
    let stored = Stored::whole().await;
    for name in [SNAPSHOT_FILE, BUNDLE_FILE] {
        let file = stored.fixture.file(name);
        let whole = fs::read(&file).unwrap();
        let mut changed = whole.clone();
        changed[whole.len() / 2] ^= 1;
        for (content, words) in
            [(changed, "SHA-256"), (whole[..whole.len() - 1].to_vec(), "bytes, and its manifest says")]
        {
            fs::write(&file, content).unwrap();
            let error = stored.hashed().await.unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(words), "{error}");
            check(stored.hashed().await, name);
            check(stored.decrypted(&stored.fixture.identity).await, name);
            check(stored.restored().await, name);
        }
        fs::remove_file(&file).unwrap();
        check(stored.hashed().await, &format!("{name} is missing"));
        fs::write(&file, whole).unwrap();
    }
    stored.hashed().await.unwrap();
    fs::remove_file(stored.fixture.file(MANIFEST_FILE)).unwrap();
    check(stored.hashed().await, "manifest.json");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_of_another_cluster_or_another_key_is_found_and_named() {
    let rome = Stored::new(&objects(), bundle("rome", "7f1c", &KEY)).await;
    rome.hashed().await.unwrap();
    check(rome.decrypted(&rome.fixture.identity).await, "clusterdeployment.json is of cluster rome");
    check(rome.restored().await, "clusterdeployment.json is of cluster rome");
    let other = Stored::new(&objects(), bundle("paris", "7f1c", &[8; 32])).await;
    other.decrypted(&other.fixture.identity).await.unwrap();
    check(other.restored().await, "key /registry/secrets/default/login: the key key1 of the backup's bundle does not");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_identity_of_another_is_no_fault_of_the_backup() {
    let stored = Stored::whole().await;
    let error = stored.decrypted(&Identity::generate()).await.unwrap_err();
    assert_eq!((error.reason(), error.is_damage()), ("IdentityDoesNotMatch", false), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_of_another_revision_or_number_of_keys_is_found_with_both_numbers() {
    let mut stored = Stored::whole().await;
    let file = stored.fixture.file(MANIFEST_FILE);
    let mut changed = serde_json::to_value(&stored.manifest).unwrap();
    changed["revision"] = json!(45);
    fs::write(&file, changed.to_string()).unwrap();
    check(stored.hashed().await, "its manifest says revision 45, and 46 was written down when it was taken");
    check(stored.decrypted(&stored.fixture.identity).await, "revision 45, and 46");

    // Where what was written down agrees with it, the snapshot does not.
    stored.rewrite(|manifest| manifest["revision"] = json!(47));
    stored.hashed().await.unwrap();
    check(stored.restored().await, "restored it is at revision 46, and its manifest says 47");
    stored.rewrite(|manifest| manifest["revision"] = json!(45));
    check(stored.restored().await, "restored it has 44 keys at revision 45, and its manifest says 45");
    stored.rewrite(|manifest| manifest["keys"] = json!(44));
    check(stored.restored().await, "restored it has 45 keys at revision 46, and its manifest says 44");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_could_not_be_used_is_found_by_what_lacks_or_is_broken() {
    let with = |key: &str, value: Vec<u8>| {
        let mut objects = objects();
        objects.retain(|(there, _)| there != key);
        objects.push((key.to_owned(), value));
        objects
    };
    for (objects, words) in [
        (objects().split_off(1), "it has no key /registry/namespaces/kube-system"),
        (
            with("/registry/namespaces/broken", b"k8s\0\xff\xff".to_vec()),
            "namespaces/broken: its protobuf cannot be decoded",
        ),
        (
            with("/registry/configmaps/default/raw", b"text".to_vec()),
            "default/raw: its value is no object of Kubernetes",
        ),
        (with("/registry/example.com/things/a", b"{\"kind\": ".to_vec()), "things/a: its JSON cannot be decoded"),
    ] {
        let stored = Stored::new(&objects, bundle("paris", "7f1c", &KEY)).await;
        check(stored.restored().await, words);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_do_not_run_say_nothing_of_the_backup() {
    let stored = Stored::whole().await;
    let (identities, place) = (identities(&stored.fixture.identity), stored.fixture.place.path().join("empty"));
    fs::create_dir(&place).unwrap();
    let source = Source::open(stored.store(), &stored.wanted.location, &identities).await.unwrap();
    let none = Programs { etcd: place.join("etcd"), etcdutl: place.join("etcdutl") };
    let error = verify_restored(&source, &stored.wanted, &none, &place).await.unwrap_err();
    assert_eq!((error.reason(), error.is_damage()), ("VerificationNotMade", false), "{error}");
    // One that restores nothing, since it was ended.
    let killed = place.join("killed");
    // Another process writes it: nobody can run a file that somebody has open, as a test beside this one that forks.
    let script = format!("printf '#!/bin/sh\\nkill -KILL $$\\n' > {0}; chmod 755 {0}", killed.display());
    assert!(std::process::Command::new("sh").args(["-c", &script]).status().unwrap().success());
    let killed = Programs { etcdutl: killed, ..real() };
    let error = verify_restored(&source, &stored.wanted, &killed, &place).await.unwrap_err();
    assert!(!error.is_damage() && error.to_string().contains("signal"), "{error}");
}
