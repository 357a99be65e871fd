//! Which backup of a cluster is kept no longer.

use std::collections::BTreeSet;

use crds::etcd_backup_schedule::Retention;
use crds::{ClusterDeployment, EtcdBackup, EtcdRestore, ObjectExt};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::backup::{content, is_bad};
use super::cluster::Cluster;
use crate::etcd_backup::needed_by;
use crate::size::size;

/// Failed and damaged backups that are kept, to be looked at.
const BAD_KEPT: usize = 3;

/// What is deleted next.
#[derive(Debug, PartialEq)]
pub(super) enum Removal<'a> {
    /// Nothing is too old.
    None,
    /// This one.
    Delete(&'a EtcdBackup),
    /// Something would be, and is not: why.
    Held(String),
}

/// One backup of a cluster, the oldest of those that are kept no longer.
pub(super) fn removal<'a>(
    cluster: &Cluster<'a>,
    retention: &Retention,
    zone: &TimeZone,
    restores: &[&EtcdRestore],
    deployments: &[&ClusterDeployment],
) -> Removal<'a> {
    let is_needed = |backup: &EtcdBackup| needed_by(backup, restores, deployments).is_some();
    let bad = cluster.backups.iter().copied().filter(|backup| is_bad(backup));
    let bad: Vec<&EtcdBackup> = bad.collect();
    // One that is damaged may be restored all the same, by its place in the storage.
    let oldest = bad.first().filter(|backup| !is_needed(backup));
    if let Some(oldest) = oldest.filter(|_| bad.len() > BAD_KEPT) {
        return Removal::Delete(oldest);
    }
    let good = cluster.good();
    let times: Vec<Timestamp> =
        good.iter().filter_map(|backup| content(backup)).map(|content| content.completed_at.0).collect();
    let kept = kept(&times, retention, zone);
    // One that is still to be verified may turn out to be damaged.
    let settled = good.iter().position(|backup| !backup.is_to_be_verified());
    let oldest = good.iter().enumerate().rev().find(|(index, backup)| {
        let is_newest = *index == 0 || Some(*index) == settled;
        !is_newest && !kept.contains(index) && !is_needed(backup)
    });
    let Some((_, oldest)) = oldest else {
        return Removal::None;
    };
    match shrank(&good) {
        Some(message) => Removal::Held(message),
        None => Removal::Delete(oldest),
    }
}

/// Why nothing is deleted: the newest backup has lost more than half of what the one before it had.
fn shrank(good: &[&EtcdBackup]) -> Option<String> {
    let [newest, before, ..] = good else { return None };
    let (now, then) = (content(newest)?.size, content(before)?.size);
    (now.saturating_mul(2) < then).then(|| {
        format!(
            "EtcdBackup {} has {}, and {} before it had {}: no older one is deleted",
            newest.name(),
            size(now),
            before.name(),
            size(then)
        )
    })
}

/// The indices of the times, newest first, that the ladder keeps.
fn kept(times: &[Timestamp], retention: &Retention, zone: &TimeZone) -> BTreeSet<usize> {
    let most = |count: i32| usize::try_from(count).unwrap_or_default();
    let dates = times.iter().map(|time| zone.to_datetime(*time).date());
    let days: Vec<_> = dates.collect();
    let weeks: Vec<_> = days.iter().map(|day| day.iso_week_date()).map(|week| (week.year(), week.week())).collect();
    let months: Vec<_> = days.iter().map(|day| (day.year(), day.month())).collect();
    let mut kept: BTreeSet<usize> = (0..times.len().min(most(retention.keep_last))).collect();
    kept.extend(newest_of_each(&days, most(retention.keep_daily)));
    kept.extend(newest_of_each(&weeks, most(retention.keep_weekly)));
    kept.extend(newest_of_each(&months, most(retention.keep_monthly)));
    kept
}

/// The first of each of the first so many periods.
fn newest_of_each<Period: PartialEq>(periods: &[Period], most: usize) -> Vec<usize> {
    let begins = |index: &usize| *index == 0 || periods[*index] != periods[*index - 1];
    (0..periods.len()).filter(begins).take(most).collect()
}

