//! A clock of one's own.

use std::sync::Arc;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use plan::leader::Moment;

/// A clock that never goes back, for how long something took and nothing else.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Moment + Send + Sync>);

impl Clock {
    /// The machine's: it goes on while this process is stopped, and while the machine is suspended.
    pub fn of_the_machine() -> Self {
        // A clock that cannot be read is one by which every time is over.
        Self::new(|| Moment(clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::MAX, Duration::from)))
    }

    pub(crate) fn new(now: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// What it shows.
    pub fn now(&self) -> Moment {
        (self.0)()
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    #[test]
    fn it_goes_on() {
        let clock = Clock::of_the_machine();
        let before = clock.now();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let took = clock.now().since(before);
        assert!(took.as_millis() >= 2 && took.as_secs() < 60, "{took:?}");
    }
}
