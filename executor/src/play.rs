//! Plays the playbooks: one Ansible process, its events into the fold, its output to ours without secrets,
//! until it ends or is stopped.

mod event_reader;
mod event_sink;
mod gate;
mod stopping;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use crds::step::Step;
use futures::FutureExt;
use futures::future::OptionFuture;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::warn;

use crate::ansible::Ansible;
use crate::children::{self, Waited};
use crate::fold::{Ending, Snapshot};
use crate::lines::{self, Lines};
use crate::redact::Redactor;
use crate::sanitize;
use crate::stop::{Stop, Stops};
use crate::workdir::Workdir;
use event_reader::EventReader;
use gate::Gate;
use stopping::Stopping;

pub use event_sink::EventSink;
pub use gate::Pauses;

/// How often a snapshot is published.
const SHOW: Duration = Duration::from_millis(200);
/// How long the pipes of a process that has ended are still read.
const REST: Duration = Duration::from_secs(2);
/// The inventory is read within this time.
const READ: Duration = Duration::from_secs(120);
/// The longest output of `ansible-inventory`, in bytes.
const LIST_LIMIT: usize = 256 << 20;

/// Starts Ansible for a run, and follows it to its end.
pub struct AnsibleRunner<'a> {
    /// Ansible's programs.
    pub ansible: &'a Ansible,
    /// The private directory.
    pub workdir: &'a Workdir,
    /// Takes secrets out.
    pub redactor: Arc<Redactor>,
    /// Ansible's output goes to ours.
    pub echo: bool,
    /// Whether the run is to pause before its next step.
    pub pauses: Pauses,
}

