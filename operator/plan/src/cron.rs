//! When a schedule is due: five fields of cron, read in a time zone.
//!
//! A time of day is due once a day: where a change of the clocks leaves it out, when they have changed, and where it
//! comes twice, the first time. An hour that begins with `*` is due whenever the clocks show it, so that hourly backups
//! stay an hour apart.

use crds::Reason;
use cronexpr::{Crontab, MakeTimestamp, parse_crontab};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

/// What each field may be, and how it is called.
const FIELDS: [(&str, &str); 5] = [
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of month", "1 to 31"),
    ("month", "1 to 12 or JAN to DEC"),
    ("day of week", "0 to 7 or SUN to SAT, where 0 and 7 are Sunday"),
];
const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const EXAMPLE: &str = "for example \"0 3 * * *\": every day at 3:00";
/// How far back the last time is looked for: frequent schedules are found soon, and rare ones cost little.
const LOOK_BACK_HOURS: [i64; 6] = [1, 25, 8 * 24, 32 * 24, 367 * 24, 8 * 366 * 24];
/// The library looks four years ahead. Weekdays and dates meet again after 28 years; a bit less than four at once.
const LOOK_AHEAD_HOURS: i64 = 35_000;
const LOOKS: i64 = 8;
/// No time is looked for after the year 9990: the calendar ends soon after.
const LAST: i64 = 253_086_000_000;

/// A schedule in its time zone.
pub(crate) struct Cron {
    /// As if the clocks showed UTC.
    crontab: Crontab,
    zone: TimeZone,
    is_hourly: bool,
}

impl Cron {
    /// Reads both, which are fields of `place`. Else what is wrong, and how it is written.
    pub fn parse(place: &str, schedule: &str, zone: &str) -> Result<Self, (Reason, String)> {
        let refused = |problem: String| (Reason::ScheduleInvalid, format!("{place}.schedule: {problem}"));
        let text = schedule.to_ascii_uppercase();
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        if fields.len() != FIELDS.len() {
            let names = FIELDS.map(|(name, _)| name).join(", ");
            let problem = format!("{schedule:?} has {} fields, and five are needed: {names}; {EXAMPLE}", fields.len());
            return Err(refused(problem));
        }
        for (index, field) in fields.iter().enumerate() {
            if !is_field(index, field) {
                let (name, range) = FIELDS[index];
                let forms = "*, a list (1,3), a range from less to more (1-3) or steps (*/2)";
                return Err(refused(format!("{field:?} is no {name}: {range}, {forms}; {EXAMPLE}")));
            }
        }
        let is_hourly = fields[1].starts_with('*');
        let unreadable = |error: cronexpr::Error| refused(format!("{schedule:?} cannot be read: {error}; {EXAMPLE}"));
        let crontab = parse_crontab(&format!("{} UTC", fields.join(" "))).map_err(unreadable)?;
        if find(&crontab, Timestamp::UNIX_EPOCH).is_none() {
            return Err(refused(format!("{schedule:?} is never due: no such month has that day; {EXAMPLE}")));
        }
        let found = TimeZoneDatabase::bundled().get(zone);
        let zone = found.map_err(|_| {
            let message = format!(
                "{place}.timeZone: {zone:?} is no time zone: give a name of the IANA database, for example Europe/Paris"
            );
            (Reason::TimeZoneUnknown, message)
        })?;
        Ok(Self { crontab, zone, is_hourly })
    }

