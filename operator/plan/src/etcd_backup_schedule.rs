//! EtcdBackupSchedule: makes an EtcdBackup of each cluster, plane or etcd when it is due, and deletes those that are
//! kept no longer.

mod backup;
mod cluster;
mod decided;
mod observed;
mod problem;
mod problem_kind;
mod retention;
mod status;
mod target;
mod verdict;
mod verification;

use crds::{ClusterDeployment, EtcdBackup, EtcdBackupSchedule, EtcdBackupScheduleStatus, KarmadaDeployment, ObjectExt};
use jiff::Timestamp;

use crate::cron::Cron;
use crate::{Next, Plan};
use cluster::{Cluster, Turn};
use decided::Decided;
pub use observed::Observed;
use retention::{Removal, removal};
use target::Target;

/// The longest that a schedule is not looked at: clocks are set.
const LOOK_AGAIN_SECONDS: i64 = 600;

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create this backup, unless it is there already.
    Begin(Box<EtcdBackup>),
    /// Delete this backup, which is kept no longer.
    Delete(Box<EtcdBackup>),
}

/// The backup of a cluster that is made out of turn, for this moment, as the schedule makes its own: it is verified
/// where the schedule has any verified, and kept and deleted with the others.
pub fn backup_between(schedule: &EtcdBackupSchedule, deployment: &ClusterDeployment, moment: Timestamp) -> EtcdBackup {
    between(schedule, Target::Cluster(deployment), moment)
}

/// The same of a plane.
pub fn plane_backup_between(schedule: &EtcdBackupSchedule, plane: &KarmadaDeployment, moment: Timestamp) -> EtcdBackup {
    between(schedule, Target::Plane(plane), moment)
}

fn between(schedule: &EtcdBackupSchedule, target: Target<'_>, moment: Timestamp) -> EtcdBackup {
    let verify = schedule.spec.verify.as_ref().map(|verify| verify.of_backup());
    backup::make(schedule, target, moment, verify)
}

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Action, EtcdBackupScheduleStatus> {
    let spec = &observed.schedule.spec;
    let cron = match Cron::parse("spec", &spec.schedule, &spec.time_zone) {
        Ok(cron) => cron,
        Err((reason, message)) => {
            let status = status::invalid(observed, reason, message);
            return Plan { actions: Vec::new(), status, next: Next::OnChange, waits_for: None };
        }
    };
    let decided = decide(observed, &cron);
    let begun = decided.iter().filter_map(|one| one.begins.clone());
    let mut actions: Vec<Action> = begun.map(|backup| Action::Begin(Box::new(backup))).collect();
    actions.extend(deletion(observed, &decided).map(|backup| Action::Delete(Box::new(backup.clone()))));
    let status = status::status(observed, &cron, &decided);
    let is_busy = decided.iter().any(|one| match one.cluster.turn {
        Turn::UnderWay(_) | Turn::Due { .. } => true,
        Turn::Excluded(..) | Turn::Missed(_) | Turn::Idle => false,
    });
    let waits_for = status.message.clone().filter(|_| is_busy);
    let next = next(observed.now, &status);
    Plan { actions, status, next, waits_for }
}

fn decide<'a>(observed: &Observed<'a>, cron: &Cron) -> Vec<Decided<'a>> {
    let spec = &observed.schedule.spec;
    let selected = |deployment: &&ClusterDeployment| {
        !deployment.is_deleting() && spec.selects(deployment.name(), deployment.metadata.labels.as_ref())
    };
    let selected = observed.deployments.iter().copied().filter(selected).map(Target::Cluster);
    let plane = observed.plane.filter(|plane| !plane.is_deleting() && spec.is_for_plane(plane.name()));
    let targets = selected.chain(plane.map(Target::Plane)).chain(spec.etcd.as_ref().map(|_| Target::Etcd));
    let mut backups = backup::by_cluster(observed.backups);
    let cluster = |target: Target<'a>| {
        let ours = backups.remove(target.uid()).unwrap_or_default();
        Cluster::new(observed, target, ours, cron)
    };
    let mut clusters: Vec<Cluster<'_>> = targets.map(cluster).collect();
    let under_way = clusters.iter().filter(|cluster| matches!(cluster.turn, Turn::UnderWay(_))).count();
    let most = usize::try_from(spec.max_concurrent).unwrap_or_default();
    let mut free = if spec.suspend { 0 } else { most.saturating_sub(under_way) };
    // Those that have waited longest begin first.
    clusters.sort_by_key(|cluster| (due_since(cluster), cluster.target.name()));
    let decide = |cluster: Cluster<'a>| {
        let begins = match cluster.turn {
            Turn::Due { tick, .. } if free > 0 => {
                let verify = verification::wanted(observed, &cluster);
                Some(backup::make(observed.schedule, cluster.target, tick, verify))
            }
            Turn::Due { .. } | Turn::Excluded(..) | Turn::UnderWay(_) | Turn::Missed(_) | Turn::Idle => None,
        };
        free -= usize::from(begins.is_some());
        let judge = |restores| removal(&cluster, &spec.retention, cron.zone(), restores, observed.deployments);
        let judged = observed.restores.map(judge);
        let removal = judged.unwrap_or(Removal::None);
        Decided { cluster, begins, removal }
    };
    let mut decided: Vec<Decided<'_>> = clusters.into_iter().map(decide).collect();
    decided.sort_by_key(|one| one.cluster.target.name());
    decided
}

fn due_since(cluster: &Cluster<'_>) -> Option<Timestamp> {
    match cluster.turn {
        Turn::Due { since, .. } => Some(since),
        Turn::Excluded(..) | Turn::UnderWay(_) | Turn::Missed(_) | Turn::Idle => None,
    }
}

/// One after the other: the next is deleted once this one is gone.
fn deletion<'a>(observed: &Observed<'a>, decided: &[Decided<'a>]) -> Option<&'a EtcdBackup> {
    if observed.schedule.spec.suspend || observed.backups.iter().any(|backup| backup.is_deleting()) {
        return None;
    }
    decided.iter().find_map(|one| match &one.removal {
        Removal::Delete(backup) => Some(*backup),
        Removal::None | Removal::Held(_) => None,
    })
}

/// When something is due or overdue next; clocks that were set are noticed meanwhile.
fn next(now: Timestamp, status: &EtcdBackupScheduleStatus) -> Next {
    let moments = status.clusters.iter().flat_map(|cluster| [&cluster.next_schedule_time, &cluster.overdue_at]);
    let moments = moments.flatten().map(|time| time.0.as_second() - now.as_second());
    let soonest = moments.filter(|seconds| *seconds > 0).min().unwrap_or(LOOK_AGAIN_SECONDS);
    Next::after_seconds(u64::try_from(soonest.min(LOOK_AGAIN_SECONDS)).unwrap_or_default().max(1))
}

#[cfg(test)]
mod tests;
