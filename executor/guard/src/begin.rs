//! `guard begin`: takes the machine for a run.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use guard::Fence;
use guard::comparison::Comparison;
use guard::fence::{Admission, FenceState, is_as_left, may_begin};
use guard::process_owner::Worker;
use guard::record::{Event, Of, Record};
use nix::sys::stat::{Mode, umask};
use nix::unistd::geteuid;
use serde::Serialize;

use crate::arguments::Begin;
use crate::drain::{Whose, drain};
use crate::failure::Failure;
use crate::journal::record;
use crate::state::{Directory, Held, replace};

/// Runs before this many stay known, so that what still comes from them is refused in words. Of a run before these, the
/// shell says that there is no such file: nothing is run either way.
const REMEMBERED: usize = 8;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(flatten)]
    fence: Fence,
    ended: Vec<Worker>,
    waited_milliseconds: u128,
}

/// Raises the fence, waits until the machine is quiet, and opens the run's shells. Returns the answer to print.
pub fn begin(directory: &Directory, asked: &Begin) -> Result<String, Failure> {
    only_root()?;
    umask(Mode::from_bits_truncate(0o022));
    let fence_state = &asked.fence_state;
    let mut raised = false;
    let drained = drain(directory, fence_state, Whose::Below(fence_state.fence), asked.grace_period, || {
        is_expected(directory, asked)?;
        admit(directory, asked)?;
        if !raised && let Some(held) = directory.try_hold()? {
            is_expected(directory, asked)?;
            raise(&held, asked)?;
            raised = true;
        }
        Ok(raised)
    })?;

    let held = directory.hold()?;
    admitted(&held, fence_state, &asked.comparisons)?;
    forget_old_runs(directory, fence_state.fence)?;
    make_shells(directory, fence_state, &asked.steps)?;
    held.write(Record { of: Some(Of::Lower), ..record(Event::Quiet, fence_state, "") })?;
    held.remember(&FenceState { open: true, ..fence_state.clone() })?;
    serde_json::to_string(&Answer {
        fence: fence_state.fence,
        ended: drained.ended,
        waited_milliseconds: drained.waited.as_millis(),
    })
    .map_err(Failure::json)
}

/// Fails unless run by root: only root changes a machine's state.
pub fn only_root() -> Result<(), Failure> {
    if geteuid().is_root() { Ok(()) } else { Err(Failure::State("only root begins and ends runs".to_owned())) }
}

/// Before anything else: nothing is ended or raised on a machine that is not the one that was meant.
fn is_expected(directory: &Directory, asked: &Begin) -> Result<(), Failure> {
    let Some(epoch) = asked.expected_epoch else {
        return Ok(());
    };
    is_as_left(directory.highest()?.as_ref(), &asked.fence_state, epoch).map_err(Failure::Differs)
}

/// Looks without the mutex, since what has to be ended may hold it: an overtaken run goes as soon as it sees that.
fn admit(directory: &Directory, asked: &Begin) -> Result<(), Failure> {
    let (fence_state, comparisons) = (&asked.fence_state, &asked.comparisons);
    match may_begin(directory.highest()?.as_ref(), fence_state, comparisons) {
        Admission::Granted => Ok(()),
        Admission::Refused(_) | Admission::Lost(_) => admitted(&directory.hold()?, fence_state, comparisons),
    }
}

/// Looks under the mutex, and writes down a refusal.
pub fn admitted(held: &Held, fence_state: &FenceState, comparisons: &[Comparison]) -> Result<(), Failure> {
    match may_begin(held.directory.highest()?.as_ref(), fence_state, comparisons) {
        Admission::Granted => Ok(()),
        Admission::Refused(reason) | Admission::Lost(reason) => {
            // Refused all the same if it cannot be written down.
            let _ = held.write(Record { reason: Some(reason.clone()), ..record(Event::Refused, fence_state, "") });
            Err(Failure::Refused(reason))
        }
    }
}

fn raise(held: &Held, asked: &Begin) -> Result<(), Failure> {
    let fence_state = &asked.fence_state;
    admitted(held, fence_state, &asked.comparisons)?;
    let highest = held.directory.highest()?;
    if highest.as_ref().is_none_or(|highest| highest.fence < fence_state.fence) {
        held.remember(fence_state)?;
    } else if highest.is_some_and(|highest| highest.open) {
        // Again, by the same run: its commands are let through already.
        return Ok(());
    }
    // After the fact: had the guard died between the two, this would be written by the run's next begin.
    held.write(record(Event::Raised, fence_state, ""))
}

/// A link for each step and each probe: their names are what the log calls the commands.
fn make_shells(directory: &Directory, fence_state: &FenceState, steps: &[String]) -> Result<(), Failure> {
    let place = directory.run(fence_state.fence);
    fs::create_dir_all(&place).map_err(Failure::on("make", &place))?;
    for step in steps {
        for name in [step.clone(), format!("probe-{step}")] {
            let link = place.join(name);
            match symlink("../../guard", &link) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                made => made.map_err(Failure::on("make", &link))?,
            }
        }
    }
    let run = FenceState { open: true, ..fence_state.clone() };
    let text = serde_json::to_string(&run).map_err(Failure::json)?;
    replace(&place.join("run.json"), &(text + "\n"))
}

fn forget_old_runs(directory: &Directory, fence: Fence) -> Result<(), Failure> {
    let place = directory.runs();
    fs::create_dir_all(&place).map_err(Failure::on("make", &place))?;
    let lower: BTreeMap<Fence, PathBuf> = fs::read_dir(&place)
        .map_err(Failure::on("read", &place))?
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .filter(|(of, _)| *of < fence)
        .collect();
    for path in lower.into_values().rev().skip(REMEMBERED) {
        fs::remove_dir_all(&path).map_err(Failure::on("remove", &path))?;
    }
    Ok(())
}
