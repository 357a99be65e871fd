//! Reads a machine's log and says whether the promise held: never two fences at once, never a lower one after a higher.
//!
//! Lines are written under the guard's mutex, so their order is the truth. What the guard itself says of the machine
//! (`quiet`) is not believed where another line contradicts it: a command that writes its `end` later was still there.

mod history;
mod report;

use crate::record::Record;
use history::History;

pub use report::{Place, Report, Violation, What};

/// Reads both files, the older first (empty if there is none).
pub fn read(older: &str, log: &str) -> Report {
    let mut history = History::default();
    for (file, text) in [("log.1", older), ("log", log)] {
        for (number, line) in text.lines().enumerate() {
            let place = Place { file, line: number + 1 };
            match serde_json::from_str::<Record>(line) {
                Ok(record) => history.add(place, record),
                Err(_) => history.unreadable(place, line),
            }
        }
    }
    history.report()
}

#[cfg(test)]
mod tests;
