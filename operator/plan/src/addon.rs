//! Addon: decides which clusters have it, and which revision of it each of them may have now.

pub mod bundle;
pub mod chart;
mod objects;
mod observed;
mod ordered_removal;
mod problem;
pub mod revision;
pub mod rollout;
pub mod selection;
mod status;

use std::collections::BTreeMap;

use crds::names::{condition, finalizer};
use crds::{Addon, AddonStatus, ClusterAddon, ClusterDeployment, Conditions, ObjectExt, Reason};
use jiff::Timestamp;

use crate::{Next, Plan};
use objects::{actions, deletions};
use observed::Selected;
pub use observed::{Action, Content, Observed};
use ordered_removal::Order;
pub use problem::Problem;
use rollout::{Decision, Hold, Member, Standing, decide};
use selection::{before, labels, selects};

/// How often the source is read: nothing tells of an edit of it.
pub const READ_SOURCE_SECONDS: u64 = 15;
/// The most that a Secret takes of a revision.
const LARGEST_CONTENT: usize = 900_000;

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Action, AddonStatus> {
    let addon = observed.addon;
    let ours: Vec<&ClusterAddon> =
        observed.cluster_addons.iter().copied().filter(|there| there.spec.addon_ref.name == addon.name()).collect();
    if addon.is_deleting() {
        return removal(observed, &ours);
    }
    let wanted = wanted(observed);
    let earlier = before(addon, observed.addons);
    let selected = selected(observed, &ours, earlier.as_deref().unwrap_or_default());
    let known = addon.status.as_ref().and_then(|status| status.revision.clone());
    let shown = wanted.as_ref().ok().or(known.as_ref()).map(String::as_str).unwrap_or_default();
    let members: Vec<Member> = selected.iter().map(|one| member(one, shown)).collect();
    let decision = match (&wanted, &earlier) {
        (Ok(_), Ok(_)) => decide(&members, &addon.spec.rollout, observed.now),
        _ => Decision::default(),
    };
    let problem = wanted.as_ref().err().or(earlier.as_ref().err());
    let (actions, revisions) = match addon.spec.paused {
        true => (Vec::new(), addon.status.as_ref().map(|status| status.revisions.clone()).unwrap_or_default()),
        false => actions(observed, &ours, &selected, (wanted.as_ref().ok(), &decision)),
    };
    let shown =
        status::Shown { revision: wanted.as_ref().ok(), revisions, members: &members, decision: &decision, problem };
    let status = status::status(observed, &selected, &shown);
    let is_ready = status.conditions.iter().any(|there| there.type_ == condition::READY && there.status == "True");
    let waits_for = status.message.clone().filter(|_| !is_ready);
    Plan { actions, next: next(observed.now, &decision), status, waits_for }
}

/// The revision that is wanted, if it can be kept.
fn wanted(observed: &Observed<'_>) -> Result<String, Problem> {
    let content = observed.content.as_ref().map_err(Problem::clone)?;
    if content.size > LARGEST_CONTENT {
        let message = format!(
            "the source is {} bytes when it is compressed, and a revision has at most {LARGEST_CONTENT}: split them into several Addons",
            content.size
        );
        return Err(Problem { reason: Reason::ManifestsTooLarge, message });
    }
    Ok(content.revision.clone())
}

