//! Says whether the cluster's last good backup is young enough, where a schedule is for it. It is no part of Ready: a
//! cluster serves without backups.

use crds::conditions::Statement;
use crds::etcd_backup_schedule::{LastGood, ScheduledCluster};
use crds::names::condition;
use crds::{EtcdBackupSchedule, ObjectExt, Reason};
use jiff::Timestamp;

use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::state::ClusterState;
use crate::message::{cut, quote};
use crate::moment::day_and_clock;

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

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let now = state.observed.now;
    let told = state.observed.schedules.iter().filter_map(|schedule| told(state, schedule, now));
    let told: Vec<Told<'_>> = told.collect();
    let overdue = told.iter().filter_map(|told| told.cluster.overdue_at.as_ref()).map(|time| time.0);
    let next = overdue.filter(|time| *time > now).min();
    let worst = told.iter().min_by_key(|told| told.standing);
    let proposal = Proposal::default().condition(condition::BACKED_UP, worst.map(|worst| statement(worst, &told)));
    next.into_iter().fold(proposal, |proposal, at| proposal.at(state, at))
}

/// What a schedule says, if it is for the cluster and has looked at it.
fn told<'a>(state: &ClusterState<'_>, schedule: &'a EtcdBackupSchedule, now: Timestamp) -> Option<Told<'a>> {
    let deployment = state.deployment;
    state.installed.as_ref()?;
    let is_for = schedule.spec.selects(deployment.name(), deployment.metadata.labels.as_ref());
    let mut clusters = schedule.status.as_ref().filter(|_| is_for && !schedule.is_deleting())?.clusters.iter();
    let cluster = clusters.find(|cluster| cluster.name == deployment.name())?;
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
