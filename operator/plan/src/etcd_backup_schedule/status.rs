//! The status of a schedule.

use crds::conditions::{self, Statement};
use crds::etcd_backup::BackupPhase;
use crds::etcd_backup_schedule::{LastAttempt, LastGood, ScheduledCluster};
use crds::kstatus::Standing;
use crds::names::condition;
use crds::{EtcdBackup, EtcdBackupScheduleStatus, ObjectExt, Reason};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::backup::{content, phase};
use super::cluster::Turn;
use super::cron::Cron;
use super::decided::Decided;
use super::observed::Observed;
use super::retention::Removal;
use crate::message::{count, cut, quote};
use crate::moment::day_and_clock;

/// Clusters that the status lists.
const LISTED: usize = 500;

/// The status of a schedule that cannot be read.
pub(super) fn invalid(observed: &Observed<'_>, reason: Reason, message: String) -> EtcdBackupScheduleStatus {
    let old = observed.schedule.status.clone().unwrap_or_default();
    let status = EtcdBackupScheduleStatus { next_schedule_time: None, ..old };
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
        name: cluster.deployment.name().to_owned(),
        last_schedule_time: tick.map(Time),
        last_attempt: begun.map(|backup| LastAttempt { name: backup.name().to_owned(), phase: phase(backup) }),
        last_good,
        backups: number(good.len()),
        next_schedule_time: next.map(Time),
        overdue_at: overdue.map(Time),
        message: problem.map(|problem| quote(problem.message)).or_else(|| waits(observed, decided)),
    }
}

/// What is wrong with the backups of a cluster.
struct Problem {
    reason: Reason,
    message: String,
}

fn problem(observed: &Observed<'_>, decided: &Decided<'_>, overdue: Option<Timestamp>) -> Option<Problem> {
    let cluster = &decided.cluster;
    let name = cluster.deployment.name();
    if let Turn::Excluded(reason, message) = &cluster.turn {
        return Some(Problem { reason: *reason, message: message.clone() });
    }
    let last_ended = cluster.backups.iter().rev().find(|backup| match phase(backup) {
        BackupPhase::Succeeded | BackupPhase::Failed => true,
        BackupPhase::Pending | BackupPhase::Running => false,
    });
    let failed = last_ended.filter(|backup| phase(backup) == BackupPhase::Failed).map(|backup| {
        let said = backup.status.as_ref().and_then(|status| status.message.as_deref()).unwrap_or("it has failed");
        format!("EtcdBackup {} of cluster {name}: {said}", backup.name())
    });
    if overdue.is_some_and(|overdue| overdue <= observed.now) {
        let since = cluster.good().first().and_then(|backup| content(backup)).map(|good| good.completed_at.0);
        let since = since.map(day_and_clock).unwrap_or_default();
        let why = failed.or_else(|| waits(observed, decided)).map(|why| format!(": {why}")).unwrap_or_default();
        let message = format!("cluster {name} has no good backup since {since}{why}");
        return Some(Problem { reason: Reason::BackupOverdue, message });
    }
    if let Some(message) = failed {
        return Some(Problem { reason: Reason::LastBackupFailed, message });
    }
    match (&cluster.turn, &decided.removal) {
        (Turn::Missed(tick), _) => {
            let at = day_and_clock(*tick);
            let message = format!("the backup of cluster {name} of {at} did not begin in time, and was left out");
            Some(Problem { reason: Reason::BackupMissed, message })
        }
        (_, Removal::Held(why)) => {
            Some(Problem { reason: Reason::BackupShrank, message: format!("cluster {name}: {why}") })
        }
        _ => None,
    }
}

/// What a cluster waits for that is as it should be.
fn waits(observed: &Observed<'_>, decided: &Decided<'_>) -> Option<String> {
    match &decided.cluster.turn {
        // How much is stored changes all the time: the EtcdBackup says so.
        Turn::UnderWay(backup) if phase(backup) == BackupPhase::Running => {
            Some(format!("EtcdBackup {} is being taken", backup.name()))
        }
        Turn::UnderWay(backup) => {
            let said = backup.status.as_ref().and_then(|status| status.message.as_deref()).unwrap_or("it begins");
            Some(quote(format!("EtcdBackup {}: {said}", backup.name())))
        }
        Turn::Due { since, .. } if decided.begins.is_none() => {
            let why = match observed.schedule.spec.suspend {
                true => "spec.suspend is true",
                false => "waits until fewer clusters are backed up",
            };
            Some(format!("due since {}: {why}", day_and_clock(*since)))
        }
        Turn::Due { .. } | Turn::Excluded(..) | Turn::Missed(_) | Turn::Idle => None,
    }
}

