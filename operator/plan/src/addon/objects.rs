//! What an Addon makes and deletes: the content of revisions, and a ClusterAddon for each cluster.

use std::collections::BTreeMap;

use crds::names::{finalizer, label};
use crds::references::{LocalRef, controller_ref};
use crds::{Addon, ClusterAddon, ClusterAddonSpec, ObjectExt};

use super::observed::{Action, Observed, Selected};
use super::ordered_removal::Order;
use super::rollout::Decision;
use crate::naming;

/// The most revisions that are kept at once.
const MOST_REVISIONS: usize = 60;

/// What to do for an Addon that stays, and the revisions that are kept then.
pub(super) fn actions(
    observed: &Observed<'_>,
    ours: &[&ClusterAddon],
    selected: &[Selected<'_>],
    (revision, decision): (Option<&String>, &Decision),
) -> (Vec<Action>, Vec<String>) {
    let addon = observed.addon;
    let mut actions = Vec::new();
    if !addon.has_finalizer(finalizer::ADDON) {
        actions.push(Action::AddFinalizer);
    }
    let mut kept = addon.status.as_ref().map(|status| status.revisions.clone()).unwrap_or_default();
    if let (Some(revision), Ok(content)) = (revision, observed.content) {
        if !content.is_kept {
            actions.push(Action::Keep(revision.clone()));
        }
        if !kept.contains(revision) {
            kept.insert(0, revision.clone());
        }
    }
    for one in selected.iter().filter(|one| one.there.is_none_or(|there| !there.is_deleting())) {
        let given = revision.filter(|_| decision.give.iter().any(|name| name == one.cluster.name()));
        let wanted = wanted_spec(addon, one, given);
        if one.there.is_none_or(|there| there.spec != wanted) {
            actions.push(Action::Apply(Box::new(cluster_addon(addon, one.cluster.name(), wanted))));
        }
    }
    let is_selected = |there: &ClusterAddon| {
        let name = there.spec.cluster_ref.name.as_str();
        selected.binary_search_by_key(&name, |one| one.cluster.name()).is_ok()
    };
    let order = Order::new(observed);
    let leaves = |there: &&ClusterAddon| !is_selected(there) && order.goes_first(there).is_none();
    actions.extend(deletions(addon, ours.iter().copied().filter(leaves)));
    let is_used = |name: &String| {
        let has = |there: &&ClusterAddon| {
            let shown = there.status.as_ref().and_then(|status| status.revision.as_ref());
            there.spec.revision.as_ref() == Some(name) || shown == Some(name)
        };
        revision.is_none_or(|revision| revision == name) || ours.iter().any(has)
    };
    actions.extend(kept.iter().filter(|name| !is_used(name)).map(|name| Action::Forget(name.clone())));
    kept.retain(is_used);
    kept.truncate(MOST_REVISIONS);
    (actions, kept)
}

fn wanted_spec(addon: &Addon, one: &Selected<'_>, given: Option<&String>) -> ClusterAddonSpec {
    let before = one.there.and_then(|there| there.spec.revision.clone());
    ClusterAddonSpec {
        addon_ref: LocalRef::new(addon.name()),
        cluster_ref: LocalRef::new(one.cluster.name()),
        revision: given.cloned().or(before),
        waits_for: one.waits_for.clone(),
        deletion_policy: addon.spec.deletion_policy,
    }
}

fn cluster_addon(addon: &Addon, cluster: &str, spec: ClusterAddonSpec) -> ClusterAddon {
    let mut object = ClusterAddon::new(&naming::cluster_addon(addon.name(), cluster), spec);
    object.metadata.namespace = addon.metadata.namespace.clone();
    object.metadata.owner_references = controller_ref(addon).map(|owner| vec![owner]);
    object.metadata.labels = Some(BTreeMap::from([(label::ADDON.to_owned(), addon.name().to_owned())]));
    object
}

/// Each is deleted with the policy that the Addon has now.
pub(super) fn deletions<'a>(addon: &Addon, gone: impl Iterator<Item = &'a ClusterAddon>) -> Vec<Action> {
    let mut actions = Vec::new();
    for there in gone {
        if there.spec.deletion_policy != addon.spec.deletion_policy {
            let spec = ClusterAddonSpec { deletion_policy: addon.spec.deletion_policy, ..there.spec.clone() };
            let cluster = there.spec.cluster_ref.name.clone();
            let mut object = cluster_addon(addon, &cluster, spec);
            object.metadata.name = there.metadata.name.clone();
            actions.push(Action::Apply(Box::new(object)));
        }
        if !there.is_deleting() {
            actions.push(Action::Delete(Box::new(there.clone())));
        }
    }
    actions
}
