//! Waits until no process of certain fences is left, and ends those that run for too long.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use guard::Fence;
use guard::fence::FenceState;
use guard::grace_period::{Act, GracePeriod};
use guard::process_owner::{Owner, Worker};
use guard::record::{Event, Record};
use nix::sys::signal::Signal;

use crate::failure::Failure;
use crate::journal::record;
use crate::processes;
use crate::state::Directory;

/// Most processes that one line of the log lists.
const MAX_LISTED: usize = 100;

/// The fences whose processes have to end.
#[derive(Debug, Clone, Copy)]
pub enum Whose {
    /// Every fence lower than this one.
    Below(Fence),
    /// This one and every lower.
    UpTo(Fence),
}

impl Whose {
    /// Two that end the same fence do not wait for each other.
    fn covers(self, owner: Owner) -> bool {
        match self {
            Self::Below(own) => owner.fence < own,
            Self::UpTo(own) => owner.fence < own || (owner.fence == own && !owner.ends),
        }
    }
}

/// The processes that were ended, and how long it took.
#[derive(Debug)]
pub struct Drained {
    pub ended: Vec<Worker>,
    pub waited: Duration,
}

/// Waits for the run of `fence_state`, and returns the processes that were ended. Each turn asks `ready` first: a
/// machine that is quiet before `ready` says yes does not count.
pub fn drain(
    directory: &Directory,
    fence_state: &FenceState,
    whose: Whose,
    grace_period: GracePeriod,
    mut ready: impl FnMut() -> Result<bool, Failure>,
) -> Result<Drained, Failure> {
    let since = Instant::now();
    let mut draining = Draining {
        directory,
        fence_state,
        unwritten: Vec::new(),
        asked: BTreeSet::new(),
        killed: BTreeSet::new(),
        ended: Vec::new(),
    };
    let mut watch = processes::Watch::new(directory);
    let mut reported = false;
    let mut clean = 0;
    loop {
        let ready = ready()?;
        let left: Vec<Worker> =
            watch.running().into_iter().filter(|(owner, _)| whose.covers(*owner)).map(|(_, worker)| worker).collect();
        clean = if ready && left.is_empty() { clean + 1 } else { 0 };
        // A second look: a process that forks and exits can be missed by one.
        if clean == 2 {
            draining.flush();
            return Ok(Drained { ended: draining.ended, waited: since.elapsed() });
        }
        if !left.is_empty() && !reported {
            reported = true;
            draining.log(Event::Waits, None, &left);
        }
        match grace_period.act(since.elapsed()) {
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
    fence_state: &'a FenceState,
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
        let new: Vec<Worker> = left.iter().filter(|worker| done.insert(worker.pid)).cloned().collect();
        if !new.is_empty() {
            self.log(Event::Ended, Some(signal), &new);
        }
        for worker in if kills { left } else { &new } {
            processes::signal(worker.pid, signal);
            // What is stopped would not hear it.
            processes::signal(worker.pid, Signal::SIGCONT);
        }
        for worker in new {
            let known = self.ended.iter().any(|ended| ended.pid == worker.pid);
            if !known && self.ended.len() < MAX_LISTED {
                self.ended.push(worker);
            }
        }
    }

    fn log(&mut self, event: Event, signal: Option<Signal>, processes: &[Worker]) {
        self.unwritten.push(Record {
            signal: signal.map(|signal| signal.as_str().to_owned()),
            processes: processes.iter().take(MAX_LISTED).cloned().collect(),
            ..record(event, self.fence_state, "")
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
