//! What a defragmentation is made for, and when it is due.

use crds::cluster_deployment::{Defragmentation, EtcdStatus};
use crds::names::annotation;
use crds::{ObjectExt, PlaybookRun, Reason};
use jiff::{SignedDuration, Timestamp};

use super::super::{Finding, looks};
use super::wish::Wish;
use crate::attempts;
use crate::cron::Cron;
use crate::moment::{after, day_and_clock};

/// How late a scheduled one may begin.
const DEADLINE: SignedDuration = SignedDuration::from_hours(1);
/// Space is made so often unasked within a day: where that does not help, more of it does not either.
const MOST_A_DAY: usize = 3;
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Why members are defragmented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A person wrote the annotation, with this value.
    Asked(String),
    /// etcd's quota is used up; since this look.
    NoSpace(Timestamp),
    /// The schedule was due then.
    Scheduled(Timestamp),
}

impl Cause {
    /// What its run remembers it by.
    pub fn key(&self) -> String {
        match self {
            Cause::Asked(value) => format!("annotation.{value}"),
            Cause::NoSpace(at) => format!("{NO_SPACE}{}", at.as_second()),
            Cause::Scheduled(at) => format!("schedule.{at}"),
        }
    }

    /// For a sentence.
    pub fn describe(&self) -> String {
        match self {
            Cause::Asked(value) => format!("the defragmentation of etcd that annotation {value} asks for"),
            Cause::NoSpace(_) => "the defragmentation of etcd, whose quota is used up,".to_owned(),
            Cause::Scheduled(at) => format!("the defragmentation of etcd of {}", day_and_clock(*at)),
        }
    }
}

const NO_SPACE: &str = "no-space.";

/// Whether one is due, and when else something may be.
pub(crate) enum Due {
    Now(Cause, Option<Timestamp>),
    Later(Option<Timestamp>),
}

/// The first that is due; else what is wrong with the schedule.
pub(crate) fn due(
    wish: &Wish<'_>,
    status: &EtcdStatus,
    finding: Option<&Finding>,
    runs: &[&PlaybookRun],
) -> Result<Due, (Reason, String)> {
    let schedule = wish.schedule;
    let scheduled = schedule.map(|schedule| scheduled(wish, schedule, status, runs)).transpose();
    let is_full = finding.is_some_and(|finding| finding.reason == Reason::EtcdNoSpace) && schedule.is_some();
    // What is wrong with a schedule keeps nobody from asking.
    let now = asked(wish, status, runs).or_else(|| no_space(wish, runs).filter(|_| is_full));
    if let Some(cause) = now {
        return Ok(Due::Now(cause, scheduled.ok().flatten().and_then(|(_, next)| next)));
    }
    Ok(match scheduled? {
        Some((Some(tick), next)) => Due::Now(Cause::Scheduled(tick), next),
        Some((None, next)) => Due::Later(next),
        None => Due::Later(None),
    })
}

/// What a person asks for, if it was not followed yet.
fn asked(wish: &Wish<'_>, status: &EtcdStatus, runs: &[&PlaybookRun]) -> Option<Cause> {
    let value = attempts::asked(wish.metadata.annotations.as_ref(), annotation::DEFRAGMENT, wish.generation())?;
    let cause = Cause::Asked(value.clone());
    let is_new = status.defragment_request.as_ref() != Some(&value) && !is_made(runs, &cause);
    is_new.then_some(cause)
}

/// Space is to be made, since a look that came after the last time it was.
fn no_space(wish: &Wish<'_>, runs: &[&PlaybookRun]) -> Option<Cause> {
    let (looked, _) = looks(wish.own_runs).first().copied()?;
    let today = |run: &&&PlaybookRun| {
        let begun = run.created_at().is_some_and(|time| after(time.0, DAY) > wish.now);
        begun && run.annotation(annotation::DEFRAGMENTS_FOR).is_some_and(|key| key.starts_with(NO_SPACE))
    };
    let ended = runs.iter().filter_map(|run| attempts::ended_at(run)).max();
    let is_news = ended.is_none_or(|ended| looked > ended);
    (is_news && runs.iter().filter(today).count() < MOST_A_DAY).then_some(Cause::NoSpace(looked))
}

/// When it was due, if that is now, and when it is next.
fn scheduled(
    wish: &Wish<'_>,
    schedule: &Defragmentation,
    status: &EtcdStatus,
    runs: &[&PlaybookRun],
) -> Result<(Option<Timestamp>, Option<Timestamp>), (Reason, String)> {
    let (now, installed) = (wish.now, wish.installed);
    let cron = Cron::parse(wish.field, &schedule.schedule, &schedule.time_zone)?;
    let ended = status.defragmentation.as_ref().map(|last| last.finished_at.0);
    let is_due = |tick: &Timestamp| {
        let is_done = ended.is_some_and(|ended| ended >= *tick) || is_made(runs, &Cause::Scheduled(*tick));
        now.duration_since(*tick) < DEADLINE && installed.is_none_or(|installed| installed < *tick) && !is_done
    };
    Ok((cron.last(now).filter(is_due), cron.next(now)))
}

fn is_made(runs: &[&PlaybookRun], cause: &Cause) -> bool {
    let key = cause.key();
    runs.iter().any(|run| run.annotation(annotation::DEFRAGMENTS_FOR) == Some(&key))
}
