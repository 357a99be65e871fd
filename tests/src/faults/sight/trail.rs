//! The trail of an install: the commands that the guards of its machines began, read from the host's side as they are
//! written, so that a fault can strike within a step that lasts half a second.

use std::collections::BTreeSet;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use crds::step::{Intent, Step};
use jiff::Timestamp;
use lab::machines::Machine;
use serde::Deserialize;

use crate::faults::fault::Place;

/// A command that began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The machine.
    pub machine: String,
    /// The run, without its namespace.
    pub run: String,
    /// The run's intent and the step.
    pub place: Place,
    /// Whether it belongs to the step's probe.
    pub probe: bool,
    /// When.
    pub at: Timestamp,
}

/// The logs of an install's guards, as far as they have been read.
pub struct Trail {
    logs: Vec<Tail>,
    marks: Vec<Mark>,
}

struct Tail {
    machine: String,
    path: PathBuf,
    read: u64,
}

/// What is needed of a line.
#[derive(Deserialize)]
struct Line {
    event: String,
    at: String,
    #[serde(default)]
    run: String,
    #[serde(default)]
    step: String,
}

impl Trail {
    /// The trail of these machines, from now on.
    pub fn of(machines: &[Machine]) -> Self {
        let logs = machines.iter().map(|machine| Tail {
            machine: machine.name().to_owned(),
            path: machine
                .root()
                .join(guard::DIRECTORY.trim_start_matches('/'))
                .join("log"),
            read: 0,
        });
        Self {
            logs: logs.collect(),
            marks: Vec::new(),
        }
    }

    /// Reads what is new. A log that cannot be read now, on a machine that is down, is read later.
    pub fn read(&mut self) {
        for log in &mut self.logs {
            let text = log.news().unwrap_or_default();
            self.marks
                .extend(text.lines().filter_map(|line| mark(&log.machine, line)));
        }
    }

    /// The command that began last.
    pub fn latest(&self) -> Option<&Mark> {
        self.marks.iter().max_by_key(|mark| mark.at)
    }

    /// The step's first command of a run: the probes before a resumed run are none of the step's.
    pub fn entered(&self, run: &str, place: Place) -> Option<&Mark> {
        self.marks
            .iter()
            .find(|mark| mark.run == run && mark.place == place && !mark.probe)
    }

    /// The steps that a run was in from one time to another.
    pub fn steps_within(&self, run: &str, from: Timestamp, until: Timestamp) -> BTreeSet<Step> {
        let within = |mark: &&Mark| mark.run == run && mark.at >= from && mark.at <= until;
        self.marks
            .iter()
            .filter(within)
            .map(|mark| mark.place.step)
            .collect()
    }

    /// Whether a step after this one has begun at or before the time given.
    pub fn is_past(&self, place: Place, from: Timestamp, until: Timestamp) -> bool {
        let later = |mark: &&Mark| !mark.probe && mark.place.rank() > place.rank();
        self.marks
            .iter()
            .filter(later)
            .any(|mark| mark.at >= from && mark.at <= until)
    }
}

impl Tail {
    fn news(&mut self) -> std::io::Result<String> {
        let mut file = std::fs::File::open(&self.path)?;
        if file.metadata()?.len() < self.read {
            // Rotated: what is new is all of it.
            self.read = 0;
        }
        file.seek(SeekFrom::Start(self.read))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // A line that is being written is read when it is whole.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        text.truncate(whole);
        self.read += whole as u64;
        Ok(text)
    }
}

fn mark(machine: &str, line: &str) -> Option<Mark> {
    let line: Line = serde_json::from_str(line).ok()?;
    if line.event != "begin" {
        return None;
    }
    let (name, probe) = match line.step.strip_prefix("probe-") {
        // Also the name of a step.
        Some(name) if line.step != Step::ProbeHost.name() => (name, true),
        _ => (line.step.as_str(), false),
    };
    let run = line.run.rsplit('/').next().unwrap_or_default().to_owned();
    Some(Mark {
        machine: machine.to_owned(),
        place: Place {
            intent: intent_of(&run)?,
            step: Step::from_name(name)?,
        },
        probe,
        at: line.at.parse().ok()?,
        run,
    })
}

/// Runs that controllers make have their intent in their name: `CLUSTER-INTENT-HASH-ATTEMPT`.
fn intent_of(run: &str) -> Option<Intent> {
    let intent = run.rsplit('-').nth(2)?;
    [Intent::Install, Intent::Join, Intent::Reset]
        .into_iter()
        .find(|known| known.slug() == intent)
}

#[cfg(test)]
mod tests {
    use super::{Intent, Place, Step, Timestamp, Trail, mark};

    fn line(event: &str, run: &str, step: &str, at: &str) -> String {
        format!(
            r#"{{"event":"{event}","at":"2026-01-01T10:00:{at}Z","monotonic":1,"run":"ns/{run}","step":"{step}","epoch":1,"token":2,"pid":3}}"#
        )
    }

    fn check(text: &str, expected: Option<(Intent, Step, bool)>) {
        let found = mark("m", text).map(|mark| (mark.place.intent, mark.place.step, mark.probe));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn only_commands_that_begin_leave_a_mark() {
        let run = "c-install-abc123-0";
        check(
            &line("begin", run, "etcd", "01.5"),
            Some((Intent::Install, Step::Etcd, false)),
        );
        check(
            &line("begin", run, "probe-etcd", "01.5"),
            Some((Intent::Install, Step::Etcd, true)),
        );
        check(
            &line("begin", "c-join-abc123-2", "node", "01.5"),
            Some((Intent::Join, Step::Node, false)),
        );
        check(&line("end", run, "etcd", "01.5"), None);
        check(&line("begin", "by-hand", "etcd", "01.5"), None);
        check(&line("begin", run, "", "01.5"), None);
        check("{\"event\":\"beg", None);
    }

    #[test]
    fn a_step_is_past_when_a_later_one_begins_and_probes_of_a_resumed_run_do_not_count() {
        let lines = [
            line("begin", "c-install-a-0", "etcd", "01"),
            line("begin", "c-install-a-1", "probe-network", "05"),
            line("begin", "c-install-a-1", "control-plane", "09"),
        ];
        let trail = Trail {
            logs: Vec::new(),
            marks: lines.iter().filter_map(|line| mark("m", line)).collect(),
        };
        let at = |second: u32| -> Timestamp { format!("2026-01-01T10:00:{second:02}Z").parse().unwrap() };
        let etcd = Place {
            intent: Intent::Install,
            step: Step::Etcd,
        };
        assert!(!trail.is_past(etcd, at(1), at(8)));
        assert!(trail.is_past(etcd, at(1), at(9)));
        assert_eq!(
            trail.entered("c-install-a-0", etcd).map(|mark| mark.at),
            Some(at(1))
        );
        assert!(trail.entered("c-install-a-1", etcd).is_none());
    }
}
