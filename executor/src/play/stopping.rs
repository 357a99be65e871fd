//! How Ansible is stopped: SIGINT, so that it ends in good order, then SIGKILL.

use std::time::Duration;

use crds::step::Step;
use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep_until};
use tracing::warn;

use crate::children::Waited;
use crate::fold::Ending;
use crate::stop::{Stop, Stops};

/// How long Ansible may take to end after SIGINT.
const GRACE: Duration = Duration::from_secs(20);

/// Why Ansible is stopped.
#[derive(Clone, Copy, Debug)]
pub(super) enum Why {
    /// From outside, or by the deadline.
    Stop(Stop),
    /// The run is to pause before this step.
    Paused(Step),
}

/// SIGINT first, then SIGKILL.
#[derive(Default)]
pub(super) struct Stopping {
    /// Why it is stopped.
    pub why: Option<Why>,
    killed_at: Option<Instant>,
    kill: bool,
}

impl Stopping {
    /// Waits for the next reason to signal.
    pub async fn advance(&mut self, stops: &mut Stops) {
        match self.killed_at {
            None if self.why.is_none() => {
                self.why = Some(Why::Stop(stops.next().await));
                self.killed_at = Some(Instant::now() + GRACE);
            }
            None => std::future::pending().await,
            Some(at) => {
                tokio::select! {
                    () = sleep_until(at) => {}
                    () = stops.again() => {}
                }
                self.kill = true;
                self.killed_at = None;
            }
        }
    }

    /// It waits before this step, and is to end there.
    pub fn hold(&mut self, step: Step) {
        if self.why.is_none() {
            self.why = Some(Why::Paused(step));
            self.killed_at = Some(Instant::now() + GRACE);
        }
    }

    /// How Ansible ended with this exit code, and the stop that ended it, if one did.
    pub fn ending(&self, code: Option<i32>) -> (Ending, Option<Stop>) {
        let stop = match self.why {
            Some(Why::Stop(stop)) => Some(stop),
            Some(Why::Paused(_)) | None => None,
        };
        let ending = match (self.why, code) {
            // It ended before the signal arrived.
            (_, Some(0)) => Ending::Exited(Some(0)),
            (Some(Why::Stop(stop)), _) => stop.ending(),
            (Some(Why::Paused(step)), _) => Ending::Paused(step),
            (None, code) => Ending::Exited(code),
        };
        (ending, stop)
    }

    /// Sends the signal that is due.
    pub fn signal(&self, waited: &Waited) {
        let signal = if self.kill { Signal::SIGKILL } else { Signal::SIGINT };
        warn!(why = ?self.why, %signal, "stopping Ansible");
        waited.signal(signal);
    }
}