fn selected<'a>(observed: &Observed<'a>, ours: &[&'a ClusterAddon], earlier: &[&Addon]) -> Vec<Selected<'a>> {
    let there: BTreeMap<&str, &ClusterAddon> =
        ours.iter().map(|there| (there.spec.cluster_ref.name.as_str(), *there)).collect();
    let deployments: BTreeMap<&str, &ClusterDeployment> =
        observed.deployments.iter().map(|deployment| (deployment.name(), *deployment)).collect();
    let states: BTreeMap<(&str, &str), &ClusterAddon> = observed
        .cluster_addons
        .iter()
        .map(|there| ((there.spec.addon_ref.name.as_str(), there.spec.cluster_ref.name.as_str()), *there))
        .collect();
    let mut selected: Vec<Selected<'a>> = observed
        .clusters
        .iter()
        .copied()
        .filter(|cluster| !cluster.is_deleting())
        .filter_map(|cluster| {
            let labels = labels(cluster, deployments.get(cluster.name()).copied());
            let name = cluster.name();
            let is_late = |earlier: &&&Addon| {
                let there = states.get(&(earlier.name(), name)).copied();
                selects(earlier, cluster, &labels) && !is_ready_there(earlier, there)
            };
            selects(observed.addon, cluster, &labels).then(|| Selected {
                cluster,
                there: there.get(name).copied(),
                waits_for: earlier.iter().filter(is_late).take(32).map(|addon| addon.name().to_owned()).collect(),
            })
        })
        .collect();
    selected.sort_by_key(|one| one.cluster.name());
    selected
}

/// Whether an Addon is Ready on a cluster, with the revision that it wants now.
fn is_ready_there(addon: &Addon, there: Option<&ClusterAddon>) -> bool {
    let wanted = addon.status.as_ref().and_then(|status| status.revision.as_deref());
    match (wanted, there) {
        (Some(wanted), Some(there)) => matches!(standing(there, wanted), Standing::Ready(_)),
        _ => false,
    }
}

/// How a ClusterAddon stands with a revision.
fn standing(there: &ClusterAddon, revision: &str) -> Standing {
    // One that goes is followed by another one.
    if there.is_deleting() || there.spec.revision.as_deref() != Some(revision) {
        return Standing::Without;
    }
    let status = there.status.as_ref();
    let is_current = status.is_some_and(|status| status.observed_generation == there.metadata.generation);
    if !is_current {
        return Standing::UnderWay;
    }
    let has_it = status.and_then(|status| status.revision.as_deref()) == Some(revision);
    match there.condition(condition::READY) {
        Some(ready) if ready.status == "True" && has_it => {
            let applied = status.and_then(|status| status.applied_at.as_ref());
            Standing::Ready(ready.last_transition_time.0.max(applied.map_or(Timestamp::MIN, |at| at.0)))
        }
        Some(ready) if there.is_true(condition::STALLED) => Standing::Failed(ready.message.clone()),
        _ => Standing::UnderWay,
    }
}

fn member(one: &Selected<'_>, revision: &str) -> Member {
    Member {
        cluster: one.cluster.name().to_owned(),
        reachable: one.cluster.is_true(condition::REACHABLE),
        may_begin: one.waits_for.is_empty() && one.there.is_none_or(|there| !there.is_deleting()),
        standing: one.there.map_or(Standing::Without, |there| standing(there, revision)),
    }
}

/// An Addon that is deleted goes after its ClusterAddons.
fn removal(observed: &Observed<'_>, ours: &[&ClusterAddon]) -> Plan<Action, AddonStatus> {
    let addon = observed.addon;
    let order = Order::new(observed);
    let held = ours.iter().find_map(|there| Some((*there, order.goes_first(there)?)));
    let mut actions = deletions(addon, ours.iter().copied().filter(|there| order.goes_first(there).is_none()));
    if ours.is_empty() && addon.has_finalizer(finalizer::ADDON) {
        // One made anew under its name keeps the same revisions.
        let kept = addon.status.as_ref().map(|status| status.revisions.as_slice()).unwrap_or_default();
        actions.extend(kept.iter().cloned().map(Action::Forget));
        actions.push(Action::RemoveFinalizer);
    }
    let status = status::of_removal(observed, ours, held);
    let waits_for = status.message.clone().filter(|_| !ours.is_empty());
    Plan { actions, status, next: Next::OnChange, waits_for }
}

fn next(now: Timestamp, decision: &Decision) -> Next {
    let read = Next::after_seconds(READ_SOURCE_SECONDS);
    match &decision.held_by {
        Some(Hold::Pause(until)) => {
            let seconds = until.as_second().saturating_sub(now.as_second()).max(1);
            read.or_sooner(Next::after_seconds(u64::try_from(seconds).unwrap_or(1)))
        }
        Some(Hold::CanaryFailed(..) | Hold::Canaries | Hold::Concurrency) | None => read,
    }
}

#[cfg(test)]
mod tests;
