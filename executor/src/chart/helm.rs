//! Helm as a process below us: its output reaches our own, without secrets, and it ends when we have to.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crds::Reason;
use nix::sys::signal::Signal;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;
use tokio::sync::mpsc;

use super::failure::Failure;
use crate::children::{Waited, spawn};
use crate::redact::Redactor;
use crate::sanitize::line;
use crate::stop::{Stop, Stops};

/// Logins at registries.
pub(super) const REGISTRY: &str = "registry.json";
/// Repositories, with their logins.
pub(super) const REPOSITORIES: &str = "repositories.yaml";
/// Lines at the end that are kept for the message.
const KEPT_LINES: usize = 12;
/// What is kept of an answer for ourselves, in bytes.
const KEPT_BYTES: usize = 1 << 20;
/// What Helm has to write down that it was interrupted.
const GRACE: Duration = Duration::from_secs(20);

/// Runs Helm.
pub(super) struct Helm {
    program: PathBuf,
    home: PathBuf,
    kubeconfig: PathBuf,
    redactor: Redactor,
    stops: Stops,
    stopped: Option<Stop>,
}

/// What came of one call.
pub(super) struct Ran {
    pub succeeded: bool,
    /// What it wrote to its standard output, where that is an answer for us.
    pub answer: String,
    /// The end of what it said.
    pub said: VecDeque<String>,
}

impl Helm {
    pub fn new(
        program: &Path,
        home: &Path,
        kubeconfig: &Path,
        redactor: Redactor,
        limit: Duration,
    ) -> io::Result<Self> {
        let stops = Stops::listen(Some(limit))?;
        let (program, home) = (program.to_owned(), home.to_owned());
        Ok(Self { program, home, kubeconfig: kubeconfig.to_owned(), redactor, stops, stopped: None })
    }

    /// Calls it; failed, it is a failure of this reason.
    pub async fn must(&mut self, arguments: &[&str], reason: Reason) -> Result<(), Failure> {
        let ran = self.run(arguments, false).await;
        let ran = ran.map_err(|error| Failure::new(reason, format!("Helm cannot be run: {error}")))?;
        match ran.succeeded {
            true => Ok(()),
            false => Err(self.failure(&ran, reason)),
        }
    }

    /// What is asked for ourselves: the answer is not in the log.
    pub async fn ask(&mut self, arguments: &[&str]) -> Option<String> {
        let ran = self.run(arguments, true).await.ok()?;
        ran.succeeded.then_some(ran.answer)
    }

    /// What is done beside Helm, given up when we have to end.
    pub async fn within<T>(&mut self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        tokio::select! {
            done = work => done,
            stop = self.stops.next(), if self.stopped.is_none() => {
                self.stopped = Some(stop);
                Err(Failure::new(Reason::ChartNotFetched, "it was interrupted while the chart was fetched"))
            }
        }
    }

    fn failure(&self, ran: &Ran, reason: Reason) -> Failure {
        let said: Vec<&str> = ran.said.iter().map(String::as_str).collect();
        let begin = said.iter().rposition(|line| line.starts_with("Error:"));
        let end = said.get(begin.unwrap_or(said.len().saturating_sub(4))..).unwrap_or_default().join("\n");
        let said = end.strip_prefix("Error:").map_or(end.as_str(), str::trim_start);
        let stopped = match self.stopped {
            Some(Stop::DeadlineExceeded) => "its time was over: ",
            Some(Stop::Terminated | Stop::Interrupted) => "it was interrupted: ",
            None => "",
        };
        let is_lost = said.to_lowercase().contains("cluster unreachable");
        Failure::new(if is_lost { Reason::ClusterUnreachable } else { reason }, format!("{stopped}{said}"))
    }

    async fn run(&mut self, arguments: &[&str], is_answer: bool) -> io::Result<Ran> {
        if self.stopped.is_some() {
            return Err(io::Error::other("its time is over"));
        }
        let mut child = spawn(&mut self.command(arguments))?;
        let (sender, mut lines) = mpsc::channel(64);
        if let Some(out) = child.child().stdout.take() {
            tokio::spawn(read(out, true, sender.clone()));
        }
        if let Some(err) = child.child().stderr.take() {
            tokio::spawn(read(err, false, sender.clone()));
        }
        drop(sender);
        let mut ran = Ran { succeeded: false, answer: String::new(), said: VecDeque::new() };
        let mut killed_at = None;
        loop {
            let killed = async {
                match killed_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                line = lines.recv() => match line {
                    Some((is_out, bytes)) if is_out && is_answer => {
                        if ran.answer.len() < KEPT_BYTES {
                            ran.answer.push_str(&String::from_utf8_lossy(&bytes));
                            ran.answer.push('\n');
                        }
                    }
                    Some((_, bytes)) => self.say(&bytes, &mut ran.said),
                    None => break,
                },
                stop = self.stops.next(), if self.stopped.is_none() => {
                    self.stopped = Some(stop);
                    child.signal(Signal::SIGTERM);
                    killed_at = Some(tokio::time::Instant::now() + GRACE);
                }
                () = killed => {
                    child.signal(Signal::SIGKILL);
                    killed_at = None;
                }
            }
        }
        ran.succeeded = self.ended(&mut child).await?;
        Ok(ran)
    }

    async fn ended(&self, child: &mut Waited) -> io::Result<bool> {
        Ok(child.child().wait().await?.success() && self.stopped.is_none())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HOME"] {
            command.env(variable, &self.home);
        }
        command.env("KUBECONFIG", &self.kubeconfig).env("HELM_REGISTRY_CONFIG", self.home.join(REGISTRY));
        command.env("HELM_REPOSITORY_CONFIG", self.home.join(REPOSITORIES));
        command.env("NO_PROXY", direct(std::env::var("NO_PROXY").ok(), &self.kubeconfig));
        command
    }

    /// A line of its output, for the log and for the message.
    fn say(&self, bytes: &[u8], said: &mut VecDeque<String>) {
        let text = line(&self.redactor.redact(bytes));
        // A log that nobody reads any more ends nothing.
        let _ = writeln!(io::stdout(), "{text}");
        if text.trim().is_empty() {
            return;
        }
        if said.len() == KEPT_LINES {
            said.pop_front();
        }
        said.push_back(text);
    }
}

/// What Helm reaches without a proxy, as it takes it from its environment: the API server of the kubeconfig beside what
/// it had.
fn direct(before: Option<String>, kubeconfig: &Path) -> String {
    let text = std::fs::read_to_string(kubeconfig).unwrap_or_default();
    let value: serde_yaml::Value = serde_yaml::from_str(&text).unwrap_or_default();
    let servers = value["clusters"].as_sequence().into_iter().flatten();
    let servers = servers.filter_map(|cluster| host(cluster["cluster"]["server"].as_str()?));
    let before = before.filter(|before| !before.is_empty());
    before.into_iter().chain(servers).collect::<Vec<_>>().join(",")
}

/// The host of a URL; an IPv6 address without its brackets.
fn host(url: &str) -> Option<String> {
    let url = reqwest::Url::parse(url).ok()?;
    Some(url.host_str()?.trim_matches(['[', ']']).to_owned())
}

/// Sends the lines of a pipe until it ends.
async fn read(pipe: impl AsyncRead + Unpin, is_out: bool, to: mpsc::Sender<(bool, Vec<u8>)>) {
    let mut lines = BufReader::new(pipe).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        if to.send((is_out, line)).await.is_err() {
            return;
        }
    }
}
