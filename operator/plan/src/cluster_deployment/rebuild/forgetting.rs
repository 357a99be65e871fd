//! Forgetting: the machines of the past go without being reached, and what was seen of their cluster with them.

use crds::PlaybookRun;
use crds::conditions::Statement;
use crds::names::condition;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Rebuild, Restore, is_old, lack, members, restore, silent_since};
use crate::Next;
use crate::cluster_deployment::Step;
use crate::cluster_deployment::scene::{Member, Scene};
use crate::machine::leaving;
use crate::sentence::count;

/// A rebuild that has begun: the old machines are forgotten, then the cluster is installed as a new one is.
pub(super) fn goes_on(scene: &Scene<'_>, since: Timestamp, works: bool) -> Rebuild {
    let mut rebuild = Rebuild::default();
    let old: Vec<&Member<'_>> = members(scene)
        .filter(|member| is_old(member.machine, since))
        .collect();
    let state = |message: &str| Statement::new(condition::REBUILDING, true, "Rebuilding", message.to_owned());
    if !old.is_empty() {
        let untouched = old.iter().all(|member| member.deleted_at().is_none());
        if untouched && silent_since(scene).is_none() {
            // Somebody answers after all, and nothing has been done yet.
            return rebuild;
        }
        let message = format!(
            "builds the cluster anew: {} are forgotten",
            count(old.len(), "lost machine")
        );
        if works {
            rebuild.steps = forget(scene, &old);
        }
        rebuild.statements.push(state(&message));
        rebuild.lack = lack("Rebuilding", message);
        rebuild.stops = true;
        return rebuild;
    }
    if scene.installed.is_some() {
        return match restore(scene.deployment) {
            Restore::Nothing => rebuild,
        };
    }
    // What was seen of the old cluster is not the new one's: its UID is another.
    let is_old = |made: &Time| made.0 <= since;
    let seen = scene.observed.cluster;
    let seen = seen.filter(|seen| seen.metadata.creation_timestamp.as_ref().is_some_and(is_old));
    if let Some(seen) = seen.filter(|_| works) {
        rebuild.steps.push(Step::DeleteCluster(Box::new(seen.clone())));
        rebuild.stops = true;
        rebuild.next = Some(Next::after_seconds(1));
    }
    rebuild.statements.push(state(
        "builds the cluster anew: it is installed on other machines",
    ));
    rebuild
}

/// Runs on the old machines end, and the machines are deleted, to be forgotten without reaching them.
fn forget(scene: &Scene<'_>, old: &[&Member<'_>]) -> Vec<Step> {
    let on_old = |run: &&&PlaybookRun| {
        let hosts = &run.spec.hosts;
        let named = |member: &&&Member<'_>| {
            member
                .host_name()
                .is_some_and(|host| hosts.iter().any(|there| there == host))
        };
        !run.spec.cancel && old.iter().any(|member| named(&member))
    };
    let cancel = scene.active.iter().filter(on_old);
    let mut steps: Vec<Step> = cancel
        .map(|run| Step::CancelRun(Box::new((*run).clone())))
        .collect();
    for member in old {
        if !leaving::is_forced(member.machine) {
            steps.push(Step::ForceRemoveMachine(Box::new(member.machine.clone())));
        }
        if member.deleted_at().is_none() {
            steps.push(Step::DeleteMachine(Box::new(member.machine.clone())));
        }
    }
    steps
}
