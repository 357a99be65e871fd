//! The processes below us. As PID 1 (and as a subreaper from a shell) we inherit what Ansible leaves behind,
//! ssh's masters above all: they are reaped here, and those that we wait for elsewhere are left to tokio.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

/// Orphans are looked for at each SIGCHLD, and after this time in case one was missed.
const ROUND: Duration = Duration::from_secs(5);

/// Children that somebody waits for. One for the process: a reaper sees all of its children.
static OURS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn ours() -> MutexGuard<'static, BTreeSet<i32>> {
    OURS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A child that is waited for; the reaper leaves it alone.
#[derive(Debug)]
pub struct Waited {
    child: Child,
    pid: i32,
}

/// Makes orphans ours and reaps them from now on.
pub fn reap_orphans() -> io::Result<()> {
    nix::sys::prctl::set_child_subreaper(true)?;
    let mut ended = signal(SignalKind::child())?;
    tokio::spawn(async move {
        loop {
            // A timeout is a round without a signal.
            let _ = tokio::time::timeout(ROUND, ended.recv()).await;
            reap();
        }
    });
    Ok(())
}

/// Starts a command as the leader of its own process group.
pub fn spawn(command: &mut Command) -> io::Result<Waited> {
    // Held while it starts: a child that ends at once is not taken for an orphan.
    let mut ours = ours();
    let child = command.process_group(0).kill_on_drop(true).spawn()?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
    ours.insert(pid);
    Ok(Waited { child, pid })
}

fn reap() {
    let ours = ours();
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    while let Ok(status) = waitid(Id::All, look) {
        let pid = match status {
            WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, _, _) => pid,
            _ => return,
        };
        // Ours is the first in line until tokio has taken it: the next round sees what is behind it.
        if ours.contains(&pid.as_raw()) || waitpid(pid, Some(WaitPidFlag::WNOHANG)).is_err() {
            return;
        }
    }
}

impl Waited {
    /// The child.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Sends a signal to its whole process group.
    pub fn signal(&self, signal: Signal) {
        if self.pid > 1
            && let Err(error) = killpg(Pid::from_raw(self.pid), signal)
        {
            tracing::debug!(%error, "failed to signal the process group");
        }
    }
}

impl Drop for Waited {
    fn drop(&mut self) {
        ours().remove(&self.pid);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use tokio::process::Command;

    use super::{reap_orphans, spawn};

    #[tokio::test]
    async fn orphans_are_reaped_and_children_keep_their_exit_code() {
        reap_orphans().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("orphan");
        // The inner shell outlives the outer one and becomes ours.
        let script = format!(
            "sh -c 'echo $$ > {0}; sleep 0.3' & while [ ! -s {0} ]; do sleep 0.01; done; exit 7",
            file.display()
        );
        let mut waited = spawn(Command::new("sh").args(["-c", &script])).unwrap();
        assert_eq!(waited.child().wait().await.unwrap().code(), Some(7));
        drop(waited);
        let orphan = std::fs::read_to_string(&file).unwrap().trim().to_owned();
        let begun = Instant::now();
        while std::path::Path::new("/proc").join(&orphan).exists() {
            assert!(begun.elapsed() < Duration::from_secs(10), "the orphan {orphan} is still there");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    #[tokio::test]
    async fn a_child_that_ends_at_once_is_not_lost() {
        reap_orphans().unwrap();
        for code in 0..20 {
            let mut waited = spawn(Command::new("sh").args(["-c", &format!("exit {code}")])).unwrap();
            assert_eq!(waited.child().wait().await.unwrap().code(), Some(code));
        }
    }
}
