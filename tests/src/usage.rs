//! What processes of this machine use of it, as `/proc` has it.

use std::fs;

use anyhow::{Context, Result};

/// Ticks of a processor's clock in `/proc`: Linux gives programs 100 a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// What a process has used since it began, and what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Processor time.
    pub seconds: f64,
    /// Memory that is resident.
    pub mib: f64,
}

/// What a process has used so far; an error if it is gone.
pub fn usage(pid: u32) -> Result<Usage> {
    let read = |file: &str| {
        let path = format!("/proc/{pid}/{file}");
        fs::read_to_string(&path).with_context(|| format!("failed to read {path}"))
    };
    let seconds = processor_seconds(&read("stat")?).context("no processor time in /proc")?;
    let mib = resident_mib(&read("status")?).context("no resident memory in /proc")?;
    Ok(Usage { seconds, mib })
}

/// Whether a process still runs; one that has ended and was not waited for does not.
pub fn is_running(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| state(&stat).is_some_and(|state| state != "Z"))
}

/// Processor time of all processors of this machine so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Machine {
    idle: f64,
    all: f64,
}

impl Machine {
    /// As it is now.
    pub fn now() -> Result<Self> {
        Self::read(&fs::read_to_string("/proc/stat")?).context("no processors in /proc/stat")
    }

    /// user, nice, system, idle, iowait, irq, softirq and steal of all processors; waiting for a disk is idle.
    fn read(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks = line.split_whitespace().take(8).map(str::parse).collect::<Result<Vec<f64>, _>>().ok()?;
        Some(Self { idle: ticks.get(3)? + ticks.get(4)?, all: ticks.iter().sum() })
    }

    /// How much of a hundred was idle since then.
    pub fn idle_percent_since(&self, before: &Self) -> f64 {
        100.0 * (self.idle - before.idle) / (self.all - before.all).max(1.0)
    }
}

/// The first field after the program's name.
fn state(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().next()
}

/// utime and stime: the 12th and 13th field after the program's name.
fn processor_seconds(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = |number: usize| fields.split_whitespace().nth(number)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}

/// Of one that has ended and was not waited for, nothing is resident.
fn resident_mib(status: &str) -> Option<f64> {
    let Some(line) = status.lines().find_map(|line| line.strip_prefix("VmRSS:")) else {
        return status.contains("zombie").then_some(0.0);
    };
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::{Machine, is_running, processor_seconds, resident_mib, state};

    #[test]
    fn a_process_that_has_ended_does_not_run() {
        assert!(is_running(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(!is_running(child.id()));
        assert_eq!(state("7 (a) b) Z 1 7"), Some("Z"));
    }

    #[test]
    fn processor_time_is_found_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 500 0 0 0 250 50 0 0 20 0 9 0 100 1 1";
        assert_eq!(processor_seconds(stat), Some(3.0));
        assert_eq!(processor_seconds("7 (a) S 1"), None);
    }

    #[test]
    fn memory_is_told_in_mib_and_of_one_that_has_ended_there_is_none() {
        assert_eq!(resident_mib("Name:\ta\nVmRSS:\t    2048 kB\n"), Some(2.0));
        assert_eq!(resident_mib("Name:\ta\nState:\tZ (zombie)\n"), Some(0.0));
        assert_eq!(resident_mib("Name:\ta\n"), None);
    }

    #[test]
    fn what_waits_for_a_disk_is_idle() {
        let before = Machine::read("cpu  100 0 100 100 100 0 0 0 0 0\ncpu0 1 1 1 1\n").unwrap();
        let after = Machine::read("cpu  160 10 110 130 190 0 0 0 0 0\n").unwrap();
        assert_eq!(after.idle_percent_since(&before), 60.0);
        assert_eq!(after.idle_percent_since(&after), 0.0);
        assert_eq!(Machine::read("intr 1"), None);
    }
}
