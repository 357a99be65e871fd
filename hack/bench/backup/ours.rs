//! A backup as the executor takes it, in a process of its own: what it used is known when it has ended.

use std::time::Instant;

use backup::{EtcdTls, Store, Task};
use crds::backup::{BackupInputs, StorageInputs};
use tokio::net::TcpStream;

use crate::object_storage::{SECRET_KEY, open};
use crate::{Outcome, Scene};

/// What one backup took.
pub struct Took {
    pub seconds: f64,
    /// The most memory, in MiB.
    pub memory: u64,
    /// Of all threads, in seconds.
    pub processor: f64,
}

/// Takes it, and waits for it.
pub async fn in_a_process_of_its_own(scene: &Scene, round: usize) -> Outcome<Took> {
    let write = |name: &str, text: &str| -> Outcome<String> {
        std::fs::write(scene.file(name), text)?;
        Ok(scene.file(name).display().to_string())
    };
    let storage = StorageInputs::S3(scene.storage.inputs(scene.storage.port));
    let inputs = inputs(storage, scene.recipient.clone(), format!("bench/uid/{round}"));
    let child = tokio::process::Command::new(std::env::current_exe()?)
        .arg("take")
        .arg(write("inputs.json", &serde_json::to_string(&inputs)?)?)
        .arg(scene.member.url())
        .arg(write("take.ca", &scene.pki.ca)?)
        .arg(write("take.crt", &scene.pki.certificate)?)
        .arg(write("take.key", &scene.pki.key)?)
        .output()
        .await?;
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    let figures: Vec<f64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match figures.as_slice() {
        [seconds, memory, processor] => Ok(Took { seconds: *seconds, memory: *memory as u64, processor: *processor }),
        _ => Err(format!("the backup failed: {said}{}", String::from_utf8_lossy(&child.stderr)).into()),
    }
}

/// The process: takes the backup, and prints what it took.
pub async fn take(words: &[&str]) -> Outcome<()> {
    let [inputs, url, ca, certificate, key] = words else { return Err("take needs five arguments".into()) };
    let inputs: BackupInputs = serde_json::from_slice(&std::fs::read(inputs)?)?;
    let tls = EtcdTls { ca: std::fs::read(ca)?, certificate: std::fs::read(certificate)?, key: std::fs::read(key)? };
    let StorageInputs::S3(storage) = inputs.storage.clone() else { return Err("it is no bucket".into()) };
    let store: Store = open(storage, SECRET_KEY).await;
    let task = Task { inputs: &inputs, member: "bench", url, tls: &tls, bundle: &[], store: &store, spool: None };
    let address = url.trim_start_matches("https://").to_owned();
    let began = Instant::now();
    backup::take(&task, move || TcpStream::connect(address.clone()), |_| ()).await?;
    println!("{} {} {}", began.elapsed().as_secs_f64(), peak_mib()?, processor_seconds()?);
    Ok(())
}

fn inputs(storage: StorageInputs, recipient: String, location: String) -> BackupInputs {
    BackupInputs {
        storage,
        volume_claim: None,
        location,
        recipients: vec![recipient],
        bytes_per_second: None,
        backup: "bench".to_owned(),
        cluster: "bench".to_owned(),
        cluster_uid: "uid".to_owned(),
        karmada_deployment: None,
        kubernetes_version: None,
        etcd: None,
        spool: false,
    }
}

fn peak_mib() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("there is no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? >> 10)
}

/// User and system time of this process: Linux counts both in hundredths of a second.
fn processor_seconds() -> Outcome<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, rest) = stat.rsplit_once(") ").ok_or("/proc/self/stat is not as expected")?;
    let ticks = rest.split(' ').skip(11).take(2).filter_map(|word| word.parse::<f64>().ok());
    Ok(ticks.sum::<f64>() / 100.0)
}
