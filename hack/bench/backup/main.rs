//! What a backup costs beside what one does by hand: a real etcd and a real S3 server, both with TLS, on the loopback
//! interface, and a client that writes all the while. Nothing is asserted: times are this machine's, ratios are what to
//! look at.
//!
//! `hack/bench/backup/run [--mib N] [--rounds N]`; with `CLUSTERWRIGHT_S3=seaweedfs` against SeaweedFS.

// What the tests are made of ends with what is wrong, and has more than is used here.
#[allow(clippy::unwrap_used, dead_code)]
#[path = "../../../executor/backup/tests/real/object_storage.rs"]
mod object_storage;
#[allow(clippy::unwrap_used, dead_code)]
#[path = "../../../executor/backup/tests/real/process.rs"]
mod process;

mod by_hand;
mod ours;
mod writer;

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use age::x25519::Identity;
use object_storage::ObjectStorage;
use process::{Member, Pki};
use writer::Writer;

pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How long the client writes alone, for comparison.
const CALM: Duration = Duration::from_secs(10);

/// What is backed up, and where to.
pub struct Scene {
    place: tempfile::TempDir,
    pki: Pki,
    member: Member,
    storage: ObjectStorage,
    recipient: String,
}

impl Scene {
    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }
}

/// One way to take a backup, as it was measured.
struct Way {
    name: &'static str,
    seconds: Vec<f64>,
    p99: Vec<f64>,
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match words.as_slice() {
        ["take", rest @ ..] => runtime.block_on(ours::take(rest)),
        words => {
            let (mut mib, mut rounds) = (2048, 3);
            for pair in words.chunks(2) {
                match pair {
                    ["--mib", number] => mib = number.parse()?,
                    ["--rounds", number] => rounds = number.parse()?,
                    other => return Err(format!("{other:?} is neither --mib N nor --rounds N").into()),
                }
            }
            runtime.block_on(measure(mib, rounds))
        }
    }
}

async fn measure(mib: usize, rounds: usize) -> Outcome<()> {
    let place = tempfile::tempdir()?;
    let pki = Pki::new();
    let member = Member::alone(place.path(), &pki).await;
    let storage = ObjectStorage::start(&place.path().join("s3"));
    let recipient = Identity::generate().to_public().to_string();
    let scene = Scene { place, pki, member, storage, recipient };
    scene.member.fill(mib).await;
    println!("{mib} MiB in etcd, {rounds} rounds");
    let writer = Writer::start(scene.member.client().await);
    tokio::time::sleep(CALM).await;
    println!("a write takes {:.1} ms at the 99th percentile without a backup", writer.p99());

    let mut ways = ["by hand", "by hand, encrypted", "by hand, encrypted, read back", "ours"].map(|name| Way {
        name,
        seconds: Vec::new(),
        p99: Vec::new(),
    });
    let mut used = Vec::new();
    // They take turns, so that a slow moment of the machine slows all of them.
    for round in 0..rounds {
        for way in &mut ways {
            writer.p99();
            let seconds = match way.name {
                "by hand" => by_hand::save(&scene).await?,
                "by hand, encrypted" => by_hand::save_encrypted(&scene).await?,
                "by hand, encrypted, read back" => by_hand::save_encrypted_and_read_back(&scene).await?,
                _ => {
                    let took = ours::in_a_process_of_its_own(&scene, round).await?;
                    used.push((took.memory, took.processor));
                    took.seconds
                }
            };
            way.seconds.push(seconds);
            way.p99.push(writer.p99());
        }
    }
    report(&ways, &used);
    Ok(())
}

fn report(ways: &[Way], used: &[(u64, f64)]) {
    let first = ways.first().map_or(1.0, |way| median(&way.seconds));
    println!("{:<32} {:>8} {:>10} {:>14}", "", "seconds", "ratio", "write p99, ms");
    for way in ways {
        let seconds = median(&way.seconds);
        println!("{:<32} {seconds:>8.2} {:>10.2} {:>14.1}", way.name, seconds / first, median(&way.p99));
    }
    let memory = used.iter().map(|(memory, _)| *memory).max().unwrap_or(0);
    let processor: Vec<f64> = used.iter().map(|(_, seconds)| *seconds).collect();
    println!("ours: {memory} MiB of memory, {:.2} s of processor time", median(&processor));
}

/// The middle of some figures.
pub fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}
