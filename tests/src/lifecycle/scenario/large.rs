//! A large database is backed up and restored, and measured beside what one does by hand: `etcdctl snapshot save` over
//! the network, and an upload with curl.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::EtcdBackup;
use crds::etcd_restore::RestorePhase;
use crds::step::Role;
use lab::cache::Cache;
use lab::machines::Machine;
use lab::programs::Programs;
use serde_json::json;
use tokio::task::block_in_place;

use super::Seen;
use super::restores::{Backups, RESTORED};
use crate::faults::inject;
use crate::lifecycle::stage::{CLUSTER, Stage};
use crate::lifecycle::writer::Writer;
use crate::scenario::Scenario;
use crate::variables::number;
use crate::{backups, restores};

/// MiB of values, unless CLUSTERWRIGHT_MIB says so.
const SIZE: u64 = 2048;
/// What one write takes.
const FILLED: Duration = Duration::from_secs(1800);
/// Without a backup, for comparison.
const CALM: Duration = Duration::from_secs(20);
const NAME: &str = "large";

/// Its backup and its restore in place.
pub async fn backup_and_restore(stage: &mut Stage<'_>) -> Result<Seen> {
    let scenario = stage.scenario;
    let size = number("CLUSTERWRIGHT_MIB")?.unwrap_or(SIZE);
    let planes = stage.members(Role::ControlPlane).await?;
    let machine = stage.machine_of(planes.first().context("there is no control plane")?)?;
    let began = Instant::now();
    fill(&machine, size)?;
    scenario.say(&format!("{size} MiB written in {:.0} s", began.elapsed().as_secs_f64()));
    let storage = Backups::prepare(stage, NAME).await?;

    let writer = Writer::to(scenario, CLUSTER).await?;
    tokio::time::sleep(CALM).await;
    let calm = writer.slowest_percent();
    let by_hand = by_hand(&machine, &storage)?;
    scenario.say(&format!("by hand: {:.1} s", by_hand.as_secs_f64()));
    writer.slowest_percent();
    let asked = Instant::now();
    let taken = backups::take(scenario, NAME, CLUSTER, NAME, &storage.identity);
    let (content, memory) = with_peak(scenario, NAME, taken).await?;
    let (ours, busy) = (asked.elapsed(), writer.slowest_percent());
    ensure!(content.size >= i64::try_from(size << 20)?, "the snapshot has {} bytes", content.size);
    let took = content.completed_at.0.duration_since(content.started_at.0).as_secs_f64();
    scenario.say(&format!(
        "backup: {:.1} s from the request, {took:.1} s of it the backup: {:.2} x by hand; the executor had {memory} MiB; \
         a write took {:.0} ms at the 99th percentile, {:.0} ms without",
        ours.as_secs_f64(),
        took / by_hand.as_secs_f64(),
        busy.as_secs_f64() * 1000.0,
        calm.as_secs_f64() * 1000.0
    ));

    let asked = Instant::now();
    let source = json!({"backupRef": {"name": NAME}});
    restores::begin(scenario, NAME, restores::Of::Cluster(CLUSTER), source, &storage.identity).await?;
    restores::reaches(scenario, NAME, RestorePhase::AwaitingApproval, RESTORED * 2).await?;
    let staging = asked.elapsed();
    drop(writer);
    let writer = Writer::to(scenario, CLUSTER).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let approved = Instant::now();
    restores::approve(scenario, NAME, restores::DO_IT).await?;
    restores::reaches(scenario, NAME, RestorePhase::Succeeded, RESTORED * 2).await?;
    let (restored, away) = (approved.elapsed(), writer.written().gap);
    drop(writer);
    stage.ready(1 + stage.workers_wished()).await?;
    restores::delete(scenario, NAME).await?;
    Ok(Seen {
        took: restored,
        text: format!(
            "{size} MiB: backup {took:.1} s, {:.2} x by hand, {memory} MiB of memory; staged in {:.1} s, the API away for {:.1} s",
            took / by_hand.as_secs_f64(),
            staging.as_secs_f64(),
            away.as_secs_f64()
        ),
    })
}

/// Values of a MiB that cannot be compressed, outside of what API servers cache.
fn fill(machine: &Machine, mib: u64) -> Result<()> {
    let etcdctl = "etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/etcd/pki/ca.crt \
         --cert=/etc/etcd/pki/healthcheck-client.crt --key=/etc/etcd/pki/healthcheck-client.key";
    let put = format!(
        "for i in $(seq {mib}); do head -c 1048576 /dev/urandom | {etcdctl} put /bench/$i >/dev/null || exit 1; done"
    );
    block_in_place(|| machine.ssh_target().succeed(&put, FILLED))?;
    Ok(())
}

/// `etcdctl snapshot save` and a PUT, from this machine; how long both take.
fn by_hand(machine: &Machine, storage: &Backups) -> Result<Duration> {
    let scratch = tempfile::tempdir()?;
    let file = scratch.path().join("snapshot.db");
    let etcdctl = Programs::from_env(&Cache::from_env()).find("etcdctl")?;
    let pki = machine.root().join("etc/etcd/pki");
    let began = Instant::now();
    block_in_place(|| -> Result<()> {
        run(Command::new(etcdctl)
            .arg(format!("--endpoints=https://{}:2379", machine.address()))
            .arg(flag("cacert", &pki.join("ca.crt")))
            .arg(flag("cert", &pki.join("healthcheck-client.crt")))
            .arg(flag("key", &pki.join("healthcheck-client.key")))
            .args(["snapshot", "save"])
            .arg(&file))?;
        run(&mut storage.bucket.put(&file, "by-hand.db"))
    })?;
    Ok(began.elapsed())
}

fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

fn run(command: &mut Command) -> Result<()> {
    let ended = command.output()?;
    let said = String::from_utf8_lossy(&ended.stderr);
    ensure!(ended.status.success(), "{:?}: {}", command.get_program(), said.trim());
    Ok(())
}

/// What the work comes to, and the most memory in MiB that the executor of this backup had meanwhile.
async fn with_peak<T>(scenario: &Scenario, backup: &str, work: impl Future<Output = Result<T>>) -> Result<(T, u64)> {
    tokio::pin!(work);
    let mut peak = 0;
    loop {
        tokio::select! {
            done = &mut work => return Ok((done?, peak >> 10)),
            () = tokio::time::sleep(Duration::from_millis(200)) => {
                peak = peak.max(executor_kib(scenario, backup).await.unwrap_or_default());
            }
        }
    }
}

/// The most that the processes of the executor ever had, each for itself.
async fn executor_kib(scenario: &Scenario, backup: &str) -> Result<u64> {
    let status = scenario.api::<EtcdBackup>().get(backup).await?.status.unwrap_or_default();
    let run = status.run_ref.context("there is no run yet")?;
    let processes = inject::executor(scenario, &run.name).await?;
    Ok(processes.iter().map(|process| peak_kib(process.pid)).sum())
}

fn peak_kib(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}
