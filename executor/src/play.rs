//! Plays the playbooks: one Ansible process, its events into the fold, its output to ours without secrets,
//! until it ends or is stopped.

mod audience;
mod event_reader;
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
use crate::children;
use crate::fold::{Ending, Snapshot};
use crate::foreign_text;
use crate::lines::{self, Lines};
use crate::place::Place;
use crate::scrub::Scrubber;
use crate::stop::{Stop, Stops};
use event_reader::EventReader;
use gate::Gate;
use stopping::{Stopping, Why};

pub use audience::Audience;
pub use gate::Pauses;

/// How often the fold is shown to those who watch.
const SHOW: Duration = Duration::from_millis(200);
/// What is left in the pipes of a process that has ended is read for so long.
const REST: Duration = Duration::from_secs(2);
/// The inventory is read within this time.
const READ: Duration = Duration::from_secs(120);
/// What `ansible-inventory` may print.
const LIST_LIMIT: usize = 256 << 20;

/// What playing needs.
pub struct Stage<'a> {
    /// Ansible's programs.
    pub ansible: &'a Ansible,
    /// The private directory.
    pub place: &'a Place,
    /// Takes secrets out.
    pub scrubber: Arc<Scrubber>,
    /// Ansible's output goes to ours.
    pub echo: bool,
    /// Whether the run is to pause before its next step.
    pub pauses: Pauses,
}

impl Stage<'_> {
    /// The inventory as Ansible reads it. Its text holds passwords: it is compared and never shown.
    pub async fn list(&self, inventory: &Path) -> io::Result<Vec<u8>> {
        let mut waited = children::spawn(&mut self.ansible.inventory(self.place, inventory))?;
        let errors = waited
            .child()
            .stderr
            .take()
            .map(|stream| self.forward(stream, Echo::Stderr));
        let Some(mut stdout) = waited.child().stdout.take() else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut list = Vec::new();
        let read = async {
            let mut limited = tokio::io::AsyncReadExt::take(&mut stdout, LIST_LIMIT as u64);
            tokio::io::AsyncReadExt::read_to_end(&mut limited, &mut list).await?;
            waited.child().wait().await
        };
        let status = timeout(READ, read)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        finish(errors).await;
        if status.success() {
            Ok(list)
        } else {
            Err(io::Error::other(format!("ansible-inventory: {status}")))
        }
    }

    /// Plays a playbook to its end.
    pub async fn play(
        &self,
        inventory: &Path,
        playbook: &Path,
        audience: &mut impl Audience,
        shown: &watch::Sender<Snapshot>,
        stops: &mut Stops,
    ) -> io::Result<(Ending, Option<Stop>)> {
        let (fifo, events) = self.events()?;
        let mut gate = Gate::make(self.place.path())?;
        let mut command = self
            .ansible
            .playbook(self.place, inventory, playbook, &fifo, &gate.path);
        if !self.echo {
            command.stdout(Stdio::null());
        }
        let mut waited = children::spawn(&mut command)?;
        let output = waited
            .child()
            .stdout
            .take()
            .map(|stream| self.forward(stream, Echo::Stdout));
        let errors = waited
            .child()
            .stderr
            .take()
            .map(|stream| self.forward(stream, Echo::Stderr));

        let mut reader = EventReader {
            events,
            lines: Lines::default(),
            scrubber: &self.scrubber,
            waits: None,
        };
        let mut asking = OptionFuture::default();
        let mut stopping = Stopping::default();
        let mut show = interval(SHOW);
        show.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let status = loop {
            tokio::select! {
                status = waited.child().wait() => break status?,
                read = reader.events.readable() => {
                    read?;
                    reader.read(audience)?;
                    if let Some(step) = reader.waits.take() {
                        publish(audience.shows(), shown);
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
                _ = show.tick() => publish(audience.shows(), shown),
                () = stopping.advance(stops) => stopping.signal(&waited),
            }
        };
        reader.read(audience)?;
        reader.finish(audience);
        // Whatever of its group is still there has nobody to talk to.
        waited.signal(Signal::SIGKILL);
        finish(output).await;
        finish(errors).await;
        let stop = match stopping.why {
            Some(Why::Stop(stop)) => Some(stop),
            _ => None,
        };
        let ending = match (stopping.why, status.code()) {
            // It came to its end before it heard.
            (_, Some(0)) => Ending::Exited(Some(0)),
            (Some(Why::Stop(stop)), _) => stop.ending(),
            (Some(Why::Paused(step)), _) => Ending::Paused(step),
            (None, code) => Ending::Exited(code),
        };
        Ok((ending, stop))
    }

    /// Ends what ssh keeps open, so that nothing of the run stays behind.
    pub async fn end_masters(&self) {
        let sockets = std::fs::read_dir(self.place.path().join("c"))
            .into_iter()
            .flatten()
            .flatten();
        let ends = sockets.map(|socket| async move { self.end_master(&socket.path()).await });
        futures::future::join_all(ends).await;
    }

    /// Ends what ssh keeps open at one socket.
    pub async fn end_master(&self, socket: &Path) {
        if !socket.exists() {
            return;
        }
        let mut command = self.ansible.end_master(self.place, socket);
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
        let fifo = self.place.path().join("events");
        if fifo.exists() {
            std::fs::remove_file(&fifo)?;
        }
        nix::unistd::mkfifo(&fifo, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let events = pipe::OpenOptions::new().read_write(true).open_receiver(&fifo)?;
        Ok((fifo, events))
    }

    fn forward(
        &self,
        stream: impl tokio::io::AsyncRead + Unpin + Send + 'static,
        to: Echo,
    ) -> JoinHandle<()> {
        let scrubber = Arc::clone(&self.scrubber);
        tokio::spawn(async move {
            let result = lines::each(stream, |line| to.write(&scrubber.scrub(line))).await;
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
        // What a machine said must not steer the terminal on which the log is read.
        let mut line = foreign_text::line(line).into_bytes();
        line.push(b'\n');
        // A closed output does not end a run.
        let _ = match self {
            Echo::Stdout => io::stdout().lock().write_all(&line),
            Echo::Stderr => io::stderr().lock().write_all(&line),
        };
    }
}

/// Shows a state, if it is another than the one shown.
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