/// What is said of the whole schedule.
struct Verdict {
    is_ready: bool,
    is_stalled: bool,
    reason: Reason,
    message: String,
}

impl Verdict {
    fn ready(reason: Reason, message: String) -> Self {
        Self { is_ready: true, is_stalled: false, reason, message }
    }

    fn stalled(reason: Reason, message: String) -> Self {
        Self { is_ready: false, is_stalled: true, reason, message }
    }

    fn reconciling(reason: Reason, message: String) -> Self {
        Self { is_ready: false, is_stalled: false, reason, message }
    }
}

fn verdict(observed: &Observed<'_>, decided: &[Decided<'_>], clusters: &[ScheduledCluster]) -> Verdict {
    let spec = &observed.schedule.spec;
    if spec.suspend {
        return Verdict::stalled(Reason::Suspended, "suspended: nothing begins until spec.suspend is false".into());
    }
    if let (Some(name), []) = (&spec.cluster_name, decided) {
        let message = format!("ClusterDeployment {name} is not there: make it, or correct spec.clusterName");
        return Verdict::reconciling(Reason::ClusterNotFound, message);
    }
    if decided.is_empty() {
        return Verdict::ready(Reason::NoClusters, "spec.clusterSelector selects no ClusterDeployment".into());
    }
    if let Some(problem) = worst(observed, decided, clusters) {
        return match problem.reason {
            Reason::EtcdExternal => Verdict::stalled(problem.reason, problem.message),
            reason => Verdict::reconciling(reason, problem.message),
        };
    }
    let mut backed_up = decided.iter().zip(clusters).filter(|(one, _)| !one.cluster.is_excluded());
    if let Some((_, first)) = backed_up.find(|(_, cluster)| cluster.last_good.is_none()) {
        let message = format!("cluster {} has no backup yet; {}", first.name, told(observed, decided, clusters));
        return Verdict::reconciling(Reason::NoBackupYet, message);
    }
    Verdict::ready(Reason::Scheduled, told(observed, decided, clusters))
}

/// The worst problem, and how many clusters have the same.
fn worst(observed: &Observed<'_>, decided: &[Decided<'_>], clusters: &[ScheduledCluster]) -> Option<Problem> {
    let overdue = |cluster: &ScheduledCluster| cluster.overdue_at.as_ref().map(|time| time.0);
    let problems = decided.iter().zip(clusters);
    let mut problems: Vec<Problem> =
        problems.filter_map(|(one, cluster)| problem(observed, one, overdue(cluster))).collect();
    // Where others are backed up, one that is not installed yet is no fault.
    let is_fault = |problem: &Problem| problem.reason != Reason::NotInstalled;
    if problems.len() < decided.len() || problems.iter().any(is_fault) {
        problems.retain(is_fault);
    }
    problems.sort_by_key(|problem| severity(problem.reason));
    let worst = problems.first()?;
    let alike = problems.iter().filter(|problem| problem.reason == worst.reason).count() - 1;
    let more = if alike > 0 { format!("; and {}", count(alike, "more cluster")) } else { String::new() };
    Some(Problem { reason: worst.reason, message: format!("{}{more}", quote(worst.message.clone())) })
}

/// The worst first.
fn severity(reason: Reason) -> usize {
    let order = [
        Reason::BackupOverdue,
        Reason::LastBackupFailed,
        Reason::BackupMissed,
        Reason::BackupShrank,
        Reason::EtcdExternal,
        Reason::NotInstalled,
    ];
    order.iter().position(|there| *there == reason).unwrap_or(order.len())
}

/// What goes on, or when it goes on: `3 clusters; 1 being backed up; next at 2026-11-25 03:00:00 UTC`.
fn told(observed: &Observed<'_>, decided: &[Decided<'_>], clusters: &[ScheduledCluster]) -> String {
    let all = count(decided.len(), "cluster");
    let busy =
        decided.iter().filter(|one| one.begins.is_some() || matches!(one.cluster.turn, Turn::UnderWay(_))).count();
    let waiting = decided.iter().filter(|one| {
        let is_due = matches!(one.cluster.turn, Turn::Due { .. });
        is_due && one.begins.is_none()
    });
    let busy = (busy > 0).then(|| format!("{busy} being backed up"));
    let waiting = Some(waiting.count()).filter(|waiting| *waiting > 0).map(|waiting| format!("{waiting} due"));
    let next = clusters.iter().filter_map(|cluster| cluster.next_schedule_time.as_ref()).map(|time| time.0);
    let next = next.filter(|next| *next > observed.now).min();
    let next = next.map(|next| format!("next at {}", day_and_clock(next)));
    [Some(all), busy, waiting, next].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
