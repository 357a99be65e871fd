//! Stops of a run from outside: a signal, a second one, or the deadline.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use crate::fold::Ending;

/// Why a run is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// SIGTERM: the Pod is being deleted.
    Terminated,
    /// SIGINT: a person at a terminal.
    Interrupted,
    /// Its time is over.
    DeadlineExceeded,
}

impl Stop {
    /// How the run ends by it.
    pub fn ending(self) -> Ending {
        match self {
            Stop::DeadlineExceeded => Ending::DeadlineExceeded,
            Stop::Terminated | Stop::Interrupted => Ending::Canceled,
        }
    }
}

/// Waits for the stops of a run.
#[derive(Debug)]
pub struct Stops {
    terminate: Signal,
    interrupt: Signal,
    deadline: Option<Instant>,
    stopped: Option<Instant>,
}

impl Stops {
    /// From now on neither signal ends the process by itself.
    pub fn listen(deadline: Option<Duration>) -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            deadline: deadline.map(|time| Instant::now() + time),
            stopped: None,
        })
    }

    /// When the run must be over.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// When the run was stopped.
    pub fn stopped(&self) -> Option<Instant> {
        self.stopped
    }

    /// The next reason to stop.
    pub async fn next(&mut self) -> Stop {
        let deadline = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let stop = tokio::select! {
            _ = self.terminate.recv() => Stop::Terminated,
            _ = self.interrupt.recv() => Stop::Interrupted,
            () = deadline => Stop::DeadlineExceeded,
        };
        self.stopped = Some(Instant::now());
        stop
    }

    /// A further signal: it is urgent now.
    pub async fn again(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
