//! What downloads show: a bar for each on a terminal, and a line for each that has ended everywhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{HumanBytes, MultiProgress, ProgressBar, ProgressStyle};

/// The lines of several downloads at once, on standard error.
#[derive(Debug, Clone)]
pub struct Progress {
    bars: Option<MultiProgress>,
}

impl Progress {
    /// Bars on a terminal, and none elsewhere.
    pub fn new() -> Self {
        Self { bars: std::io::stderr().is_terminal().then(MultiProgress::new) }
    }

    /// A bar for one piece of work, which is gone once it is dropped.
    pub fn bar(&self, name: &str) -> Bar {
        let bar = self.bars.as_ref().map(|bars| {
            let bar = bars.add(ProgressBar::no_length());
            bar.set_style(style());
            bar.set_prefix(name.to_owned());
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Bar(bar)
    }

    /// A line that stays.
    pub fn say(&self, line: &str) {
        match &self.bars {
            // An error here is one of the terminal's.
            Some(bars) => drop(bars.println(line)),
            None => eprintln!("{line}"),
        }
    }
}

/// One bar.
#[derive(Debug)]
pub struct Bar(Option<ProgressBar>);

impl Bar {
    /// Says how many bytes there are in all, and how many are there already.
    pub fn begin(&self, there: u64, length: Option<u64>) {
        if let Some(bar) = &self.0 {
            if let Some(length) = length {
                bar.set_length(length);
            }
            bar.set_position(there);
        }
    }

    /// Says that more bytes have come.
    pub fn advance(&self, bytes: usize) {
        if let Some(bar) = &self.0 {
            bar.inc(bytes as u64);
        }
    }

    /// Says what is being done.
    pub fn at(&self, what: &str) {
        if let Some(bar) = &self.0 {
            bar.set_message(what.to_owned());
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn style() -> ProgressStyle {
    let template = "{spinner} {prefix:<52} [{bar:20}] {bytes:>10}/{total_bytes:<10} {bytes_per_sec:>12} {wide_msg}";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// A number of bytes as people read it, e.g. `25.82 MiB`.
pub fn bytes(count: u64) -> String {
    HumanBytes(count).to_string()
}
