//! A ClusterAddon that is deleted: what was applied is removed first, or stays on the cluster.

use crds::addon::AddonDeletionPolicy;
use crds::cluster_addon::ChartRelease;
use crds::commands::{self, Target};
use crds::conditions::Statement;
use crds::names::{annotation, condition, finalizer};
use crds::{ObjectExt, Reason};

use super::action::{Action, Planned};
use super::chart::leave::{Leaving, leave};
use super::observed::{Contact, Observed, Seen};
use super::pace::{ASK_AGAIN_SECONDS, pause};
use super::removal::{Removal, removal};
use super::status::{self, Told, number};
use crate::attempts::names_generation;
use crate::message::count;
use crate::{Next, Plan};

pub(super) fn plan(observed: &Observed<'_>) -> Planned {
    let object = observed.object;
    if !object.has_finalizer(finalizer::CLUSTER_ADDON) {
        return told(observed, Vec::new(), Next::OnChange, (Reason::Deleting, "is being deleted".into()), None);
    }
    let inventory = object.status.as_ref().map(|status| status.inventory.as_slice()).unwrap_or_default();
    let is_forced = names_generation(&object.metadata, annotation::FORCE_REMOVE);
    let stays = object.spec.deletion_policy == AddonDeletionPolicy::Orphan;
    let release = object.status.as_ref().and_then(|status| status.release.as_ref());
    let has_nothing = inventory.is_empty() && release.is_none();
    if is_forced || stays || has_nothing || observed.cluster.is_none() {
        let message = format!("{} left on the cluster", count(inventory.len(), "object"));
        return told(observed, vec![Action::RemoveFinalizer], Next::OnChange, (Reason::Deleting, message), None);
    }
    if observed.addon.is_some_and(|addon| addon.spec.paused) {
        let message = format!(
            "paused: {} to be removed once spec.paused of the Addon is false",
            count(inventory.len(), "object")
        );
        return told(observed, Vec::new(), Next::OnChange, (Reason::Paused, message), None);
    }
    match observed.contact {
        Contact::Made(seen) => match release {
            Some(release) => uninstall(observed, release, seen),
            None => remove(observed, removal(&seen.leftovers, observed.others)),
        },
        Contact::Lost(why) => wait(observed, &format!("does not answer: {why}")),
        Contact::NotMade => wait(observed, "does not answer"),
    }
}

fn remove(observed: &Observed<'_>, removal: Removal) -> Planned {
    let Some(first) = removal.left.last() else {
        let message = "all objects are gone".to_owned();
        return told(observed, vec![Action::RemoveFinalizer], Next::OnChange, (Reason::RemovingObjects, message), None);
    };
    let message = match &removal.held {
        Some(held) => held.clone(),
        None => format!("deleting {first}; {} left", count(removal.left.len(), "object")),
    };
    let next = Next::after_seconds(pause(observed, condition::APPLIED));
    let actions = removal.delete.into_iter().map(Action::Delete).collect();
    told(observed, actions, next, (Reason::RemovingObjects, message), Some(removal.left.len()))
}

/// A chart's release goes by Helm.
fn uninstall(observed: &Observed<'_>, release: &ChartRelease, seen: &Seen) -> Planned {
    match leave(observed, release, seen) {
        Some(Leaving { actions, release, reason, message, next }) => {
            let mut planned = told(observed, actions, next, (reason, message), None);
            planned.status.release = Some(release);
            planned
        }
        None => {
            let message = format!("release {} is gone", release.name);
            told(observed, vec![Action::RemoveFinalizer], Next::OnChange, (Reason::RemovingObjects, message), None)
        }
    }
}

/// A cluster that does not answer.
fn wait(observed: &Observed<'_>, why: &str) -> Planned {
    let object = observed.object;
    let forget = commands::annotate(
        Target::ClusterAddon,
        &object.metadata,
        annotation::FORCE_REMOVE,
        object.metadata.generation.unwrap_or_default(),
    );
    let message = format!(
        "Cluster {} {why}; its objects are removed when it does; to leave them there and forget them: {forget}",
        object.spec.cluster_ref.name
    );
    told(observed, Vec::new(), Next::after_seconds(ASK_AGAIN_SECONDS), (Reason::ClusterUnreachable, message), None)
}

fn told(
    observed: &Observed<'_>,
    actions: Vec<Action>,
    next: Next,
    (reason, message): (Reason, String),
    left: Option<usize>,
) -> Planned {
    let applied = Statement::new(condition::APPLIED, false, reason, message.clone());
    let healthy = Statement::new(condition::HEALTHY, None, reason, message);
    let mut old = observed.object.status.clone().unwrap_or_default();
    old.unhealthy = None;
    old.objects = left.map_or(old.objects, number);
    let status = status::status(observed, old, Told { applied, healthy });
    let waits_for = status.message.clone();
    Plan { actions, status, next, waits_for }
}