    /// Where its days begin.
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The first time after a moment; none: there is none for years.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        if after.as_second() > LAST {
            return None;
        }
        if self.is_hourly { self.next_shown(after) } else { self.next_once(after) }
    }

    /// The last time up to a moment, that moment included.
    pub fn last(&self, until: Timestamp) -> Option<Timestamp> {
        LOOK_BACK_HOURS.into_iter().find_map(|hours| {
            let from = until.checked_sub(SignedDuration::from_hours(hours)).ok()?;
            let times = std::iter::successors(self.next(from), |time| self.next(*time));
            times.take_while(|time| *time <= until).last()
        })
    }

    /// Each time of day once.
    fn next_once(&self, after: Timestamp) -> Option<Timestamp> {
        let mut shown = self.zone.to_datetime(after);
        loop {
            shown = self.next_civil(shown)?;
            let time = self.instant(shown)?;
            if time > after {
                return Some(time);
            }
        }
    }

    /// Whenever the clocks show it: from one change of the clocks to the next they run evenly.
    fn next_shown(&self, after: Timestamp) -> Option<Timestamp> {
        let mut from = after;
        loop {
            let offset = self.zone.to_offset(from);
            let time = offset.to_timestamp(self.next_civil(offset.to_datetime(from))?).ok()?;
            match self.zone.following(from).next().map(|change| change.timestamp()) {
                Some(change) if change <= time => {
                    // The change itself may be due, by the new clocks.
                    let new = self.zone.to_offset(change);
                    let just_before = new.to_datetime(change).checked_sub(SignedDuration::from_secs(1)).ok()?;
                    let time = new.to_timestamp(self.next_civil(just_before)?).ok()?;
                    if time == change {
                        return Some(time);
                    }
                    from = change;
                }
                Some(_) | None => return Some(time),
            }
        }
    }

    fn next_civil(&self, after: DateTime) -> Option<DateTime> {
        let found = find(&self.crontab, Offset::UTC.to_timestamp(after).ok()?)?;
        Some(Offset::UTC.to_datetime(found))
    }

    fn instant(&self, shown: DateTime) -> Option<Timestamp> {
        match self.zone.to_ambiguous_timestamp(shown).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(shown).ok(),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(shown).ok(),
            // By the offset after the change this is a moment before it.
            AmbiguousOffset::Gap { after, .. } => {
                let before_change = after.to_timestamp(shown).ok()?;
                self.zone.following(before_change).next().map(|change| change.timestamp())
            }
        }
    }
}

/// The first time after a moment, on clocks that show UTC.
fn find(crontab: &Crontab, after: Timestamp) -> Option<Timestamp> {
    let starts =
        (0..LOOKS).filter_map(|look| after.checked_add(SignedDuration::from_hours(look * LOOK_AHEAD_HOURS)).ok());
    let mut starts = starts.filter(|start| start.as_second() <= LAST);
    starts.find_map(|start| crontab.find_next(MakeTimestamp(start)).ok()).map(|found| found.timestamp())
}

