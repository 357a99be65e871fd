//! How Ansible is stopped: SIGINT, so that it ends in good order, then SIGKILL.

use std::time::Duration;

use crds::step::Step;
use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep_until};
use tracing::warn;

use crate::children::Waited;
use crate::stop::{Stop, Stops};

/// What Ansible gets to end in good order.
const GRACE: Duration = Duration::from_secs(20);

/// Why Ansible is stopped.
#[derive(Clone, Copy, Debug)]
pub(super) enum Why {
    /// From outside, or by the deadline.
    Stop(Stop),
    /// The run is to pause before this step.
    Paused(Step),
}

/// First a word, then force.
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

    /// Sends the signal that is due.
    pub fn signal(&self, waited: &Waited) {
        let signal = if self.kill {
            Signal::SIGKILL
        } else {
            Signal::SIGINT
        };
        warn!(why = ?self.why, %signal, "stopping Ansible");
        waited.signal(signal);
    }
}
