//! An etcd of one member that was restored from a snapshot: a process beside this one, on the loopback interface.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use etcd_client::{Client, KvClient};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::error::BackupError;
use crate::programs::Programs;
use crate::source::Source;
use crate::text::sanitize;

/// Name of the member.
const NAME: &str = "verification";
/// Until it answers: a database of gigabytes is read once.
const START: Duration = Duration::from_secs(300);
/// Until it has ended.
const STOP: Duration = Duration::from_secs(10);
/// From one look to the next.
const PAUSE: Duration = Duration::from_millis(100);
/// The largest answer: a page of objects.
const ANSWER: usize = 64 << 20;
/// What etcd says that is not the snapshot's fault.
const NOT_ITS_FAULT: [&str; 4] =
    ["address already in use", "no space left", "cannot allocate memory", "too many open files"];

/// The process, and a client of it.
pub(super) struct Etcd {
    process: Child,
    log: PathBuf,
    pub client: KvClient,
}

/// Makes a data directory of a snapshot, below the directory.
pub(super) async fn restore(
    source: &Source<'_>,
    programs: &Programs,
    snapshot: &Path,
    place: &Path,
) -> Result<PathBuf, BackupError> {
    let (data, log) = (place.join("data"), place.join("etcdutl.log"));
    let peer = "http://127.0.0.1:2380";
    let mut command = Command::new(&programs.etcdutl);
    command.args(["snapshot", "restore"]).arg(snapshot).arg("--data-dir").arg(&data);
    command.args(["--name", NAME, "--initial-advertise-peer-urls", peer]);
    command.args(["--initial-cluster", &format!("{NAME}={peer}")]);
    let mut process = spawn(command, &log)?;
    let ended = process.wait().await.map_err(|error| failed("run etcdutl", error.to_string()))?;
    match ended.success() {
        true => Ok(data),
        false => Err(verdict(source, "restore the snapshot with etcdutl", ended, &log).await),
    }
}

impl Etcd {
    /// Starts it from its data, and waits until it serves. `quota` bytes are allowed: what it holds is more than the
    /// default may be.
    pub async fn start(source: &Source<'_>, programs: &Programs, data: &Path, quota: u64) -> Result<Self, BackupError> {
        let log = data.with_extension("log");
        let [serves, peer] = [free_url()?, free_url()?];
        let mut command = Command::new(&programs.etcd);
        command.args(["--name", NAME, "--data-dir"]).arg(data);
        command.args(["--listen-client-urls", &serves, "--advertise-client-urls", &serves]);
        command.args(["--listen-peer-urls", &peer, "--log-level", "warn", "--unsafe-no-fsync"]);
        command.args(["--quota-backend-bytes", &quota.to_string()]);
        let mut process = spawn(command, &log)?;
        let since = Instant::now();
        loop {
            if let Ok(Some(ended)) = process.try_wait() {
                return Err(verdict(source, "start etcd from the snapshot", ended, &log).await);
            }
            if let Some(client) = connect(&serves).await {
                return Ok(Self { process, log, client });
            }
            if since.elapsed() > START {
                let problem = format!("it did not serve within {} s: {}", START.as_secs(), last_line(&log).await);
                return Err(failed("start etcd from the snapshot", problem));
            }
            sleep(PAUSE).await;
        }
    }

    /// Ends it. What it leaves goes with its directory.
    pub async fn stop(mut self) {
        // It is killed in any case when it is dropped.
        let _ = timeout(STOP, self.process.kill()).await;
    }

    /// Why it did not answer: because it has ended, or for a reason that says nothing of the snapshot.
    pub async fn broken(mut self, source: &Source<'_>, problem: String) -> BackupError {
        const READ: &str = "read what was restored";
        match timeout(Duration::from_secs(1), self.process.wait()).await {
            Ok(Ok(ended)) => verdict(source, READ, ended, &self.log).await,
            Ok(Err(_)) | Err(_) => failed(READ, problem),
        }
    }
}

fn spawn(mut command: Command, log: &Path) -> Result<Child, BackupError> {
    let file = std::fs::File::create(log).map_err(|error| failed("write a log", error.to_string()))?;
    let again = file.try_clone().map_err(|error| failed("write a log", error.to_string()))?;
    command.env_clear().stdin(Stdio::null()).stdout(file).stderr(again).kill_on_drop(true);
    command.spawn().map_err(|error| failed("start a program of etcd", error.to_string()))
}

async fn connect(url: &str) -> Option<KvClient> {
    let client = Client::connect([url], None).await.ok()?;
    let status = timeout(Duration::from_secs(2), client.clone().status()).await.ok()?.ok()?;
    (status.leader() != 0).then(|| client.kv_client().max_decoding_message_size(ANSWER))
}

/// A program has ended: by itself, for a reason that is the snapshot's, or it was ended or lacked something.
async fn verdict(source: &Source<'_>, action: &'static str, ended: ExitStatus, log: &Path) -> BackupError {
    let said = last_line(log).await;
    let is_not_its_fault = |said: &str| NOT_ITS_FAULT.iter().any(|known| said.contains(known));
    match ended.code() {
        Some(code) if !is_not_its_fault(&said) => {
            source.corrupt(format!("failed to {action}: it ended with code {code}: {said}"))
        }
        Some(_) | None => failed(action, format!("{ended}: {said}")),
    }
}

/// The last line of a log that is not empty.
async fn last_line(log: &Path) -> String {
    let text = tokio::fs::read(log).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    sanitize(text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing"))
}

/// A port that nobody has just now.
fn free_url() -> Result<String, BackupError> {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = bound.map_err(|error| failed("find a free port", error.to_string()))?;
    Ok(format!("http://{address}"))
}

fn failed(action: &'static str, problem: String) -> BackupError {
    BackupError::Verification { action, problem }
}
