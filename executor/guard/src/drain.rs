//! Waits until nothing is at work for certain fences any more, and ends what goes on for too long.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use guard::Fence;
use guard::at_work::{Work, Worker};
use guard::fence::Standing;
use guard::patience::{Act, Patience};
use guard::record::{Event, Record};
use nix::sys::signal::Signal;

use crate::failure::Failure;
use crate::journal::record;
use crate::processes;
use crate::state::Directory;

/// More of them are not written down.
const TOLD: usize = 100;

/// Whose work has to end.
#[derive(Debug, Clone, Copy)]
pub enum Whose {
    /// Every fence lower than this one.
    Below(Fence),
    /// This one and every lower.
    UpTo(Fence),
}

impl Whose {
    /// Two that end the same fence do not wait for each other.
    fn has(self, work: Work) -> bool {
        match self {
            Self::Below(own) => work.fence < own,
            Self::UpTo(own) => work.fence < own || (work.fence == own && !work.ends),
        }
    }
}

/// What it took.
#[derive(Debug)]
pub struct Drained {
    pub ended: Vec<Worker>,
    pub waited: Duration,
}

/// Waits, for `standing`'s run. Each turn `ready` is asked first: what is quiet before it says yes does not count.
pub fn drain(
    directory: &Directory,
    standing: &Standing,
    whose: Whose,
    patience: Patience,
    mut ready: impl FnMut() -> Result<bool, Failure>,
) -> Result<Drained, Failure> {
    let since = Instant::now();
    let mut draining = Draining {
        directory,
        standing,
        unwritten: Vec::new(),
        asked: BTreeSet::new(),
        killed: BTreeSet::new(),
        ended: Vec::new(),
    };
    let mut watch = processes::Watch::of(directory);
    let mut told = false;
    let mut clean = 0;
    loop {
        let ready = ready()?;
        let left: Vec<Worker> = watch
            .at_work()
            .into_iter()
            .filter(|(work, _)| whose.has(*work))
            .map(|(_, worker)| worker)
            .collect();
        clean = if ready && left.is_empty() { clean + 1 } else { 0 };
        // A second look: a process that begets another and goes can be missed by one.
        if clean == 2 {
            draining.flush();
            return Ok(Drained {
                ended: draining.ended,
                waited: since.elapsed(),
            });
        }
        if !left.is_empty() && !told {
            told = true;
            draining.tell(Event::Waits, None, &left);
        }
        match patience.act(since.elapsed()) {
            Act::Wait => (),
            Act::Terminate => draining.end(&left, Signal::SIGTERM),
            Act::Kill => draining.end(&left, Signal::SIGKILL),
            // There is nothing to give up on: the second look is still to come.
            Act::GiveUp if ready && left.is_empty() => (),
            Act::GiveUp => return Err(stuck(&left)),
        }
        draining.flush();
        // Quick at first: mostly there is nothing, or something that is just about to end.
        thread::sleep((since.elapsed() / 4).clamp(Duration::from_millis(2), Duration::from_millis(100)));
    }
}

fn stuck(left: &[Worker]) -> Failure {
    match left.first() {
        Some(first) => Failure::State(format!(
            "{} processes of earlier commands cannot be ended, the first is {} ({}): reboot this machine",
            left.len(),
            first.pid,
            first.command
        )),
        None => Failure::State("another guard does not give the lock away: is it stopped?".to_owned()),
    }
}

struct Draining<'a> {
    directory: &'a Directory,
    standing: &'a Standing,
    /// Lines that wait for the mutex. What has to be ended may be what holds it, so nothing waits for them.
    unwritten: Vec<Record>,
    asked: BTreeSet<i32>,
    killed: BTreeSet<i32>,
    ended: Vec<Worker>,
}

impl Draining<'_> {
    /// Sends the signal: SIGTERM once to each, SIGKILL until it is gone (its number may be another's by now).
    fn end(&mut self, left: &[Worker], signal: Signal) {
        let kills = signal == Signal::SIGKILL;
        let done = if kills { &mut self.killed } else { &mut self.asked };
        let new: Vec<Worker> = left
            .iter()
            .filter(|worker| done.insert(worker.pid))
            .cloned()
            .collect();
        if !new.is_empty() {
            self.tell(Event::Ended, Some(signal), &new);
        }
        for worker in if kills { left } else { &new } {
            processes::signal(worker.pid, signal);
            // What is stopped would not hear it.
            processes::signal(worker.pid, Signal::SIGCONT);
        }
        for worker in new {
            let known = self.ended.iter().any(|ended| ended.pid == worker.pid);
            if !known && self.ended.len() < TOLD {
                self.ended.push(worker);
            }
        }
    }

    fn tell(&mut self, event: Event, signal: Option<Signal>, processes: &[Worker]) {
        self.unwritten.push(Record {
            signal: signal.map(|signal| signal.as_str().to_owned()),
            processes: processes.iter().take(TOLD).cloned().collect(),
            ..record(event, self.standing, "")
        });
        self.flush();
    }

    /// Writes what waits, if the mutex is to be had. A line less does not keep a machine from becoming quiet.
    fn flush(&mut self) {
        if self.unwritten.is_empty() {
            return;
        }
        if let Ok(Some(held)) = self.directory.try_hold() {
            for record in self.unwritten.drain(..) {
                let _ = held.write(record);
            }
        }
    }
}
