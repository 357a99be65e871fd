//! The Addon that `spec.addons` becomes: it applies the manifests, and keeps them as they are wanted.

use std::collections::BTreeMap;

use crds::addon::{AddonDeletionPolicy, AddonRollout, AddonSource, AddonSpec, ConflictPolicy, Manifests, ManifestsRef};
use crds::names::label;
use crds::references::{LocalRef, controller_ref};
use crds::{Addon, ObjectExt};

use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::state::ClusterState;
use crate::naming;

/// How often it is compared, and how long its objects may take: as with any Addon of which nobody says otherwise.
const RESYNC_SECONDS: i32 = 600;

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let there = state.observed.addon;
    let is_ours = there.is_none_or(|there| there.is_owned_by(state.deployment.uid()));
    let is_going = there.is_some_and(ObjectExt::is_deleting);
    // One that is somebody else's is reported, and left alone.
    if !is_ours || is_going {
        return Proposal::default();
    }
    match (state.deployment.spec.addon_manifests(), there) {
        (Some(manifests), there) => {
            let spec = spec(&state.name, manifests);
            match there.is_none_or(|there| there.spec != beside(&spec, &there.spec)) {
                true => Proposal::actions(vec![Action::ApplyAddon(Box::new(addon(state, spec)))]),
                false => Proposal::default(),
            }
        }
        (None, Some(there)) => Proposal::actions(vec![Action::DeleteAddon(Box::new(there.clone()))]),
        (None, None) => Proposal::default(),
    }
}

/// The spec with what others may add to it: applying it would not take that away.
fn beside(spec: &AddonSpec, there: &AddonSpec) -> AddonSpec {
    AddonSpec {
        version: there.version.clone(),
        depends_on: there.depends_on.clone(),
        health_checks: there.health_checks.clone(),
        ..spec.clone()
    }
}

fn spec(cluster: &str, manifests: &LocalRef) -> AddonSpec {
    let from = ManifestsRef { config_map_ref: Some(manifests.clone()), secret_ref: None, bundle: None };
    AddonSpec {
        cluster_ref: Some(LocalRef::new(cluster)),
        cluster_selector: None,
        source: AddonSource { manifests: Some(Manifests { from: vec![from], template: true }), chart: None },
        version: None,
        depends_on: Vec::new(),
        wave: 0,
        deletion_policy: AddonDeletionPolicy::Delete,
        // Whoever gives manifests to a cluster that is being built means them.
        conflicts: ConflictPolicy::Force,
        paused: false,
        rollout: AddonRollout::default(),
        health_checks: Vec::new(),
        health_timeout_seconds: RESYNC_SECONDS,
        resync_seconds: RESYNC_SECONDS,
    }
}

fn addon(state: &ClusterState<'_>, spec: AddonSpec) -> Addon {
    let mut addon = Addon::new(&naming::own_addon(&state.name), spec);
    addon.metadata.namespace = state.deployment.metadata.namespace.clone();
    addon.metadata.owner_references = controller_ref(state.deployment).map(|owner| vec![owner]);
    addon.metadata.labels = Some(BTreeMap::from([(label::CLUSTER.into(), state.name.clone())]));
    addon
}
