//! The status of a schedule.

use crds::conditions::{self, Statement};
use crds::etcd_backup_schedule::{LastAttempt, LastGood, ScheduledCluster};
use crds::kstatus::Standing;
use crds::names::condition;
use crds::{EtcdBackup, EtcdBackupScheduleStatus, ObjectExt, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::backup::{content, phase};
use super::cluster::Turn;
use super::decided::Decided;
use super::observed::Observed;
use super::problem::{problem, waits};
use super::verdict::{Verdict, verdict};
use super::verification;
use crate::cron::Cron;
use crate::message::{cut, quote};

/// Clusters that the status lists.
const LISTED: usize = 500;

/// The status of a schedule that cannot be read.
pub(super) fn invalid(observed: &Observed<'_>, reason: Reason, message: String) -> EtcdBackupScheduleStatus {
    let mut status = observed.schedule.status.clone().unwrap_or_default();
    status.next_schedule_time = None;
    status.clusters.iter_mut().for_each(|cluster| cluster.next_schedule_time = None);
    stated(observed, status, Verdict::stalled(reason, message))
}

/// The status after what was decided.
pub(super) fn status(observed: &Observed<'_>, cron: &Cron, decided: &[Decided<'_>]) -> EtcdBackupScheduleStatus {
    let clusters: Vec<ScheduledCluster> = decided.iter().map(|one| entry(observed, cron, one)).collect();
    let backed_up = decided.iter().zip(&clusters).filter(|(one, _)| !one.cluster.is_excluded());
    let completed = backed_up.map(|(_, cluster)| cluster.last_good.as_ref().map(|good| good.completed_at.clone()));
    let longest_ago: Option<Vec<Time>> = completed.collect();
    let verdict = verdict(observed, decided, &clusters);
    let status = EtcdBackupScheduleStatus {
        cluster_count: number(clusters.len()),
        last_successful_time: longest_ago.and_then(|times| times.into_iter().min()),
        next_schedule_time: clusters.iter().filter_map(|cluster| cluster.next_schedule_time.clone()).min(),
        clusters: clusters.into_iter().take(LISTED).collect(),
        ..observed.schedule.status.clone().unwrap_or_default()
    };
    stated(observed, status, verdict)
}

fn stated(observed: &Observed<'_>, status: EtcdBackupScheduleStatus, verdict: Verdict) -> EtcdBackupScheduleStatus {
    let message = cut(verdict.message);
    let ready = Statement::new(condition::READY, verdict.is_ready, verdict.reason, message.clone());
    let (mut old, mut statements) = (status.conditions, vec![ready.clone()]);
    Standing::new(verdict.is_ready, verdict.is_stalled).report(&ready, &mut old, &mut statements);
    let generation = observed.schedule.metadata.generation;
    EtcdBackupScheduleStatus {
        observed_generation: generation,
        message: Some(message),
        conditions: conditions::state(&old, &statements, generation, &Time(observed.now)),
        ..status
    }
}

fn entry(observed: &Observed<'_>, cron: &Cron, decided: &Decided<'_>) -> ScheduledCluster {
    let cluster = &decided.cluster;
    let good = cluster.good();
    let completed = |backup: &EtcdBackup| content(backup).map(|content| content.completed_at.clone());
    let last_good = good
        .first()
        .and_then(|backup| Some(LastGood { name: backup.name().to_owned(), completed_at: completed(backup)? }));
    let begun = decided.begins.as_ref().or(cluster.backups.last().copied());
    let tick = match (&decided.begins, &cluster.turn) {
        (Some(_), Turn::Due { tick, .. }) => Some(*tick),
        _ => cluster.last,
    };
    let next = cluster.next(cron, observed.now).filter(|_| !observed.schedule.spec.suspend);
    let overdue = last_good.as_ref().and_then(|good| cluster.overdue(cron, good.completed_at.0));
    let problem = problem(observed, decided, overdue);
    ScheduledCluster {
        name: cluster.target.name().to_owned(),
        last_schedule_time: tick.map(Time),
        last_attempt: begun.map(|backup| LastAttempt { name: backup.name().to_owned(), phase: phase(backup) }),
        last_good,
        last_verified: verification::last(observed, cluster),
        backups: number(good.len()),
        next_schedule_time: next.map(Time),
        overdue_at: overdue.map(Time),
        message: problem.map(|problem| quote(problem.message)).or_else(|| waits(observed, decided)),
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
