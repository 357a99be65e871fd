//! The guard as a shell: runs one command of a step, if its run still has the machine.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

use guard::fence::{Admission, FenceState, may_run};
use guard::record::{Event, Record};
use guard::{FENCED_BY, Fence, MARK};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::command_lock::{self, Turn};
use crate::failure::Failure;
use crate::journal::record;
use crate::scope;
use crate::state::Directory;

/// Where every machine has it.
const SHELL: &str = "/bin/sh";

/// Runs the command and gives its exit code.
pub fn run(directory: &Directory, fence: Fence, step: String, arguments: &[OsString]) -> Result<u8, Failure> {
    let mut shell = Command::new(SHELL);
    shell.args(arguments).env(MARK, fence.to_string()).env(FENCED_BY, directory.path());
    if geteuid().is_root() { guarded(directory, fence, &step, shell) } else { outer(directory, fence, shell) }
}

/// As somebody else than root: mostly the outer one of two shells, whose inner one runs the command as root, and
/// is guarded. So this one only looks.
fn outer(directory: &Directory, fence: Fence, mut shell: Command) -> Result<u8, Failure> {
    match may_run(directory.highest()?.as_ref(), fence) {
        Admission::Granted => Err(Failure::on("run", SHELL.as_ref())(shell.exec())),
        Admission::Refused(reason) => Err(Failure::Refused(reason)),
        Admission::Lost(reason) => Err(Failure::State(reason)),
    }
}

fn guarded(directory: &Directory, fence: Fence, step: &str, mut shell: Command) -> Result<u8, Failure> {
    // From here on, a signal is the command's: this process stays to write the end.
    let mut signals = Signals::new(taken()).map_err(Failure::on("watch signals of", SHELL.as_ref()))?;

    // Held until the end is written.
    let signaled = || signals.pending().find(|signal| *signal != SIGCHLD);
    let _turn = match command_lock::wait(directory, fence, step, signaled)? {
        Turn::Signaled(signal) => return Ok(u8::try_from(128 + signal).unwrap_or(u8::MAX)),
        turn @ (Turn::Alone { .. } | Turn::Nested | Turn::NotAdmitted) => turn,
    };
    scope::join(fence);

    let held = directory.hold()?;
    let highest = directory.highest()?;
    match may_run(highest.as_ref(), fence) {
        Admission::Granted => (),
        Admission::Refused(reason) => {
            let _ = held.write(Record {
                reason: Some(reason.clone()),
                ..record(Event::Refused, &remembered(directory, fence), step)
            });
            return Err(Failure::Refused(reason));
        }
        Admission::Lost(reason) => return Err(Failure::State(reason)),
    }
    let fence_state = highest.unwrap_or_default();
    held.write(record(Event::Begin, &fence_state, step))?;
    let started = shell.spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            let _ = held.write(ended(&fence_state, step, 127));
            return Err(Failure::on("run", SHELL.as_ref())(error));
        }
    };
    drop(held);

    let code = wait(&mut child, &mut signals);
    // The command has run: whatever becomes of this line, its exit code is the answer.
    if let Ok(held) = directory.hold() {
        let _ = held.write(ended(&fence_state, step, code));
    }
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}

fn ended(fence_state: &FenceState, step: &str, code: i32) -> Record {
    Record { rc: Some(code), ..record(Event::End, fence_state, step) }
}

/// The run that a refused command came from, as far as it is known.
fn remembered(directory: &Directory, fence: Fence) -> FenceState {
    fs::read(directory.run(fence).join("run.json"))
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_else(|| FenceState { fence, ..FenceState::default() })
}

/// The signals that are passed on; one that our caller had us ignore stays ignored, for the command as well.
fn taken() -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default();
    [SIGTERM, SIGHUP, SIGINT].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0).chain([SIGCHLD]).collect()
}

/// Passes signals on until the command has ended.
fn wait(child: &mut Child, signals: &mut Signals) -> i32 {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap_or_default());
    for signal in signals.forever() {
        if signal != SIGCHLD {
            if let Ok(signal) = Signal::try_from(signal) {
                let _ = kill(pid, signal);
            }
            continue;
        }
        match child.try_wait() {
            Ok(Some(status)) => return code_of(status),
            Ok(None) => (),
            Err(_) => break,
        }
    }
    child.wait().map_or(127, code_of)
}

/// As a shell says it.
fn code_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}
