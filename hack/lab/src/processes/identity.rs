//! A process told apart from a later one that has been given its pid.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// How long a process may take to end by itself after SIGTERM.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// A process by pid and by the moment it started: a pid alone is given to others later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The process id.
    pub pid: i32,
    /// Clock ticks from the machine's start to the process's start.
    pub started: u64,
    /// Which start of the machine that was.
    pub boot: String,
}

impl Identity {
    /// The identity of the process that has this pid now.
    pub fn read(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (state, _, started) = parse_stat(&stat)?;
        (state != 'Z').then(|| Self { pid, started, boot: boot_id() })
    }

    /// Whether that very process still runs.
    pub fn alive(&self) -> bool {
        Self::read(self.pid).as_ref() == Some(self)
    }

    /// Sends a signal, unless the process is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        if !self.alive() {
            return Ok(());
        }
        match kill(Pid::from_raw(self.pid), signal) {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(errno) => Err(errno).with_context(|| format!("failed to send {signal} to process {}", self.pid)),
        }
    }

    /// Waits until the process is gone; false when it still runs after `deadline`.
    pub fn wait_gone(&self, deadline: Duration) -> bool {
        let until = Instant::now() + deadline;
        while self.alive() {
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Ends the process: SIGTERM, and SIGKILL when it does not go.
    pub fn end(&self) -> Result<()> {
        self.signal(Signal::SIGTERM)?;
        if self.wait_gone(GRACE) {
            return Ok(());
        }
        self.signal(Signal::SIGKILL)?;
        if !self.wait_gone(GRACE) {
            bail!("process {} does not end", self.pid);
        }
        Ok(())
    }

    /// The processes whose parent this one is.
    pub fn children(&self) -> Vec<Identity> {
        let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
        numbers
            .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
            .filter(|pid| {
                let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                parse_stat(&stat).is_some_and(|(_, parent, _)| parent == self.pid)
            })
            .filter_map(Identity::read)
            .collect()
    }
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// State, parent and start of a line of /proc/PID/stat; the name in it may hold blanks and brackets.
fn parse_stat(line: &str) -> Option<(char, i32, u64)> {
    let (_, rest) = line.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some((fields.first()?.chars().next()?, fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_hide_the_start_time() {
        let line = "7 (a ) (b) S 3 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 99";
        assert_eq!(parse_stat(line), Some(('S', 3, 4711)));
    }
}
