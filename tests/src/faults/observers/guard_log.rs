//! The logs of an install's guards: the commands that began on its machines, read from the host's side as they are
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
    /// When it had ended, if it did.
    pub ended: Option<Timestamp>,
    /// The guard that wrote it down; `end` has the same.
    pid: u32,
}

/// A line of a log that matters here.
enum News {
    Begun(Mark),
    Ended { pid: u32, run: String, at: Timestamp },
}

/// The logs of an install's guards, as far as they have been read.
pub struct GuardLog {
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
    pid: u32,
    #[serde(default)]
    run: String,
    #[serde(default)]
    step: String,
}

impl GuardLog {
    /// The logs of these machines, from now on.
    pub fn new(machines: &[Machine]) -> Self {
        let logs = machines.iter().map(|machine| Tail {
            machine: machine.name().to_owned(),
            path: machine.root().join(guard::DIRECTORY.trim_start_matches('/')).join("log"),
            read: 0,
        });
        Self { logs: logs.collect(), marks: Vec::new() }
    }

    /// Reads what is new. A log that cannot be read now, on a machine that is down, is read later.
    pub fn read(&mut self) {
        for log in &mut self.logs {
            let text = log.news().unwrap_or_default();
            for news in text.lines().filter_map(|line| news(&log.machine, line)) {
                note(&mut self.marks, &log.machine, news);
            }
        }
    }

    /// The command that began last.
    pub fn latest(&self) -> Option<&Mark> {
        self.marks.iter().max_by_key(|mark| mark.at)
    }

    /// The step's first command of a run: the probes before a resumed run are none of the step's.
    pub fn entered(&self, run: &str, place: Place) -> Option<&Mark> {
        self.marks.iter().find(|mark| mark.run == run && mark.place == place && !mark.probe)
    }

    /// The step of the last command that a run began until then.
    pub fn last_of(&self, run: &str, until: Timestamp) -> Option<Place> {
        let of_run = self.marks_of(run).filter(|mark| mark.at <= until);
        of_run.max_by_key(|mark| mark.at).map(|mark| mark.place)
    }

    /// Whether a run has begun a command.
    pub fn knows(&self, run: &str) -> bool {
        self.marks_of(run).next().is_some()
    }

    /// Whether a run began a command after that time.
    pub fn goes_on(&self, run: &str, after: Timestamp) -> bool {
        self.marks_of(run).any(|mark| mark.at > after)
    }

    /// Whether a command of a run was at work at that time.
    pub fn is_at_work(&self, run: &str, at: Timestamp) -> bool {
        self.marks_of(run).any(|mark| mark.at <= at && mark.ended.is_none_or(|ended| ended > at))
    }

    /// Whether another run than this one has gone past the step.
    pub fn another_is_past(&self, run: &str, place: Place, from: Timestamp) -> bool {
        self.marks.iter().any(|mark| mark.run != run && mark.is_past(place) && mark.at >= from)
    }

    fn marks_of(&self, run: &str) -> impl Iterator<Item = &Mark> {
        self.marks.iter().filter(move |mark| mark.run == run)
    }

    /// The steps that a run was in from one time to another: a command of theirs was at work.
    pub fn steps_within(&self, run: &str, from: Timestamp, until: Timestamp) -> BTreeSet<Step> {
        self.marks_of(run)
            .filter(|mark| mark.at <= until && mark.ended.unwrap_or(mark.at) >= from)
            .map(|mark| mark.place.step)
            .collect()
    }

    /// Whether a step after this one has begun at or before the time given.
    pub fn is_past(&self, place: Place, from: Timestamp, until: Timestamp) -> bool {
        self.marks.iter().any(|mark| mark.is_past(place) && mark.at >= from && mark.at <= until)
    }
}

impl Mark {
    /// A resumed run probes steps to come, and workers prepare while the install goes on: a step of a join says nothing
    /// of one of the install.
    fn is_past(&self, place: Place) -> bool {
        !self.probe && self.place.intent == place.intent && self.place.rank() > place.rank()
    }
}

