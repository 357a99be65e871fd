//! What long work shows: a bar with the time it has taken, or plain lines where no terminal is.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// The lines of several tasks that go on at once.
#[derive(Debug, Clone)]
pub struct Progress {
    bars: Option<MultiProgress>,
}

impl Progress {
    /// Bars on a terminal, plain lines elsewhere; both on standard error.
    pub fn new() -> Self {
        Self { bars: std::io::stderr().is_terminal().then(MultiProgress::new) }
    }

    /// Starts a task of unknown length.
    pub fn task(&self, name: impl Into<String>) -> Task {
        self.start(name.into(), None)
    }

    /// Starts a task of `length` parts.
    pub fn counted(&self, name: impl Into<String>, length: usize) -> Task {
        self.start(name.into(), Some(length as u64))
    }

    fn start(&self, name: String, length: Option<u64>) -> Task {
        let bar = match &self.bars {
            None => {
                eprintln!("{name} ...");
                None
            }
            Some(bars) => {
                let bar = bars.add(length.map_or_else(ProgressBar::new_spinner, ProgressBar::new));
                bar.set_style(style(length.is_some()));
                bar.set_prefix(name.clone());
                bar.enable_steady_tick(Duration::from_millis(250));
                Some(bar)
            }
        };
        Task { name, bar, since: Instant::now(), ended: false }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

/// One piece of work on display. Dropped before `done`, it shows as failed.
#[derive(Debug)]
pub struct Task {
    name: String,
    bar: Option<ProgressBar>,
    since: Instant,
    ended: bool,
}

impl Task {
    /// Says what the task is at.
    pub fn at(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(one_line(what));
        }
    }

    /// Says that one part of a counted task is over.
    pub fn advance(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Ends the task well.
    pub fn done(mut self) {
        self.end("done");
    }

    fn end(&mut self, how: &str) {
        self.ended = true;
        let line = format!("{}: {how} in {}", self.name, seconds(self.since.elapsed()));
        match &self.bar {
            None => eprintln!("{line}"),
            Some(bar) => {
                // The bar's line goes and a plain one stays, so that a long list does not push bars off the screen.
                bar.println(line);
                bar.finish_and_clear();
            }
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if !self.ended {
            self.end("FAILED");
        }
    }
}

fn style(counted: bool) -> ProgressStyle {
    let template = if counted {
        "{spinner} {prefix:<34} {elapsed:>5} [{bar:20}] {pos}/{len} {wide_msg}"
    } else {
        "{spinner} {prefix:<34} {elapsed:>5} {wide_msg}"
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// A duration as people read it: `0.4 s`, `12.3 s`, `4 min 40 s`.
pub fn seconds(duration: Duration) -> String {
    let whole = duration.as_secs();
    if whole < 60 { format!("{:.1} s", duration.as_secs_f64()) } else { format!("{} min {} s", whole / 60, whole % 60) }
}

fn one_line(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_people_say_them() {
        assert_eq!(seconds(Duration::from_millis(440)), "0.4 s");
        assert_eq!(seconds(Duration::from_secs(280)), "4 min 40 s");
    }

    #[test]
    fn control_characters_of_a_tool_do_not_reach_the_terminal() {
        assert_eq!(one_line("a\x1b[2Jb\n"), "a [2Jb ");
    }
}
