//! The machine's clocks, as the log has them.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

/// Now, as RFC 3339 with milliseconds.
pub fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    rfc3339(since.as_secs(), since.subsec_millis())
}

/// Nanoseconds of the monotonic clock.
pub fn monotonic() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .ok()
        .and_then(|time| u64::try_from(time.tv_sec() * 1_000_000_000 + time.tv_nsec()).ok())
        .unwrap_or_default()
}

/// Which start of the machine this is. The kernel's word changes with a reboot of a machine, the start of the first
/// process also with that of a container.
pub fn boot() -> String {
    let kernel = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let first = fs::read_to_string("/proc/1/stat").unwrap_or_default();
    // The name, in brackets, may hold anything; the start is the 20th field after it.
    let start = first.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19));
    let kernel = kernel.get(..8).unwrap_or_default();
    format!("{kernel}-{}", start.unwrap_or_default())
}

fn rfc3339(seconds: u64, milliseconds: u32) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// The date so many days after 1970-01-01: years counted from March, so that the leap day is a year's last.
fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468; // since 0000-03-01
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_everybody_reads_it() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_399, "2000-02-28T23:59:59.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (1_709_210_096, "2024-02-29T12:34:56.007Z"),
            (4_107_542_399, "2100-02-28T23:59:59.007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.007Z"),
        ] {
            assert_eq!(rfc3339(seconds, 7), text);
        }
    }

    #[test]
    fn a_machine_knows_which_start_this_is() {
        assert!(boot().len() > 9, "{}", boot());
        assert_eq!(boot(), boot());
    }
}
