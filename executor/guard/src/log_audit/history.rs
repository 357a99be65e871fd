//! The state of a machine after the lines so far.

use std::collections::BTreeMap;

use super::report::{Place, Report, Violation, What};
use crate::record::{Event, Of, Open, Record};

/// A command whose guard began it.
#[derive(Debug)]
struct Command {
    place: Place,
    open: Open,
}

/// The lines so far.
#[derive(Debug, Default)]
pub(super) struct History {
    report: Report,
    boot: String,
    /// By process.
    running: BTreeMap<u32, Command>,
    /// Commands that a `quiet` line reported gone, with the fence that reported it.
    gone: BTreeMap<u32, (Command, crate::Fence)>,
    /// Whether any line was read: the first may tell what went before.
    begun: bool,
    /// Unreadable lines whose next readable line has not come yet.
    doubtful: Vec<Violation>,
}

impl History {
    pub(super) fn add(&mut self, place: Place, record: Record) {
        if record.boot != self.boot {
            // Nothing survives a restart of the machine, and the last line may have been cut.
            if self.begun {
                let torn = self.doubtful.drain(..).map(|violation| violation.place);
                self.report.torn.extend(torn);
            }
            self.running.clear();
            self.gone.clear();
            self.boot.clone_from(&record.boot);
        }
        self.report.violations.append(&mut self.doubtful);
        match record.event {
            Event::Raised => self.raised(place, &record),
            Event::Begin => self.command(place, &record),
            Event::End => self.end(place, &record),
            Event::Ended => {
                for process in &record.processes {
                    let pid = u32::try_from(process.pid).unwrap_or_default();
                    if let Some(command) = self.running.get_mut(&pid) {
                        command.open.ended = true;
                    }
                }
            }
            Event::Quiet => self.quiet(place, &record),
            Event::Refused => self.report.refused.push(place),
            Event::Rotated => self.rotated(place, &record),
            Event::Waits => (),
        }
        self.begun = true;
    }

    pub(super) fn unreadable(&mut self, place: Place, line: &str) {
        let text = line.chars().take(80).collect();
        self.doubtful.push(Violation { place, what: What::Unreadable { text } });
    }

    pub(super) fn report(mut self) -> Report {
        self.report.violations.append(&mut self.doubtful);
        self.report.open = self.running.into_values().map(|command| command.open).collect();
        self.report
    }

    fn violation(&mut self, place: Place, what: What) {
        self.report.violations.push(Violation { place, what });
    }

    fn raised(&mut self, place: Place, record: &Record) {
        match self.report.highest {
            Some(highest) if record.fence < highest => {
                let fence = record.fence;
                self.violation(place, What::Down { fence, highest });
            }
            // The same one again: its run begins again.
            _ => {
                self.report.highest = Some(record.fence);
                self.report.quiet = false;
            }
        }
    }

    fn command(&mut self, place: Place, record: &Record) {
        let fence = record.fence;
        self.report.commands += 1;
        match self.report.highest {
            Some(highest) if fence < highest => self.violation(place, What::Down { fence, highest }),
            Some(highest) if fence == highest => {
                if !self.report.quiet {
                    self.violation(place, What::NotQuiet { fence });
                }
            }
            _ => self.violation(place, What::NotRaised { fence }),
        }
        let others: Vec<What> = self
            .running
            .values()
            .filter(|other| other.open.fence != fence)
            .map(|other| What::Overlap { fence: other.open.fence, pid: other.open.pid, with: fence })
            .collect();
        for what in others {
            self.violation(place, what);
        }
        let open = Open { pid: record.pid, fence, boot: record.boot.clone(), step: record.step.clone(), ended: false };
        let command = Command { place, open };
        // The same process number again: whoever had it is gone.
        self.gone.remove(&record.pid);
        if let Some(earlier) = self.running.insert(record.pid, command) {
            self.unfinished(&earlier);
        }
    }

    fn end(&mut self, place: Place, record: &Record) {
        let (fence, pid) = (record.fence, record.pid);
        match self.running.remove(&pid) {
            Some(command) if command.open.fence == fence => return,
            Some(other) => {
                self.running.insert(pid, other);
            }
            None => (),
        }
        match self.gone.remove(&pid) {
            Some((command, with)) if command.open.fence == fence => {
                self.violation(place, What::Overlap { fence, pid, with });
            }
            _ => self.violation(place, What::NotBegun { fence, pid }),
        }
    }

    fn quiet(&mut self, place: Place, record: &Record) {
        let fence = record.fence;
        let of_this = record.of == Some(Of::This);
        match self.report.highest {
            Some(highest) if fence < highest => self.violation(place, What::Down { fence, highest }),
            Some(highest) if fence == highest && !of_this => self.report.quiet = true,
            _ => (),
        }
        let gone: Vec<u32> = self
            .running
            .values()
            .filter(|command| command.open.fence < fence || (of_this && command.open.fence == fence))
            .map(|command| command.open.pid)
            .collect();
        for pid in gone {
            if let Some(command) = self.running.remove(&pid) {
                self.unfinished(&command);
                self.gone.insert(pid, (command, fence));
            }
        }
    }

    fn unfinished(&mut self, command: &Command) {
        if !command.open.ended {
            let what =
                What::Unfinished { fence: command.open.fence, pid: command.open.pid, step: command.open.step.clone() };
            self.violation(command.place, what);
        }
    }

    fn rotated(&mut self, place: Place, record: &Record) {
        if !self.begun {
            self.report.highest = record.highest;
            self.report.quiet = record.of == Some(Of::Lower);
            for open in record.open.iter().filter(|open| open.boot == record.boot) {
                let command = Command { place, open: open.clone() };
                self.running.insert(open.pid, command);
            }
        } else if record.highest < self.report.highest {
            let (fence, highest) = (record.highest, self.report.highest);
            if let (fence, Some(highest)) = (fence.unwrap_or_default(), highest) {
                self.violation(place, What::Down { fence, highest });
            }
        }
    }
}