#[cfg(test)]
mod tests {
    use crds::etcd_backup_schedule::Retention;
    use jiff::civil::date;
    use jiff::tz::{TimeZone, TimeZoneDatabase};
    use jiff::{SignedDuration, Timestamp};

    use super::kept;

    fn retention(last: i32, daily: i32, weekly: i32, monthly: i32) -> Retention {
        Retention { keep_last: last, keep_daily: daily, keep_weekly: weekly, keep_monthly: monthly }
    }

    fn days(times: &[Timestamp], retention: &Retention, zone: &TimeZone) -> Vec<String> {
        let kept = kept(times, retention, zone);
        kept.iter().map(|index| times[*index].to_zoned(zone.clone()).strftime("%m-%d %H:%M").to_string()).collect()
    }

    fn paris() -> TimeZone {
        TimeZoneDatabase::bundled().get("Europe/Paris").unwrap()
    }

    /// A backup every six hours, newest first.
    fn every_six_hours(until: &str, count: i64) -> Vec<Timestamp> {
        let until: Timestamp = until.parse().unwrap();
        (0..count).map(|number| until - SignedDuration::from_hours(6 * number)).collect()
    }

    #[test]
    fn each_rung_of_the_ladder_keeps_the_newest_of_its_period() {
        // Tuesday, 19:00 in Paris.
        let times = every_six_hours("2026-11-24T18:00:00Z", 400);
        let check = |retention: Retention, expected: &[&str]| {
            assert_eq!(days(&times, &retention, &paris()), expected, "{retention:?}");
        };
        check(retention(2, 0, 0, 0), &["11-24 19:00", "11-24 13:00"]);
        check(retention(0, 3, 0, 0), &["11-24 19:00", "11-23 19:00", "11-22 19:00"]);
        check(retention(0, 0, 3, 0), &["11-24 19:00", "11-22 19:00", "11-15 19:00"]);
        check(retention(0, 0, 0, 3), &["11-24 19:00", "10-31 19:00", "09-30 20:00"]);
        check(retention(1, 2, 2, 2), &["11-24 19:00", "11-23 19:00", "11-22 19:00", "10-31 19:00"]);
    }

    #[test]
    fn periods_without_a_backup_do_not_count_and_days_begin_at_midnight_of_the_zone() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        // Two weeks without any; 23:30 UTC is the next day in Paris.
        let times = [at("2026-07-15T23:30:00Z"), at("2026-07-15T12:00:00Z"), at("2026-07-01T12:00:00Z")];
        let found = days(&times, &retention(0, 3, 0, 0), &paris());
        assert_eq!(found, ["07-16 01:30", "07-15 14:00", "07-01 14:00"]);
        assert_eq!(days(&times, &retention(0, 2, 0, 0), &TimeZone::UTC), ["07-15 23:30", "07-01 12:00"]);
    }

    #[test]
    fn years_of_daily_backups_keep_what_the_ladder_says_each_day() {
        let (zone, ladder) = (paris(), retention(3, 7, 5, 12));
        let mut there: Vec<Timestamp> = Vec::new();
        let mut day = date(2023, 12, 30);
        while day < date(2028, 12, 2) {
            there.insert(0, day.at(3, 0, 0, 0).to_zoned(zone.clone()).unwrap().timestamp());
            let kept = kept(&there, &ladder, &zone);
            there = kept.iter().map(|index| there[*index]).collect();
            assert!(there.len() <= 3 + 7 + 5 + 12, "{day}: {} kept", there.len());
            assert!(day < date(2025, 2, 1) || there.len() >= 18, "{day}: {} kept", there.len());
            day = day.tomorrow().unwrap();
        }
        let months: Vec<String> = days(&there, &retention(0, 0, 0, 12), &zone);
        assert_eq!(&months[..3], ["12-01 03:00", "11-30 03:00", "10-31 03:00"]);
        assert_eq!(&months[10..], ["02-29 03:00", "01-31 03:00"], "a leap day among them");
    }
}