fn note(marks: &mut Vec<Mark>, machine: &str, news: News) {
    match news {
        News::Begun(mark) => marks.push(mark),
        News::Ended { pid, run, at } => {
            let its = |mark: &&mut Mark| mark.machine == machine && mark.run == run && mark.pid == pid;
            if let Some(mark) = marks.iter_mut().rev().find(its) {
                mark.ended.get_or_insert(at);
            }
        }
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

fn news(machine: &str, line: &str) -> Option<News> {
    let line: Line = serde_json::from_str(line).ok()?;
    let run = line.run.rsplit('/').next().unwrap_or_default().to_owned();
    let at: Timestamp = line.at.parse().ok()?;
    match line.event.as_str() {
        "begin" => mark(machine, run, at, &line).map(News::Begun),
        "end" => Some(News::Ended { pid: line.pid, run, at }),
        _ => None,
    }
}

fn mark(machine: &str, run: String, at: Timestamp, line: &Line) -> Option<Mark> {
    let (name, probe) = match line.step.strip_prefix("probe-") {
        // Also the name of a step.
        Some(name) if line.step != Step::ProbeHost.name() => (name, true),
        _ => (line.step.as_str(), false),
    };
    Some(Mark {
        machine: machine.to_owned(),
        place: Place { intent: intent_of(&run)?, step: Step::from_name(name)? },
        probe,
        at,
        ended: None,
        pid: line.pid,
        run,
    })
}

/// Runs that controllers make have their intent in their name: `CLUSTER-INTENT-HASH-ATTEMPT`.
fn intent_of(run: &str) -> Option<Intent> {
    let intent = run.rsplit('-').nth(2)?;
    [Intent::Install, Intent::Join, Intent::Reset].into_iter().find(|known| known.spec().slug == intent)
}

#[cfg(test)]
mod tests {
    use super::{GuardLog, Intent, News, Place, Step, Timestamp, news, note};

    fn line(event: &str, run: &str, step: &str, at: &str) -> String {
        format!(
            r#"{{"event":"{event}","at":"2026-01-01T10:00:{at}Z","monotonic":1,"run":"ns/{run}","step":"{step}","epoch":1,"token":2,"pid":3}}"#
        )
    }

    fn guard_log(lines: &[String]) -> GuardLog {
        let mut marks = Vec::new();
        for line in lines {
            note(&mut marks, "m", news("m", line).unwrap());
        }
        GuardLog { logs: Vec::new(), marks }
    }

    fn at(second: u32) -> Timestamp {
        format!("2026-01-01T10:00:{second:02}Z").parse().unwrap()
    }

    fn check(text: &str, expected: Option<(Intent, Step, bool)>) {
        let found = match news("m", text) {
            Some(News::Begun(mark)) => Some((mark.place.intent, mark.place.step, mark.probe)),
            _ => None,
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn only_commands_that_begin_leave_a_mark() {
        let run = "c-install-abc123-0";
        check(&line("begin", run, "etcd", "01.5"), Some((Intent::Install, Step::Etcd, false)));
        check(&line("begin", run, "probe-etcd", "01.5"), Some((Intent::Install, Step::Etcd, true)));
        check(&line("begin", "c-join-abc123-2", "node", "01.5"), Some((Intent::Join, Step::Node, false)));
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
        let guard_log = guard_log(&lines);
        let etcd = Place { intent: Intent::Install, step: Step::Etcd };
        assert!(!guard_log.is_past(etcd, at(1), at(8)));
        assert!(guard_log.is_past(etcd, at(1), at(9)));
        assert_eq!(guard_log.entered("c-install-a-0", etcd).map(|mark| mark.at), Some(at(1)));
        assert!(guard_log.entered("c-install-a-1", etcd).is_none());
        assert!(!guard_log.another_is_past("c-install-a-1", etcd, at(1)));
        assert!(guard_log.another_is_past("c-install-a-0", etcd, at(1)));
    }

    #[test]
    fn a_worker_that_prepares_beside_the_install_takes_none_of_its_steps_further() {
        let guard_log = guard_log(&[
            line("begin", "c-install-a-0", "post-install", "01"),
            line("begin", "c-join-b-0", "preflight", "05"),
        ]);
        let post_install = Place { intent: Intent::Install, step: Step::PostInstall };
        assert!(!guard_log.is_past(post_install, at(1), at(9)));
        assert!(!guard_log.another_is_past("c-install-a-0", post_install, at(1)));
        let bootstrap = Place { intent: Intent::Join, step: Step::BootstrapOs };
        assert!(guard_log.is_past(bootstrap, at(1), at(9)));
    }

    #[test]
    fn a_command_is_at_work_from_its_begin_to_its_end() {
        let guard_log = guard_log(&[
            line("begin", "c-install-a-0", "etcd", "01"),
            line("end", "c-install-a-0", "etcd", "03"),
            line("begin", "c-install-a-0", "network", "05"),
        ]);
        let at_work = |second| guard_log.is_at_work("c-install-a-0", at(second));
        assert_eq!([0, 1, 2, 3, 4, 5, 9].map(at_work), [false, true, true, false, false, true, true]);
        assert!(guard_log.goes_on("c-install-a-0", at(4)) && !guard_log.goes_on("c-install-a-0", at(5)));
        let steps = |from, until| guard_log.steps_within("c-install-a-0", at(from), at(until));
        assert_eq!(steps(2, 4), [Step::Etcd].into());
        assert_eq!(steps(3, 5), [Step::Etcd, Step::Network].into());
        assert_eq!(steps(4, 9), [Step::Network].into());
        let last = |second| guard_log.last_of("c-install-a-0", at(second)).map(|place| place.step);
        assert_eq!([last(0), last(4), last(9)], [None, Some(Step::Etcd), Some(Step::Network)]);
    }
}
