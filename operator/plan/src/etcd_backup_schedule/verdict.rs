//! What is said of a whole schedule: the worst that is wrong with one of its clusters, or when it goes on.

use crds::Reason;
use crds::etcd_backup_schedule::ScheduledCluster;

use super::cluster::Turn;
use super::decided::Decided;
use super::observed::Observed;
use super::problem::{Problem, problem};
use crate::message::{count, quote};
use crate::moment::day_and_clock;

/// What is said of the whole schedule.
pub(super) struct Verdict {
    pub is_ready: bool,
    pub is_stalled: bool,
    pub reason: Reason,
    pub message: String,
}

impl Verdict {
    fn ready(reason: Reason, message: String) -> Self {
        Self { is_ready: true, is_stalled: false, reason, message }
    }

    pub fn stalled(reason: Reason, message: String) -> Self {
        Self { is_ready: false, is_stalled: true, reason, message }
    }

    fn reconciling(reason: Reason, message: String) -> Self {
        Self { is_ready: false, is_stalled: false, reason, message }
    }
}

/// The verdict on what was decided.
pub(super) fn verdict(observed: &Observed<'_>, decided: &[Decided<'_>], clusters: &[ScheduledCluster]) -> Verdict {
    let spec = &observed.schedule.spec;
    if spec.suspend {
        return Verdict::stalled(Reason::Suspended, "suspended: nothing begins until spec.suspend is false".into());
    }
    if let (Some(name), []) = (&spec.cluster_name, decided) {
        let message = format!("ClusterDeployment {name} is not there: make it, or correct spec.clusterName");
        return Verdict::reconciling(Reason::ClusterNotFound, message);
    }
    if let (Some(plane), []) = (&spec.karmada_deployment_ref, decided) {
        let message =
            format!("KarmadaDeployment {} is not there: make it, or correct spec.karmadaDeploymentRef", plane.name);
        return Verdict::reconciling(Reason::KarmadaDeploymentNotFound, message);
    }
    if decided.is_empty() {
        return Verdict::ready(Reason::NoClusters, "spec.clusterSelector selects no ClusterDeployment".into());
    }
    if let Some(problem) = worst(observed, decided, clusters) {
        return Verdict::reconciling(problem.reason, problem.message);
    }
    let mut backed_up = decided.iter().zip(clusters).filter(|(one, _)| !one.cluster.is_excluded());
    if let Some((first, _)) = backed_up.find(|(_, cluster)| cluster.last_good.is_none()) {
        let (name, then) = (first.cluster.target.said(), told(observed, decided, clusters));
        let message = format!("{name} has no backup yet; {then}");
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
    // Where others are backed up, one that cannot be is no fault.
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
        Reason::LastVerificationFailed,
        Reason::BackupMissed,
        Reason::BackupShrank,
        Reason::VerificationNotMade,
        Reason::NotInstalled,
    ];
    order.iter().position(|there| *there == reason).unwrap_or(order.len())
}

/// What goes on, or when it goes on: `3 clusters; 1 being backed up; next at 2026-11-25 03:00:00 UTC`.
fn told(observed: &Observed<'_>, decided: &[Decided<'_>], clusters: &[ScheduledCluster]) -> String {
    let spec = &observed.schedule.spec;
    let noun = match (&spec.etcd, &spec.karmada_deployment_ref) {
        (Some(_), _) => "etcd",
        (None, Some(_)) => "plane",
        (None, None) => "cluster",
    };
    let all = count(decided.len(), noun);
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
