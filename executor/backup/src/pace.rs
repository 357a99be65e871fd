//! The most that is read from a member in a second.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Timers tick in milliseconds: below this, waiting would take longer than it should.
const SLACK: Duration = Duration::from_millis(20);
/// What was not used before may be used at once, up to this time's worth.
const BURST: Duration = Duration::from_millis(100);

/// Spreads bytes over time.
#[derive(Debug)]
pub struct Pace {
    bytes_per_second: Option<u64>,
    /// When everything that was spent so far is paid for.
    paid_at: Instant,
}

impl Pace {
    /// So many bytes a second at most; none: no limit.
    pub fn new(bytes_per_second: Option<u64>) -> Self {
        Self { bytes_per_second: bytes_per_second.filter(|rate| *rate > 0), paid_at: Instant::now() }
    }

    /// Waits until these bytes, which were just read, fit into the rate.
    pub async fn spend(&mut self, bytes: usize) {
        let Some(rate) = self.bytes_per_second else { return };
        let now = Instant::now();
        let earliest = now.checked_sub(BURST).unwrap_or(now);
        self.paid_at = self.paid_at.max(earliest) + Duration::from_secs_f64(bytes as f64 / rate as f64);
        if self.paid_at > now + SLACK {
            sleep_until(self.paid_at).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: usize = 32 * 1024;

    async fn seconds(rate: Option<u64>, messages: usize) -> f64 {
        let start = Instant::now();
        let mut pace = Pace::new(rate);
        for _ in 0..messages {
            pace.spend(MESSAGE).await;
        }
        start.elapsed().as_secs_f64()
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_holds_from_slow_to_fast_and_none_does_not_wait() {
        for (rate, messages) in [(65_536, 100), (10 << 20, 3200), (1 << 30, 320_000)] {
            let expected = (messages * MESSAGE) as f64 / rate as f64;
            let took = seconds(Some(rate), messages).await;
            assert!((expected - 0.15..expected + 0.15).contains(&took), "{rate}: {took} s of {expected} s");
        }
        for rate in [None, Some(0)] {
            assert!(seconds(rate, 1000).await < 0.001);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_nothing_came_is_not_saved_up() {
        let mut pace = Pace::new(Some(1 << 20));
        tokio::time::sleep(Duration::from_secs(60)).await;
        let start = Instant::now();
        for _ in 0..320 {
            pace.spend(MESSAGE).await;
        }
        assert!(start.elapsed() > Duration::from_millis(9800), "{:?}", start.elapsed());
    }
}
