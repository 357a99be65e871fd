//! One cluster of a schedule, or its etcd: its backups, and whether the next one is due.

use crds::etcd_backup::BackupPhase;
use crds::{EtcdBackup, ObjectExt, Reason};
use jiff::{SignedDuration, Timestamp};

use super::backup::{content, phase, scheduled_at};
use super::observed::Observed;
use super::target::Target;
use crate::cron::Cron;
use crate::moment::after;
use crate::naming;

/// By how much a clock may have been ahead: what was done at a later time was done by a clock that nobody believes.
const CLOCK_AHEAD_HOURS: i64 = 24;

/// A cluster, and what is known of its backups.
pub(super) struct Cluster<'a> {
    pub target: Target<'a>,
    /// Its backups by this schedule that are not being deleted, oldest first.
    pub backups: Vec<&'a EtcdBackup>,
    /// Its distance from the moment at which the schedule is due.
    pub offset: SignedDuration,
    /// When the last backup that was begun was due.
    pub last: Option<Timestamp>,
    pub turn: Turn<'a>,
}

/// What is to be done for a cluster.
pub(super) enum Turn<'a> {
    /// It cannot be backed up.
    Excluded(Reason, String),
    /// Its backup goes on.
    UnderWay(&'a EtcdBackup),
    /// A backup is due: for that time, and since then.
    Due { tick: Timestamp, since: Timestamp },
    /// The backup of that time was not begun in time.
    Missed(Timestamp),
    /// None is due.
    Idle,
}

impl<'a> Cluster<'a> {
    pub fn new(observed: &Observed<'_>, target: Target<'a>, mut backups: Vec<&'a EtcdBackup>, cron: &Cron) -> Self {
        backups.sort_by_key(|backup| (scheduled_at(backup), backup.name()));
        let offset = offset(target, observed.schedule.spec.spread());
        let mut cluster = Self { target, backups, offset, last: None, turn: Turn::Idle };
        cluster.last = cluster.last_begun(observed);
        cluster.turn = cluster.turn(observed, cron);
        cluster
    }

    /// Its good backups, newest first.
    pub fn good(&self) -> Vec<&'a EtcdBackup> {
        let mut good: Vec<&EtcdBackup> =
            self.backups.iter().copied().filter(|backup| content(backup).is_some()).collect();
        good.sort_by_key(|backup| std::cmp::Reverse(content(backup).map(|content| content.completed_at.0)));
        good
    }

    /// Whether it cannot be backed up.
    pub fn is_excluded(&self) -> bool {
        matches!(self.turn, Turn::Excluded(..))
    }

    /// When the next backup begins.
    pub fn next(&self, cron: &Cron, now: Timestamp) -> Option<Timestamp> {
        Some(after(cron.next(now.checked_sub(self.offset).ok()?)?, self.offset))
    }

    /// When a backup has been due twice since this moment.
    pub fn overdue(&self, cron: &Cron, completed: Timestamp) -> Option<Timestamp> {
        let first = cron.next(completed)?;
        Some(after(cron.next(first)?, self.offset))
    }

    /// By the backups that are there, and by what the status remembers of those that are not.
    fn last_begun(&self, observed: &Observed<'_>) -> Option<Timestamp> {
        let latest = after(observed.now, SignedDuration::from_hours(CLOCK_AHEAD_HOURS));
        let status = observed.schedule.status.as_ref();
        let mut known = status.into_iter().flat_map(|status| &status.clusters);
        let known = known.find(|cluster| cluster.name == self.target.name());
        let remembered = known.and_then(|cluster| cluster.last_schedule_time.as_ref()).map(|time| time.0);
        let there = self.backups.iter().map(|backup| scheduled_at(backup));
        there.chain(remembered).filter(|time| *time <= latest).max()
    }

    fn turn(&self, observed: &Observed<'_>, cron: &Cron) -> Turn<'a> {
        if let Some((reason, message)) = self.target.excluded() {
            return Turn::Excluded(reason, message);
        }
        if let Some(backup) = self.backups.iter().find(|backup| goes_on(backup)) {
            return Turn::UnderWay(backup);
        }
        let last_due = observed.now.checked_sub(self.offset).ok().and_then(|moment| cron.last(moment));
        let Some(tick) = last_due.filter(|tick| self.is_new(observed, *tick)) else {
            return Turn::Idle;
        };
        let since = after(tick, self.offset);
        let deadline = observed.schedule.spec.starting_deadline_seconds.map(i64::from);
        match deadline.is_some_and(|seconds| observed.now.as_second() - since.as_second() > seconds) {
            true => Turn::Missed(tick),
            false => Turn::Due { tick, since },
        }
    }

    /// Whether no backup was begun for it yet, and it came while the schedule and the cluster were there.
    fn is_new(&self, observed: &Observed<'_>, tick: Timestamp) -> bool {
        let there = [observed.schedule.created_at(), self.target.since()];
        there.into_iter().flatten().all(|since| since.0 <= tick) && self.last.is_none_or(|last| last < tick)
    }
}

fn goes_on(backup: &EtcdBackup) -> bool {
    match phase(backup) {
        BackupPhase::Pending | BackupPhase::Running => true,
        BackupPhase::Succeeded | BackupPhase::Failed => false,
    }
}

/// The same at every time, and another one for every cluster: 0 to less than the spread.
fn offset(target: Target<'_>, spread: i32) -> SignedDuration {
    naming::offset(target.uid(), u64::try_from(spread).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use crds::ClusterDeployment;

    use super::{Target, offset};

    #[test]
    fn clusters_are_spread_over_the_whole_time_and_each_keeps_its_place() {
        let of = |uid: usize, spread: i32| {
            let text = format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: a, uid: uid-{uid}}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1}}}}}}"
            );
            let deployment: ClusterDeployment = serde_yaml::from_str(&text).unwrap();
            offset(Target::Cluster(&deployment), spread).as_secs()
        };
        let all: Vec<i64> = (0..200).map(|uid| of(uid, 900)).collect();
        assert!(all.iter().all(|offset| (0..900).contains(offset)));
        for third in [0..300, 300..600, 600..900] {
            let there = all.iter().filter(|offset| third.contains(*offset)).count();
            assert!(there > 40, "{there} of 200 in {third:?}");
        }
        assert_eq!((of(7, 900), of(7, 0)), (all[7], 0));
    }
}
