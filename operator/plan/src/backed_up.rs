//! Whether the last good backup is young enough, as the schedules say that are for a cluster or a plane. It is no part
//! of Ready: both serve without backups.

use crds::conditions::Statement;
use crds::etcd_backup_schedule::{LastGood, ScheduledCluster};
use crds::names::condition;
use crds::{EtcdBackupSchedule, ObjectExt, Reason};
use jiff::Timestamp;

use crate::message::{cut, quote};
use crate::moment::day_and_clock;

/// What is said.
pub(crate) struct BackedUp {
    /// The condition.
    pub statement: Statement,
    /// When it is another one, if nothing else happens.
    pub next: Option<Timestamp>,
}

/// How it stands by one schedule: the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Overdue,
    Never,
    Good,
}

/// What one schedule says of the cluster.
struct Told<'a> {
    schedule: &'a EtcdBackupSchedule,
    cluster: &'a ScheduledCluster,
    standing: Standing,
}

/// What the schedules say that are for what has this name; none: none of them has looked at it.
pub(crate) fn backed_up<'a>(
    schedules: impl Iterator<Item = &'a EtcdBackupSchedule>,
    name: &str,
    now: Timestamp,
) -> Option<BackedUp> {
    let told: Vec<Told<'_>> = schedules.filter_map(|schedule| told(schedule, name, now)).collect();
    let overdue = told.iter().filter_map(|told| told.cluster.overdue_at.as_ref()).map(|time| time.0);
    let next = overdue.filter(|time| *time > now).min();
    let worst = told.iter().min_by_key(|told| told.standing)?;
    Some(BackedUp { statement: statement(worst, &told), next })
}

fn told<'a>(schedule: &'a EtcdBackupSchedule, name: &str, now: Timestamp) -> Option<Told<'a>> {
    let mut clusters = schedule.status.as_ref().filter(|_| !schedule.is_deleting())?.clusters.iter();
    let cluster = clusters.find(|cluster| cluster.name == name)?;
    let is_over = |cluster: &ScheduledCluster| cluster.overdue_at.as_ref().is_some_and(|time| time.0 <= now);
    let standing = match cluster.last_good {
        None => Standing::Never,
        Some(_) if is_over(cluster) => Standing::Overdue,
        Some(_) => Standing::Good,
    };
    Some(Told { schedule, cluster, standing })
}

fn statement(worst: &Told<'_>, all: &[Told<'_>]) -> Statement {
    let stated = |status, reason: Reason, message| Statement::new(condition::BACKED_UP, status, reason, cut(message));
    let says = |otherwise: String| {
        let said = worst.cluster.message.clone().unwrap_or(otherwise);
        format!("EtcdBackupSchedule {}: {}", worst.schedule.name(), quote(said))
    };
    match worst.standing {
        Standing::Overdue => {
            let last = worst.cluster.last_good.as_ref().map(|good| day_and_clock(good.completed_at.0));
            let since = last.unwrap_or_default();
            let message = says(format!("a backup was due twice since the last good one, of {since}"));
            stated(false, Reason::BackupOverdue, message)
        }
        Standing::Never => stated(false, Reason::NoBackupYet, says("there is no good backup yet".into())),
        Standing::Good => {
            let good = all.iter().filter_map(|told| told.cluster.last_good.as_ref());
            let newest = good.max_by_key(|good| good.completed_at.0);
            let said = |good: &LastGood| format!("EtcdBackup {} of {}", good.name, day_and_clock(good.completed_at.0));
            stated(true, Reason::BackedUp, newest.map(said).unwrap_or_default())
        }
    }
}
