//! The times of a Lease, and moments on a clock of one's own.

use std::ops::Add;
use std::time::Duration;

/// A moment on a clock of one's own, which never goes back: the time since whenever that clock began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub Duration);

impl Moment {
    /// How long it is from `earlier` to this one; nothing when it was before.
    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;
    fn add(self, more: Duration) -> Moment {
        Moment(self.0.saturating_add(more))
    }
}

/// How long is waited for what: longest for a silent holder, less for one's own renewals, least between two tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    lease: Duration,
    renew_deadline: Duration,
    retry: Duration,
}

/// Times that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the lease's duration ({lease} s) must be longer than the renew deadline ({renew_deadline} s), and that longer than \
     the retry period ({retry} s), which is at least 1 s"
)]
pub struct Unordered {
    lease: u64,
    renew_deadline: u64,
    retry: u64,
}

impl Times {
    /// In seconds.
    pub fn of_seconds(lease: u64, renew_deadline: u64, retry: u64) -> Result<Self, Unordered> {
        if lease > renew_deadline && renew_deadline > retry && retry > 0 {
            Ok(Self {
                lease: Duration::from_secs(lease),
                renew_deadline: Duration::from_secs(renew_deadline),
                retry: Duration::from_secs(retry),
            })
        } else {
            Err(Unordered { lease, renew_deadline, retry })
        }
    }

    /// How long a holder may be silent before another one takes the Lease.
    pub fn lease(&self) -> Duration {
        self.lease
    }

    /// How long after its last renewal a holder still acts.
    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// The time between two tries, spread by `chance` (0 to 1) over its last fifth.
    pub fn retry(&self, chance: f64) -> Duration {
        self.retry.mul_f64(0.8 + 0.2 * chance.clamp(0.0, 1.0))
    }

    /// The duration that the Lease itself names, as its holder counts by that; our own when it names none.
    pub(super) fn lease_or(&self, seconds: Option<u64>) -> Duration {
        seconds.filter(|seconds| *seconds > 0).map_or(self.lease, Duration::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::Times;
    use std::time::Duration;

    #[test]
    fn times_that_cannot_work_are_refused() {
        assert!(Times::of_seconds(15, 10, 2).is_ok());
        for (lease, renew, retry) in [(10, 10, 2), (15, 2, 2), (15, 10, 0)] {
            let error = Times::of_seconds(lease, renew, retry).unwrap_err().to_string();
            assert!(error.contains(&format!("({lease} s)")), "{error}");
        }
    }

    #[test]
    fn tries_are_spread_and_never_further_apart_than_the_retry_period() {
        let times = Times::of_seconds(15, 10, 2).unwrap();
        assert_eq!(times.retry(0.0), Duration::from_millis(1600));
        assert_eq!(times.retry(9.0), Duration::from_secs(2));
    }
}
