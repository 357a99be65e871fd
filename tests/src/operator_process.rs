//! An operator of a test's own: a process beside the test, on an API server of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use lab::cache::Cache;
use lab::progress::Progress;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::sleep;

use crate::api_server::{ApiServer, free_port};

/// A running operator; ended when it is dropped.
pub struct Operator {
    /// Whose requests are in the audit log.
    pub user: &'static str,
    child: Child,
    log: PathBuf,
    port: u16,
}

impl Operator {
    /// In a namespace, as an administrator would start it by hand.
    pub fn start(server: &ApiServer, user: &'static str, namespace: &str) -> Result<Self> {
        Self::start_program(&program()?, server, user, namespace)
    }

    /// The same with another build of it.
    pub fn start_program(program: &Path, server: &ApiServer, user: &'static str, namespace: &str) -> Result<Self> {
        let kubeconfig = server.kubeconfig(user)?;
        let log = kubeconfig.with_extension("operator.log");
        Self::spawn(program, &["--namespace", namespace, "--identity", user], (&kubeconfig, log), user)
    }

    /// With a ServiceAccount's token, and these arguments.
    pub fn start_as(server: &ApiServer, token: &str, directory: &Path, arguments: &[&str]) -> Result<Self> {
        let (kubeconfig, log) = (directory.join("operator.kubeconfig"), directory.join("operator.log"));
        std::fs::write(&kubeconfig, server.kubeconfig_of(token)?)?;
        Self::spawn(&program()?, arguments, (&kubeconfig, log), "of a ServiceAccount")
    }

    fn spawn(
        program: &Path,
        arguments: &[&str],
        (kubeconfig, log): (&Path, PathBuf),
        user: &'static str,
    ) -> Result<Self> {
        let port = free_port()?;
        let child = Command::new(program)
            .arg("run")
            .arg(format!("--listen=127.0.0.1:{port}"))
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .env("RUST_LOG", "info")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()
            .context("failed to start the operator")?;
        Ok(Self { user, child, log, port })
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.child.id())?;
        kill(Pid::from_raw(pid), signal).with_context(|| format!("failed to send {signal} to {}", self.user))
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has ended.
    pub async fn ended(&mut self, within: Duration) -> Result<ExitStatus> {
        let until = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            ensure!(Instant::now() < until, "{} does not end:\n{}", self.user, self.log());
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// All of its log.
    pub fn whole_log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        let log = self.whole_log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// What it answers at a path.
    pub async fn ask(&self, path: &str) -> Result<String> {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: operator\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    /// Waits until it answers so at a path.
    pub async fn answers(&self, path: &str, expected: &str) -> Result<()> {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let answer = self.ask(path).await.unwrap_or_default();
            if answer.contains(expected) {
                return Ok(());
            }
            if Instant::now() > until {
                bail!("{path} of {} has no {expected:?}:\n{answer}\n{}", self.user, self.log());
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // One that has ended already is no error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The executor that goes with the operator of [`Operator::start`]: the one beside it.
pub fn executor() -> Result<PathBuf> {
    let executor = program()?.with_file_name("executor");
    ensure!(executor.is_file(), "{} is missing: build the executor, too", executor.display());
    Ok(executor)
}

/// The one that `CLUSTERWRIGHT_TEST_OPERATOR` names, or the operator that the lab runs, built from what is here.
fn program() -> Result<PathBuf> {
    if let Some(given) = std::env::var_os(crate::operator::PROGRAM).filter(|given| !given.is_empty()) {
        return Ok(given.into());
    }
    Ok(lab::cargo::ours(&Cache::from_env(), &Progress::new())?.operator)
}
