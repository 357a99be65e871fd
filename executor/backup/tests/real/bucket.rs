//! Backups in a real bucket, over a network that is not always well.

use std::time::{Duration, Instant};

use age::secrecy::ExposeSecret;
use backup::{BackupError, Identities, Source, fetch, list, probe, remove, unpack};
use crds::backup::SNAPSHOT_FILE;

use super::fixture::{Fixture, NEVER};
use super::object_storage::{ObjectStorage, SECRET_KEY, open};
use super::process::Member;
use super::proxy::Proxy;

/// Some parts, and one that is not full.
const MIB: usize = 28;
/// Nobody waits longer for a storage that is back.
const SOON: Duration = Duration::from_secs(60);

/// A member with data, a server, and a network between them and a backup into the server's bucket.
pub struct World {
    pub fixture: Fixture,
    pub member: Member,
    pub server: ObjectStorage,
    pub proxy: Proxy,
}

impl World {
    pub async fn new(mib: usize) -> Self {
        let mut fixture = Fixture::new().await;
        let server = ObjectStorage::start(&fixture.place.path().join("s3"));
        let member = Member::alone(fixture.place.path(), &fixture.pki).await;
        member.fill(mib).await;
        let proxy = Proxy::to(server.port).await;
        fixture.store = open(server.inputs(proxy.port), SECRET_KEY).await;
        Self { fixture, member, server, proxy }
    }

    /// The objects of one whole backup and nothing else are in the bucket, and no part of an upload.
    pub fn has_one_backup(&self) {
        let location = &self.fixture.inputs.location;
        let expected = ["cluster.tar.age", "manifest.json", "snapshot.db.age"];
        assert_eq!(self.server.keys(), expected.map(|name| format!("fleet/{location}/{name}")));
        assert_eq!(self.server.uploads(), [""; 0]);
    }

    pub fn has_nothing(&self) {
        assert_eq!((self.server.keys(), self.server.uploads()), (vec![], vec![]));
    }

    pub async fn fetched(&self) -> Result<Vec<u8>, BackupError> {
        let key = self.fixture.identity.to_string();
        let identities = Identities::parse(key.expose_secret().as_bytes()).unwrap();
        let source = Source::open(&self.fixture.store, &self.fixture.inputs.location, &identities).await?;
        let mut snapshot = Vec::new();
        fetch(&source, &mut snapshot, |_| ()).await?;
        assert_eq!(unpack(&source).await?, self.fixture.bundle.iter().cloned().collect());
        Ok(snapshot)
    }

    /// Replaces an object of the backup in the bucket by what the change makes of it.
    pub fn tamper(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let key = format!("fleet/{}/{name}", self.fixture.inputs.location);
        let file = self.fixture.place.path().join("tampered");
        self.server.get(&key, &file);
        let mut bytes = std::fs::read(&file).unwrap();
        change(&mut bytes);
        std::fs::write(&file, bytes).unwrap();
        self.server.put(&file, &key);
    }
}

