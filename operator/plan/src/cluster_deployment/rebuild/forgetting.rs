//! Forgetting: the machines of the past go without being reached, and what was seen of their cluster with them.

use crds::conditions::Statement;
use crds::names::condition;
use crds::{Cluster, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Rebuild, Restore, is_old, lack, lost_since, members, restore, silent_since};
use crate::Next;
use crate::cluster_deployment::Step;
use crate::cluster_deployment::scene::{Member, Scene};
use crate::machine::leaving;
use crate::sentence::count;

/// A rebuild that has begun: the old machines are forgotten, then the cluster is installed as a new one is.
pub(super) fn goes_on(scene: &Scene<'_>, since: Timestamp, may_work: bool) -> Rebuild {
    let mut rebuild = Rebuild {
        since: Some(since),
        ..Rebuild::default()
    };
    let old: Vec<&Member<'_>> = members(scene)
        .filter(|member| is_old(member.machine, since))
        .collect();
    let state = |message: &str| Statement::new(condition::REBUILDING, true, "Rebuilding", message.to_owned());
    if !old.is_empty() {
        let touched =
            |member: &&Member<'_>| member.deleted_at().is_some() || lost_since(member.machine).is_some();
        if !old.iter().any(touched) && silent_since(scene).is_none() {
            // Somebody answers after all, and nothing has been done yet.
            return Rebuild::default();
        }
        let message = format!(
            "builds the cluster anew: {} are forgotten",
            count(old.len(), "lost machine")
        );
        // Times are whole seconds: what is made in this one would be taken for old.
        if scene.observed.now <= since {
            rebuild.next = Some(Next::after_seconds(1));
        } else if may_work {
            rebuild.steps = forget(scene, &old, since);
        }
        rebuild.statements.push(state(&message));
        rebuild.lack = lack("Rebuilding", message);
        rebuild.stops = true;
        return rebuild;
    }
    if scene.installed.is_some() {
        return match restore(scene.deployment) {
            Restore::Nothing => Rebuild::default(),
        };
    }
    if let Some(seen) = old_cluster(scene, since).filter(|_| may_work) {
        rebuild.steps.push(Step::DeleteCluster(Box::new(seen.clone())));
        rebuild.stops = true;
        rebuild.next = Some(Next::after_seconds(1));
    }
    rebuild.statements.push(state(
        "builds the cluster anew: it is installed on other machines",
    ));
    rebuild
}

/// What was seen of the old cluster is not the new one's: its UID is another.
fn old_cluster<'a>(scene: &Scene<'a>, since: Timestamp) -> Option<&'a Cluster> {
    let is_old = |made: &Time| made.0 <= since;
    let seen = scene.observed.cluster?;
    let made = seen.metadata.creation_timestamp.as_ref();
    made.is_some_and(is_old).then_some(seen)
}

/// Runs on the old machines end, and the machines are deleted, to be forgotten without reaching them. First it is written
/// on all of them that they are of the past, and what was seen of their cluster goes: while one of them is there, it is
/// known what the others were.
fn forget(scene: &Scene<'_>, old: &[&Member<'_>], since: Timestamp) -> Vec<Step> {
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
    let cancel = cancel.map(|run| Step::CancelRun(Box::new((*run).clone())));
    let unmarked = old.iter().filter(|member| {
        let is_forgotten = leaving::is_forced(member.machine);
        lost_since(member.machine).is_none() || !is_forgotten
    });
    let mark = unmarked.map(|member| Step::ForgetMachine {
        machine: Box::new(member.machine.clone()),
        since,
    });
    let cluster = old_cluster(scene, since);
    let cluster = cluster.map(|seen| Step::DeleteCluster(Box::new(seen.clone())));
    let stay = old.iter().filter(|member| member.deleted_at().is_none());
    let delete = stay.map(|member| Step::DeleteMachine(Box::new(member.machine.clone())));
    cancel.chain(mark).chain(cluster).chain(delete).collect()
}
