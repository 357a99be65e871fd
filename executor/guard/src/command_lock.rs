//! The lock that the command of a run holds while it runs: the kernel frees it, whatever becomes of its guard.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use guard::Fence;
use guard::beside::{Beside, WAIT, beside};
use guard::fence::{Admission, FenceState, may_run};
use guard::process_owner::Worker;
use guard::record::{Event, Record};

use crate::failure::Failure;
use crate::journal::record;
use crate::processes::lineage;
use crate::state::Directory;

/// Beside the shells of the run; no step is called so.
const NAME: &str = "command.lock";
/// How often a command looks whether the one before it has ended.
const LOOK: Duration = Duration::from_millis(50);

/// How a command's waiting ended.
#[derive(Debug)]
pub enum Turn {
    /// No other command of the run runs while this lives.
    Alone { _lock: File },
    /// It is a part of the command that holds the lock.
    Nested,
    /// Its run has not, or no longer, the machine: there is nothing to wait for.
    NotAdmitted,
    /// It received a signal to end.
    Signaled(i32),
}

/// Waits until no other command of this run is running.
pub fn wait(
    directory: &Directory,
    fence: Fence,
    step: &str,
    mut signaled: impl FnMut() -> Option<i32>,
) -> Result<Turn, Failure> {
    let path = directory.run(fence).join(NAME);
    let since = Instant::now();
    let mut reported = false;
    let mut pause = Duration::from_millis(1);
    loop {
        let highest = directory.highest()?;
        if may_run(highest.as_ref(), fence) != Admission::Granted {
            return Ok(Turn::NotAdmitted);
        }
        if let Some(lock) = take(&path)? {
            return Ok(Turn::Alone { _lock: lock });
        }
        let holder = holder(&path);
        match beside(holder, &lineage(), since.elapsed()) {
            Beside::Nested => return Ok(Turn::Nested),
            Beside::Wait => (),
            Beside::Refuse => return Err(busy(holder, step)),
        }
        if let Some(signal) = signaled() {
            return Ok(Turn::Signaled(signal));
        }
        if !reported && let Some(holder) = holder {
            reported = report(directory, &highest.unwrap_or_default(), step, holder);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LOOK);
    }
}

fn take(path: &Path) -> Result<Option<File>, Failure> {
    let mut lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(Failure::on("open", path))?;
    match lock.try_lock() {
        Ok(()) => {
            let number = format!("{:<10}\n", std::process::id());
            lock.write_all(number.as_bytes()).map_err(Failure::on("write", path))?;
            Ok(Some(lock))
        }
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(Failure::on("lock", path)(error)),
    }
}

/// The guard that holds the lock. Between taking it and saying so it has no child yet that could ask.
fn holder(path: &Path) -> Option<i32> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn busy(holder: Option<i32>, step: &str) -> Failure {
    let process = holder.map_or(String::new(), |pid| format!(" (process {pid})"));
    Failure::Busy(format!(
        "an earlier command of this run{process} is still at work on this machine after {} s, and step {step} does not run \
         beside it",
        WAIT.as_secs()
    ))
}

/// Writes down what is waited for, unless another guard writes just now: then it is for the next look. A line that
/// cannot be written keeps no command from its turn.
fn report(directory: &Directory, fence_state: &FenceState, step: &str, holder: i32) -> bool {
    let held = match directory.try_hold() {
        Ok(Some(held)) => held,
        Ok(None) => return false,
        Err(_) => return true,
    };
    let before = Worker { pid: holder, command: String::new(), fence: fence_state.fence.to_string() };
    let _ = held.write(Record { processes: vec![before], ..record(Event::Waits, fence_state, step) });
    true
}