/// What is seen in any server: where it is different, somebody's server would be.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_in_a_bucket_is_whole_is_found_read_and_removed() {
    let world = World::new(MIB).await;
    let store = &world.fixture.store;
    probe(store).await.unwrap();
    world.has_nothing();
    let manifest = world.fixture.take(&world.member, NEVER).await.unwrap();
    world.has_one_backup();
    let found = list(store).await.unwrap();
    assert_eq!((found.backups, found.newest.unwrap().0), (1, world.fixture.inputs.location.clone()));
    assert_eq!(world.fetched().await.unwrap().len() as u64, manifest.snapshot.plain_size);

    let again = world.fixture.take(&world.member, NEVER).await.unwrap_err();
    assert_eq!(again.reason(), "BackupExists", "{again}");
    world.has_one_backup();

    world.tamper(SNAPSHOT_FILE, |bytes| bytes[20 << 20] ^= 1);
    let changed = world.fetched().await.unwrap_err();
    assert_eq!((changed.reason(), changed.retriable()), ("BackupCorrupt", false), "{changed}");
    world.tamper(SNAPSHOT_FILE, |bytes| bytes.truncate(20 << 20));
    let shorter = world.fetched().await.unwrap_err();
    let told = format!("{SNAPSHOT_FILE} has {} bytes, and its manifest says {}", 20 << 20, manifest.snapshot.size);
    assert!(shorter.reason() == "BackupCorrupt" && shorter.to_string().contains(&told), "{shorter}");

    remove(store, &world.fixture.inputs.location).await.unwrap();
    world.has_nothing();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_in_the_middle_of_a_part_or_of_what_is_read_is_made_anew() {
    let mut world = World::new(MIB).await;
    for (attempt, at) in [3_u64 << 20, 19 << 20].into_iter().enumerate() {
        world.fixture.inputs.location = format!("paris/7f1c/{attempt}");
        world.proxy.cut_once_at(world.proxy.sent() + at);
        let manifest = world.fixture.take(&world.member, NEVER).await.unwrap();
        world.has_one_backup();
        // Requests are small: the connection breaks while an answer of some megabytes is on its way.
        world.proxy.cut_once_at(world.proxy.sent() + 4000);
        assert_eq!(world.fetched().await.unwrap().len() as u64, manifest.snapshot.plain_size);
        remove(&world.fixture.store, &world.fixture.inputs.location).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storage_that_is_away_for_some_seconds_costs_these_seconds() {
    let world = World::new(MIB).await;
    world.proxy.away_at(20 << 20);
    let back = async {
        while !world.proxy.is_away() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_secs(4)).await;
        world.proxy.come_back();
    };
    let since = Instant::now();
    let (taken, ()) = tokio::join!(world.fixture.take(&world.member, NEVER), back);
    taken.unwrap();
    assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
    world.has_one_backup();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storage_that_is_slow_makes_progress_and_one_that_is_given_up_is_left_empty() {
    // More parts than are on their way at once: these end together.
    let mut world = World::new(60).await;
    world.proxy.limit(6 << 20);
    world.fixture.take(&world.member, NEVER).await.unwrap();
    let progress = world.fixture.progress.lock().unwrap().clone();
    let whole = progress.last().unwrap();
    let on_the_way = progress.iter().filter(|bytes| (1..*whole).contains(*bytes)).count();
    assert!(progress.is_sorted() && progress.len() > 4 && on_the_way > 0, "{progress:?}");
    world.has_one_backup();
    remove(&world.fixture.store, &world.fixture.inputs.location).await.unwrap();

    // As at a run's deadline, in the middle of the second part or so.
    world.fixture.inputs.location = "paris/7f1c/late".to_owned();
    world.proxy.limit(6 << 20);
    let taking = world.fixture.take(&world.member, NEVER);
    assert!(tokio::time::timeout(Duration::from_secs(3), taking).await.is_err(), "it was not slow");
    let since = Instant::now();
    while !(world.server.keys().is_empty() && world.server.uploads().is_empty()) {
        assert!(since.elapsed() < Duration::from_secs(20), "{:?} {:?}", world.server.keys(), world.server.uploads());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The storage changes what it was given, before it is read back. Progress may be reported twice by then: what is done
/// twice is the same as done once.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_storage_did_not_keep_is_no_backup_and_is_removed() {
    let mut world = World::new(12).await;
    type Change = fn(&mut Vec<u8>);
    let changes: [(&str, Change); 2] = [
        ("its SHA-256 is", |bytes| bytes[5 << 20..][..64].fill(0)),
        ("it has 1048576 bytes", |bytes| bytes.truncate(1 << 20)),
    ];
    for (told, change) in changes {
        world.fixture.inputs.location = format!("paris/7f1c/{}", told.len());
        let tampered = |stored: u64| {
            if stored > 12 << 20 && !world.server.keys().is_empty() {
                world.tamper(SNAPSHOT_FILE, change);
            }
        };
        let error = world.fixture.take_seen(&world.member, tampered).await.unwrap_err();
        assert_eq!((error.reason(), error.retriable()), ("BackupCorrupt", true), "{error}");
        assert!(error.to_string().contains(told) && error.to_string().contains("check the storage"), "{error}");
        world.has_nothing();
    }
}

/// Nobody says that packets are lost: a storage that is silent from the middle on ends the backup within minutes.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute or more: make backups"]
async fn a_storage_that_falls_silent_in_the_middle_ends_the_backup_and_nothing_counts_as_one() {
    let world = World::new(MIB).await;
    let since = Instant::now();
    world.proxy.limit(12 << 20);
    let silence = async {
        while world.proxy.sent() < 12 << 20 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        world.proxy.swallow();
    };
    let (taken, ()) = tokio::join!(world.fixture.take(&world.member, NEVER), silence);
    let error = taken.unwrap_err();
    println!("{:.0?}: {error}", since.elapsed());
    assert_eq!((error.reason(), error.retriable()), ("StorageUnreachable", true), "{error}");
    assert!(since.elapsed() < Duration::from_secs(420), "{:?}", since.elapsed());
    assert_eq!(world.server.keys(), [""; 0]);
}

/// It is gone for good: what it holds of an upload stays until it removes that itself.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute: make backups"]
async fn a_storage_that_goes_away_for_good_ends_the_backup_and_nothing_counts_as_one() {
    let world = World::new(MIB).await;
    world.proxy.away_at(12 << 20);
    let since = Instant::now();
    let error = world.fixture.take(&world.member, NEVER).await.unwrap_err();
    assert_eq!((error.reason(), error.retriable()), ("StorageUnreachable", true), "{error}");
    assert!(since.elapsed() < Duration::from_secs(90), "{:?}", since.elapsed());
    world.proxy.come_back();
    assert_eq!(world.server.keys(), [""; 0]);
    assert_eq!(list(&world.fixture.store).await.unwrap().backups, 0);
}

/// The member's machine dies while its snapshot is read.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_killed_in_the_middle_leaves_nothing_in_the_bucket() {
    let mut world = World::new(24).await;
    world.fixture.inputs.bytes_per_second = Some(12 << 20);
    let (process, started) = (world.member.id(), Instant::now());
    let kill = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(900));
        std::process::Command::new("kill").args(["-KILL", &process.to_string()]).status().unwrap()
    });
    let error = world.fixture.take(&world.member, NEVER).await.unwrap_err();
    assert!(kill.join().unwrap().success());
    assert_eq!((error.reason(), error.retriable()), ("SnapshotInterrupted", true), "{error}");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    world.has_nothing();
}
