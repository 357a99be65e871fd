//! `guard end`: leaves the machine as quiet as the run found it.

use guard::Fence;
use guard::fence::FenceState;
use guard::process_owner::Worker;
use guard::record::{Event, Of, Record};
use serde::Serialize;

use crate::arguments::End;
use crate::begin::{admitted, only_root};
use crate::drain::{Whose, drain};
use crate::failure::Failure;
use crate::journal::record;
use crate::state::Directory;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    quiet: bool,
    #[serde(flatten)]
    fence: Fence,
    ended: Vec<Worker>,
    waited_milliseconds: u128,
}

/// Closes this fence, waits until no process of it is left, and returns the answer to print.
pub fn end(directory: &Directory, asked: &End) -> Result<String, Failure> {
    only_root()?;
    let known = directory.highest()?.filter(|highest| highest.fence == asked.fence);
    let unknown = FenceState { fence: asked.fence, ..FenceState::default() };
    let mut fence_state = known.unwrap_or(unknown);
    if !asked.uid.is_empty() {
        // Compared with the run that has the machine, once it is held.
        fence_state.uid.clone_from(&asked.uid);
    }
    let mut closed = false;
    let drained = drain(directory, &fence_state, Whose::UpTo(asked.fence), asked.grace_period, || {
        if !closed && let Some(held) = directory.try_hold()? {
            admitted(&held, &fence_state, &[])?;
            if fence_state.open {
                held.remember(&FenceState { open: false, ..fence_state.clone() })?;
            }
            closed = true;
        }
        Ok(closed)
    })?;

    let held = directory.hold()?;
    admitted(&held, &fence_state, &[])?;
    held.write(Record { of: Some(Of::This), ..record(Event::Quiet, &fence_state, "") })?;
    serde_json::to_string(&Answer {
        quiet: true,
        fence: asked.fence,
        ended: drained.ended,
        waited_milliseconds: drained.waited.as_millis(),
    })
    .map_err(Failure::json)
}
