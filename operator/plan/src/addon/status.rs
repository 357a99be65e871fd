//! What an Addon shows: how many clusters have it, and what the others wait for.

use crds::conditions::{Statement, state};
use crds::kstatus;
use crds::names::{condition, finalizer};
use crds::{AddonStatus, ClusterAddon, Conditions, ObjectExt, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observed::{Observed, Selected};
use super::problem::Problem;
use super::rollout::{Decision, Hold, Member, Standing};
use crate::message::{count, cut};
use crate::moment::day_and_clock;
use crate::naming;

/// What is shown beside what was observed.
pub(super) struct Shown<'a> {
    pub revision: Option<&'a String>,
    pub revisions: Vec<String>,
    pub members: &'a [Member],
    pub decision: &'a Decision,
    pub problem: Option<&'a Problem>,
}

/// What is shown of an Addon that stays.
pub(super) fn status(observed: &Observed<'_>, selected: &[Selected<'_>], shown: &Shown<'_>) -> AddonStatus {
    let old = observed.addon.status.clone().unwrap_or_default();
    let reachable = |one: &&Selected<'_>| one.cluster.is_true(condition::REACHABLE);
    let counted = |wanted: fn(&Member) -> bool| number(shown.members.iter().filter(|member| wanted(member)).count());
    let ready = ready(observed, selected, shown);
    let status = AddonStatus {
        revision: shown.revision.cloned().or(old.revision),
        revisions: shown.revisions.clone(),
        clusters: number(selected.len()),
        updated_clusters: counted(|member| member.standing != Standing::Without),
        healthy_clusters: counted(|member| member.reachable && matches!(member.standing, Standing::Ready(_))),
        unreachable_clusters: number(selected.len() - selected.iter().filter(reachable).count()),
        ..AddonStatus::default()
    };
    finish(observed, status, ready)
}

/// What is shown of an Addon that goes.
/// `held`: one that waits for another Addon to be gone first.
pub(super) fn of_removal(
    observed: &Observed<'_>,
    ours: &[&ClusterAddon],
    held: Option<(&ClusterAddon, &str)>,
) -> AddonStatus {
    let old = observed.addon.status.clone().unwrap_or_default();
    let first = match held {
        Some((there, later)) => {
            Some(format!("; {}: Addon {later}, which comes after it, is removed first", there.name()))
        }
        None => ours.first().and_then(|there| {
            let message = there.status.as_ref()?.message.clone()?;
            Some(format!("; {}: {message}", there.name()))
        }),
    };
    let message = match observed.addon.has_finalizer(finalizer::ADDON) {
        true => {
            format!("is being deleted: waiting for {}{}", count(ours.len(), "ClusterAddon"), first.unwrap_or_default())
        }
        false => "is being deleted".to_owned(),
    };
    let ready = Statement::new(condition::READY, false, Reason::Deleting, cut(message));
    finish(observed, old, ready)
}

fn finish(observed: &Observed<'_>, status: AddonStatus, ready: Statement) -> AddonStatus {
    let generation = observed.addon.metadata.generation;
    let mut old = observed.addon.conditions().to_vec();
    let mut statements = vec![ready.clone()];
    let waits = Reason::from_name(&ready.reason).is_none_or(Reason::is_warning) || ready.reason == Reason::Paused;
    kstatus::Standing::new(ready.status == Some(true), waits).report(&ready, &mut old, &mut statements);
    AddonStatus {
        observed_generation: generation,
        message: Some(ready.message),
        conditions: state(&old, &statements, generation, &Time(observed.now)),
        ..status
    }
}

fn number(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn ready(observed: &Observed<'_>, selected: &[Selected<'_>], shown: &Shown<'_>) -> Statement {
    let stated =
        |status: bool, reason: Reason, message: String| Statement::new(condition::READY, status, reason, cut(message));
    let addon = observed.addon;
    if addon.spec.paused {
        let message = "paused: nothing is applied, put back or removed until spec.paused is false".to_owned();
        return stated(false, Reason::Paused, message);
    }
    if let Some(problem) = shown.problem {
        return stated(false, problem.reason, problem.message.clone());
    }
    if selected.is_empty() {
        let message = match &addon.spec.cluster_ref {
            Some(cluster) => format!("no Cluster {} is there", cluster.name),
            None => "no Cluster has the labels that spec.clusterSelector asks for".to_owned(),
        };
        return stated(true, Reason::NoClusters, message);
    }
    let object = |cluster: &str| naming::cluster_addon(addon.name(), cluster);
    if let Some(Hold::CanaryFailed(cluster, why)) = &shown.decision.held_by {
        let message = format!(
            "canary {cluster} has failed, no other cluster gets the change: ClusterAddon {}: {why}",
            object(cluster)
        );
        return stated(false, Reason::CanaryFailed, message);
    }
    let answering: Vec<&Member> = shown.members.iter().filter(|member| member.reachable).collect();
    let failed = answering.iter().filter_map(|member| match &member.standing {
        Standing::Failed(why) => Some((member.cluster.as_str(), why)),
        Standing::Without | Standing::UnderWay | Standing::Ready(_) => None,
    });
    let failed: Vec<(&str, &String)> = failed.collect();
    if let Some((cluster, why)) = failed.first() {
        let message = format!("{} failed: ClusterAddon {}: {why}", count(failed.len(), "cluster"), object(cluster));
        return stated(false, Reason::ClustersFailed, message);
    }
    let is_ready = |member: &&&Member| matches!(member.standing, Standing::Ready(_));
    let done = answering.iter().filter(is_ready).count();
    let version = addon.spec.shown_version().map(|version| format!(" version {version}")).unwrap_or_default();
    let silent: Vec<&str> =
        shown.members.iter().filter(|member| !member.reachable).map(|member| member.cluster.as_str()).collect();
    let beside = match silent.first() {
        None => String::new(),
        Some(first) if silent.len() == 1 => format!("; {first} does not answer"),
        Some(first) => format!("; {first} and {} do not answer", count(silent.len() - 1, "other cluster")),
    };
    if done == answering.len() {
        return stated(true, Reason::AllReady, format!("{} Ready{version}{beside}", count(done, "cluster")));
    }
    let waits = waits(selected, shown, &answering);
    let message = format!("rolling out{version}: {done} of {} Ready{waits}{beside}", count(answering.len(), "cluster"));
    stated(false, Reason::RollingOut, message)
}

/// What the rollout waits for.
fn waits(selected: &[Selected<'_>], shown: &Shown<'_>, answering: &[&Member]) -> String {
    match &shown.decision.held_by {
        Some(Hold::Pause(until)) => return format!("; the others get it at {}", day_and_clock(*until)),
        Some(Hold::Canaries) => return "; the canaries come first".to_owned(),
        Some(Hold::CanaryFailed(..) | Hold::Concurrency) | None => {}
    }
    let late = answering.iter().find(|member| member.standing == Standing::UnderWay);
    let of = |member: &&&Member| selected.iter().find(|one| one.cluster.name() == member.cluster);
    let says = late.as_ref().and_then(|member| of(member)?.there?.status.as_ref()?.message.clone());
    if let (Some(member), Some(says)) = (late, says) {
        return format!("; {}: {says}", member.cluster);
    }
    let waiting = selected.iter().find(|one| !one.waits_for.is_empty());
    waiting
        .map(|one| format!("; {} waits for Addon {} to be Ready there", one.cluster.name(), one.waits_for.join(", ")))
        .unwrap_or_default()
}
