//! Moments: what comes after one. Anyone may have written the moment; one at the end of time has none after it, and
//! that is no reason to stop.

use jiff::{SignedDuration, Timestamp};

/// The moment so long after another; the last one there is where that is too late.
pub fn after(moment: Timestamp, wait: SignedDuration) -> Timestamp {
    moment.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

/// The day and its time, as they stand in messages: `2026-01-02 14:03:09 UTC`.
pub fn day_and_clock(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// The time of day, as it stands in messages: `14:03:09 UTC`.
pub fn clock(at: Timestamp) -> String {
    at.strftime("%H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::after;
    use jiff::{SignedDuration, Timestamp};

    #[test]
    fn nothing_comes_after_the_last_moment_there_is() {
        let check = |from: Timestamp, seconds: i64, expected: Timestamp| {
            assert_eq!(after(from, SignedDuration::from_secs(seconds)), expected);
        };
        let epoch = Timestamp::UNIX_EPOCH;
        check(epoch, 60, Timestamp::from_second(60).unwrap());
        check(Timestamp::MAX, 60, Timestamp::MAX);
        check("9999-12-30T00:00:00Z".parse().unwrap(), i64::MAX, Timestamp::MAX);
    }
}