impl AnsibleRunner<'_> {
    /// The inventory as Ansible reads it. Its text holds passwords: it is compared and never shown.
    pub async fn list(&self, inventory: &Path) -> io::Result<Vec<u8>> {
        let mut waited = children::spawn(&mut self.ansible.inventory(self.workdir, inventory))?;
        let errors = waited.child().stderr.take().map(|stream| self.forward(stream, Echo::Stderr));
        let Some(mut stdout) = waited.child().stdout.take() else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut list = Vec::new();
        let read = async {
            let mut limited = tokio::io::AsyncReadExt::take(&mut stdout, LIST_LIMIT as u64);
            tokio::io::AsyncReadExt::read_to_end(&mut limited, &mut list).await?;
            waited.child().wait().await
        };
        let status = timeout(READ, read).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        finish(errors).await;
        if status.success() { Ok(list) } else { Err(io::Error::other(format!("ansible-inventory: {status}"))) }
    }

    /// Plays a playbook to its end.
    pub async fn play(
        &self,
        inventory: &Path,
        playbook: &Path,
        sink: &mut impl EventSink,
        shown: &watch::Sender<Snapshot>,
        stops: &mut Stops,
    ) -> io::Result<(Ending, Option<Stop>)> {
        let (fifo, events) = self.events()?;
        let mut gate = Gate::make(self.workdir.path())?;
        let (mut waited, forwarders) = self.start(inventory, playbook, &fifo, &gate)?;
        let mut reader = EventReader { events, lines: Lines::default(), redactor: &self.redactor, waits: None };
        let mut asking = OptionFuture::default();
        let mut stopping = Stopping::default();
        let mut show = interval(SHOW);
        show.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let status = loop {
            tokio::select! {
                status = waited.child().wait() => break status?,
                read = reader.events.readable() => {
                    read?;
                    reader.read(sink)?;
                    if let Some(step) = reader.waits.take() {
                        publish(sink.snapshot(), shown);
                        let pauses = self.pauses.clone();
                        asking = Some(async move { (step, pauses.wanted().await) }.boxed()).into();
                    }
                }
                Some((step, hold)) = &mut asking => {
                    asking = None.into();
                    match Step::from_name(&step).filter(|_| hold) {
                        Some(step) => {
                            stopping.hold(step);
                            stopping.signal(&waited);
                        }
                        None => gate.go()?,
                    }
                }
                _ = show.tick() => publish(sink.snapshot(), shown),
                () = stopping.advance(stops) => stopping.signal(&waited),
            }
        };
        reader.read(sink)?;
        reader.finish(sink);
        // Nobody reads the output of what is left of its group.
        waited.signal(Signal::SIGKILL);
        for forwarder in forwarders {
            finish(forwarder).await;
        }
        Ok(stopping.ending(status.code()))
    }

    /// Starts `ansible-playbook`, and forwards its output and its errors.
    fn start(
        &self,
        inventory: &Path,
        playbook: &Path,
        fifo: &Path,
        gate: &Gate,
    ) -> io::Result<(Waited, [Option<JoinHandle<()>>; 2])> {
        let mut command = self.ansible.playbook(self.workdir, inventory, playbook, fifo, &gate.path);
        if !self.echo {
            command.stdout(Stdio::null());
        }
        let mut waited = children::spawn(&mut command)?;
        let (stdout, stderr) = (waited.child().stdout.take(), waited.child().stderr.take());
        let forwarders = [
            stdout.map(|stream| self.forward(stream, Echo::Stdout)),
            stderr.map(|stream| self.forward(stream, Echo::Stderr)),
        ];
        Ok((waited, forwarders))
    }

    /// Ends what ssh keeps open, so that nothing of the run stays behind.
    pub async fn end_masters(&self) {
        let sockets = std::fs::read_dir(self.workdir.path().join("c")).into_iter().flatten().flatten();
        let ends = sockets.map(|socket| async move { self.end_master(&socket.path()).await });
        futures::future::join_all(ends).await;
    }

    /// Ends what ssh keeps open at one socket.
    pub async fn end_master(&self, socket: &Path) {
        if !socket.exists() {
            return;
        }
        let mut command = self.ansible.end_master(self.workdir, socket);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        match children::spawn(&mut command) {
            Ok(mut waited) => {
                // One that does not answer goes with the process namespace.
                let _ = timeout(REST, waited.child().wait()).await;
            }
            Err(error) => warn!(%error, "failed to end an ssh connection"),
        }
    }

    /// The FIFO that the plugin writes to, and our end of it. We hold it open for writing, too: it never
    /// looks ended.
    fn events(&self) -> io::Result<(PathBuf, pipe::Receiver)> {
        let fifo = self.workdir.path().join("events");
        if fifo.exists() {
            std::fs::remove_file(&fifo)?;
        }
        nix::unistd::mkfifo(&fifo, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let events = pipe::OpenOptions::new().read_write(true).open_receiver(&fifo)?;
        Ok((fifo, events))
    }

    fn forward(&self, stream: impl tokio::io::AsyncRead + Unpin + Send + 'static, to: Echo) -> JoinHandle<()> {
        let redactor = Arc::clone(&self.redactor);
        tokio::spawn(async move {
            let result = lines::each(stream, |line| to.write(&redactor.redact(line))).await;
            if let Err(error) = result {
                warn!(%error, "failed to read Ansible's output");
            }
        })
    }
}

#[derive(Clone, Copy)]
enum Echo {
    Stdout,
    Stderr,
}

impl Echo {
    fn write(self, line: &[u8]) {
        // Text from a machine must not steer the terminal on which the log is read.
        let mut line = sanitize::line(line).into_bytes();
        line.push(b'\n');
        // A closed output does not end a run.
        let _ = match self {
            Echo::Stdout => io::stdout().lock().write_all(&line),
            Echo::Stderr => io::stderr().lock().write_all(&line),
        };
    }
}

/// Publishes a snapshot, if it differs from the last.
pub fn publish(snapshot: Snapshot, shown: &watch::Sender<Snapshot>) {
    shown.send_if_modified(|last| {
        let changed = *last != snapshot;
        if changed {
            *last = snapshot;
        }
        changed
    });
}

async fn finish(forwarder: Option<JoinHandle<()>>) {
    let Some(mut forwarder) = forwarder else { return };
    if timeout(REST, &mut forwarder).await.is_err() {
        forwarder.abort();
    }
}
