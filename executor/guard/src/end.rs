//! `guard end`: leaves the machine as quiet as the run found it.

use guard::Fence;
use guard::at_work::Worker;
use guard::fence::Standing;
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

/// Lets nothing of this fence begin any more, then waits until nothing of it is at work. Gives the answer to print.
pub fn end(directory: &Directory, asked: End) -> Result<String, Failure> {
    only_root()?;
    let known = directory
        .highest()?
        .filter(|highest| highest.fence == asked.fence);
    let standing = known.unwrap_or_else(|| Standing {
        fence: asked.fence,
        ..Standing::default()
    });
    let mut closed = false;
    let drained = drain(
        directory,
        &standing,
        Whose::UpTo(asked.fence),
        asked.patience,
        || {
            if !closed && let Some(held) = directory.try_hold()? {
                admitted(&held, &standing)?;
                if standing.open {
                    held.remember(&Standing {
                        open: false,
                        ..standing.clone()
                    })?;
                }
                closed = true;
            }
            Ok(closed)
        },
    )?;

    let held = directory.hold()?;
    admitted(&held, &standing)?;
    held.write(Record {
        of: Some(Of::This),
        ..record(Event::Quiet, &standing, "")
    })?;
    serde_json::to_string(&Answer {
        quiet: true,
        fence: asked.fence,
        ended: drained.ended,
        waited_milliseconds: drained.waited.as_millis(),
    })
    .map_err(Failure::json)
}