/// Whether a field can be read alone, without the extensions of the library that Kubernetes' CronJobs do not know.
fn is_field(index: usize, field: &str) -> bool {
    let names: &[&str] = match index {
        3 => &MONTHS,
        4 => &DAYS,
        _ => &[],
    };
    let is_word = |word: &str| {
        let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        word == "*" || is_number || names.contains(&word)
    };
    let mut alone = ["*"; 5];
    alone[index] = field;
    field.split([',', '-', '/']).all(is_word) && parse_crontab(&format!("{} UTC", alone.join(" "))).is_ok()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::Cron;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// The times after a moment, in the words of the zone.
    fn times(schedule: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        let cron = Cron::parse("spec", schedule, zone).unwrap_or_else(|(_, message)| panic!("{message}"));
        let times = std::iter::successors(cron.next(at(after)), |time| cron.next(*time));
        let shown = |time: Timestamp| time.to_zoned(cron.zone().clone()).strftime("%m-%d %H:%M %z").to_string();
        times.take(count).map(shown).collect()
    }

    #[test]
    fn a_time_of_day_comes_once_a_day_also_when_the_clocks_change() {
        let paris = |schedule: &str, after: &str| times(schedule, "Europe/Paris", after, 3);
        // 2:00 becomes 3:00 on 29 March, and 3:00 becomes 2:00 on 25 October.
        assert_eq!(
            paris("30 2 * * *", "2026-03-27T23:00:00Z"),
            ["03-28 02:30 +0100", "03-29 03:00 +0200", "03-30 02:30 +0200"]
        );
        assert_eq!(
            paris("30 2 * * *", "2026-10-23T23:00:00Z"),
            ["10-24 02:30 +0200", "10-25 02:30 +0200", "10-26 02:30 +0100"]
        );
        assert_eq!(
            paris("0,15,30 2,3 * * *", "2026-03-29T00:59:00Z"),
            ["03-29 03:00 +0200", "03-29 03:15 +0200", "03-29 03:30 +0200"]
        );
        assert_eq!(
            times("0 0 * * *", "America/Havana", "2026-03-07T12:00:00Z", 2),
            ["03-08 01:00 -0400", "03-09 00:00 -0400"],
            "midnight is left out"
        );
    }

    #[test]
    fn an_hourly_schedule_comes_every_hour_also_when_the_clocks_change() {
        let paris = |schedule: &str, after: &str| times(schedule, "Europe/Paris", after, 4);
        assert_eq!(
            paris("0 * * * *", "2026-03-28T23:30:00Z"),
            ["03-29 01:00 +0100", "03-29 03:00 +0200", "03-29 04:00 +0200", "03-29 05:00 +0200"]
        );
        assert_eq!(
            paris("0 * * * *", "2026-10-24T23:30:00Z"),
            ["10-25 02:00 +0200", "10-25 02:00 +0100", "10-25 03:00 +0100", "10-25 04:00 +0100"]
        );
        assert_eq!(
            paris("*/30 * * * *", "2026-10-25T00:15:00Z"),
            ["10-25 02:30 +0200", "10-25 02:00 +0100", "10-25 02:30 +0100", "10-25 03:00 +0100"]
        );
        assert_eq!(
            times("15 * * * *", "Australia/Lord_Howe", "2026-04-04T14:00:00Z", 3),
            ["04-05 01:15 +1100", "04-05 02:15 +1030", "04-05 03:15 +1030"],
            "clocks that change by half an hour"
        );
    }

    #[test]
    fn a_leap_day_comes_every_four_years_and_names_are_read() {
        let cron = Cron::parse("spec", "0 12 29 2 *", "Etc/UTC").unwrap_or_else(|(_, message)| panic!("{message}"));
        assert_eq!(cron.next(at("2024-02-29T12:00:00Z")), Some(at("2028-02-29T12:00:00Z")));
        assert_eq!(cron.last(at("2027-11-24T00:00:00Z")), Some(at("2024-02-29T12:00:00Z")));
        assert_eq!(cron.next(at("2096-03-01T00:00:00Z")), Some(at("2104-02-29T12:00:00Z")), "2100 is no leap year");
        assert_eq!(times("0 0 */31 2 MON", "UTC", "2026-01-01T00:00:00Z", 1), ["02-01 00:00 +0000"], "in 2027");
        assert_eq!(cron.next(at("9998-01-01T00:00:00Z")), None, "the calendar ends");
        assert_eq!(cron.next(Timestamp::MAX), None);
        assert_eq!(times("30 1 * jan-feb sun", "UTC", "2026-12-01T00:00:00Z", 1), ["01-03 01:30 +0000"]);
        assert_eq!(times("0 3 1 * mon", "UTC", "2026-06-02T00:00:00Z", 3).len(), 3);
    }

    #[test]
    fn the_last_time_is_the_one_that_next_found() {
        for (schedule, now) in [
            ("* * * * *", "2026-11-24T18:30:00Z"),
            ("0 3 * * *", "2026-11-24T02:59:59Z"),
            ("0 3 * * *", "2026-11-24T03:00:00Z"),
            ("30 2 * * *", "2026-03-29T01:10:00Z"),
            ("0 0 1 1 *", "2026-11-24T00:00:00Z"),
            ("0 4 * * SUN", "2026-11-24T00:00:00Z"),
        ] {
            let cron = Cron::parse("spec", schedule, "Europe/Paris").unwrap_or_else(|(_, message)| panic!("{message}"));
            let last = cron.last(at(now)).unwrap();
            assert!(last <= at(now), "{schedule} {now}: {last}");
            assert!(cron.next(last).unwrap() > at(now), "{schedule} {now}: {last} is not the last");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_field_and_an_example() {
        let check = |schedule: &str, zone: &str, words: &[&str]| {
            let Err((reason, message)) = Cron::parse("spec", schedule, zone) else {
                panic!("{schedule} {zone} is read")
            };
            for word in words {
                assert!(message.contains(word), "{reason}: {message}: {word}");
            }
        };
        let example = "\"0 3 * * *\": every day at 3:00";
        check("0 3 * *", "Etc/UTC", &["spec.schedule: ", "4 fields", "day of week", example]);
        check("60 3 * * *", "Etc/UTC", &["\"60\" is no minute: 0 to 59", example]);
        check("0 25 * * *", "Etc/UTC", &["\"25\" is no hour: 0 to 23"]);
        check("0 18-8 * * *", "Etc/UTC", &["\"18-8\" is no hour", "from less to more"]);
        check("0 3 32 * *", "Etc/UTC", &["\"32\" is no day of month"]);
        check("0 3 L * *", "Etc/UTC", &["\"L\" is no day of month"]);
        check("0 3 15W * *", "Etc/UTC", &["\"15W\" is no day of month"]);
        check("0 3 * SEPT *", "Etc/UTC", &["\"SEPT\" is no month", "JAN to DEC"]);
        check("0 3 * * FRI#2", "Etc/UTC", &["is no day of week"]);
        check("H 3 * * *", "Etc/UTC", &["\"H\" is no minute"]);
        check("*/0 3 * * *", "Etc/UTC", &["\"*/0\" is no minute"]);
        check("0 3 31 2 *", "Etc/UTC", &["is never due", example]);
        check("0 3 * * *", "Europe/Pariss", &["spec.timeZone: \"Europe/Pariss\"", "Europe/Paris"]);
    }
}
