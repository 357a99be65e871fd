//! Maintenance windows: whether one is open, and when the next one opens.

use crds::Reason;
use crds::cluster_deployment::MaintenanceWindow;
use jiff::{SignedDuration, Timestamp};

use crate::cluster_deployment::state::ClusterState;
use crate::cron::Cron;
use crate::moment::after;

/// A window opens again within so much time.
const YEAR: SignedDuration = SignedDuration::from_hours(366 * 24);

/// Where the windows of a cluster stand.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cluster_deployment) enum Windows {
    /// There are none: any time is good.
    Any,
    Open,
    /// None is open, and the next one opens then.
    Closed {
        opens: Timestamp,
    },
    /// One of them cannot be what is wanted.
    Refused {
        reason: Reason,
        message: String,
    },
}

pub(in crate::cluster_deployment) fn look(state: &ClusterState<'_>) -> Windows {
    at(&state.deployment.spec.rollout.windows, state.observed.now)
}

fn at(windows: &[MaintenanceWindow], now: Timestamp) -> Windows {
    let (mut is_open, mut next) = (windows.is_empty(), None::<Timestamp>);
    for (index, window) in windows.iter().enumerate() {
        let place = format!("spec.rollout.windows[{index}]");
        let cron = match Cron::parse(&place, &window.schedule, &window.time_zone) {
            Ok(cron) => cron,
            Err((reason, message)) => return Windows::Refused { reason, message },
        };
        let open = SignedDuration::from_mins(i64::from(window.duration_minutes));
        let is_now = cron.next(now.saturating_sub(open).unwrap_or(Timestamp::MIN)).is_some_and(|begun| begun <= now);
        let opens = cron.next(now).filter(|opens| *opens <= after(now, YEAR));
        if opens.is_none() && !is_now {
            return Windows::Refused { reason: Reason::MaintenanceWindowEmpty, message: empty(&place, window) };
        }
        is_open |= is_now;
        next = next.into_iter().chain(opens).min();
    }
    match next {
        _ if windows.is_empty() => Windows::Any,
        Some(opens) if !is_open => Windows::Closed { opens },
        Some(_) | None => Windows::Open,
    }
}

fn empty(place: &str, window: &MaintenanceWindow) -> String {
    format!(
        "{place}.schedule: {:?} is not due within a year, so that what waits for it might never be done: choose another \
         time, or take the window out",
        window.schedule
    )
}

#[cfg(test)]
mod tests {
    use crds::Reason;
    use crds::cluster_deployment::MaintenanceWindow;
    use jiff::Timestamp;

    use super::{Windows, at};

    fn window(schedule: &str, zone: &str, minutes: i32) -> MaintenanceWindow {
        MaintenanceWindow { schedule: schedule.into(), time_zone: zone.into(), duration_minutes: minutes }
    }

    fn check(windows: &[MaintenanceWindow], now: &str, expected: &str) {
        let now: Timestamp = now.parse().unwrap();
        let told = match at(windows, now) {
            Windows::Any => "any".to_owned(),
            Windows::Open => "open".to_owned(),
            Windows::Closed { opens } => format!("opens {opens}"),
            Windows::Refused { reason, .. } => reason.to_string(),
        };
        assert_eq!(told, expected, "{now}");
    }

    #[test]
    fn a_window_is_open_from_its_opening_for_as_long_as_it_lasts() {
        let nightly = [window("0 2 * * *", "Etc/UTC", 120)];
        check(&[], "2026-11-25T12:00:00Z", "any");
        check(&nightly, "2026-11-25T01:59:59Z", "opens 2026-11-25T02:00:00Z");
        check(&nightly, "2026-11-25T02:00:00Z", "open");
        check(&nightly, "2026-11-25T03:59:59Z", "open");
        check(&nightly, "2026-11-25T04:00:00Z", "opens 2026-11-26T02:00:00Z");
    }

    #[test]
    fn of_several_windows_any_may_be_open_and_the_next_one_is_told() {
        let both = [window("0 2 * * SAT", "Etc/UTC", 60), window("0 22 * * 3", "Europe/Paris", 600)];
        // A Wednesday: 22:00 in Paris is 21:00 UTC, and it lasts until the next morning.
        check(&both, "2026-11-25T12:00:00Z", "opens 2026-11-25T21:00:00Z");
        check(&both, "2026-11-26T06:59:59Z", "open");
        check(&both, "2026-11-26T07:00:00Z", "opens 2026-11-28T02:00:00Z");
        let always = [window("0 * * * *", "Etc/UTC", 60)];
        check(&always, "2026-11-25T12:59:59Z", "open");
    }

    #[test]
    fn a_window_that_the_clocks_leave_out_opens_when_they_have_changed_and_lasts_as_long() {
        // 2:00 becomes 3:00 on 29 March, at 1:00 UTC; 3:00 becomes 2:00 on 25 October, at 1:00 UTC.
        let nightly = [window("30 2 * * *", "Europe/Paris", 60)];
        check(&nightly, "2026-03-29T00:59:00Z", "opens 2026-03-29T01:00:00Z");
        check(&nightly, "2026-03-29T01:59:59Z", "open");
        check(&nightly, "2026-03-29T02:00:00Z", "opens 2026-03-30T00:30:00Z");
        check(&nightly, "2026-10-25T00:30:00Z", "open");
        check(&nightly, "2026-10-25T01:30:00Z", "opens 2026-10-26T01:30:00Z");
    }

    #[test]
    fn a_window_that_does_not_open_within_a_year_or_cannot_be_read_is_refused() {
        let good = window("0 2 * * *", "Etc/UTC", 60);
        let leap = [good.clone(), window("0 2 29 2 *", "Etc/UTC", 60)];
        check(&leap, "2026-11-25T12:00:00Z", "MaintenanceWindowEmpty");
        check(&leap, "2027-11-25T12:00:00Z", "opens 2027-11-26T02:00:00Z");
        check(&leap, "2028-02-29T02:30:00Z", "open");
        check(&[good.clone(), window("0 25 * * *", "Etc/UTC", 60)], "2026-11-25T12:00:00Z", "ScheduleInvalid");
        check(&[good, window("0 2 * * *", "Mars", 60)], "2026-11-25T12:00:00Z", "TimeZoneUnknown");
        let Windows::Refused { reason, message } = at(&leap, "2026-11-25T12:00:00Z".parse().unwrap()) else {
            panic!("it is refused")
        };
        assert_eq!(reason, Reason::MaintenanceWindowEmpty);
        assert!(message.starts_with("spec.rollout.windows[1].schedule: \"0 2 29 2 *\" is not due"), "{message}");
    }
}
