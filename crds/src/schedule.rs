//! Schedules: what several kinds have of them alike.

/// The time zone that a schedule is read in, where none is given.
pub(crate) fn default_time_zone() -> String {
    "Etc/UTC".into()
}
