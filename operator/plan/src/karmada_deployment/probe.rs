//! The probe of a plane: a template in it, whose ResourceBinding shows that karmada-controller-manager makes of a
//! change what is to be propagated. It reaches no member. Its policy names a scheduler that there is not, so that the
//! binding is given no member, and allows no member either; and its namespace is made in none.

mod answer;
mod hidden;

use crds::KarmadaDeployment;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::action::Action;
use super::component::Component;
use super::names::{PROBE, labels};
use super::observed::{HostFacts, Observed};
use super::place::{Hold, Place, Stage, Wanted};
use super::probe_seen::ASKED_AT;
use super::removal::delete;
use super::restoring::restoring;
use super::upgrade::find;
pub(super) use answer::{Probing, probing};
pub(super) use hidden::hidden_by;

/// Keeps Karmada from making a namespace in members.
const NOT_IN_MEMBERS: &str = "namespace.karmada.io/skip-auto-propagation";

/// Whether the plane is probed: not while a restore or an upgrade holds its controllers, nor where their flags
/// leave the probe out.
pub fn is_probed(object: &KarmadaDeployment, facts: &HostFacts) -> bool {
    let is_stopped = || {
        let stopped = find(object, facts).map(|upgrade| upgrade.stopped(object)).unwrap_or_default();
        stopped.contains(&Component::ControllerManager)
    };
    hidden_by(object).is_none() && restoring(object, &facts.versions).is_none() && !is_stopped()
}

/// What is to be there before the template is: without the policy another one might propagate it.
pub(super) fn wanted(object: &KarmadaDeployment) -> Vec<Wanted> {
    let mut namespace = super::wanted::namespace(object, PROBE);
    namespace["metadata"]["labels"][NOT_IN_MEMBERS] = json!("true");
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": { "name": PROBE, "namespace": PROBE, "labels": labels(object) },
        "spec": {
            "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap", "namespace": PROBE, "name": PROBE }],
            "schedulerName": PROBE,
            "placement": { "clusterAffinity": { "clusterNames": [PROBE] } },
        },
    });
    // What a paused plane does without is not missing.
    let hold = if object.spec.paused { Hold::Untouched } else { Hold::Free };
    [namespace, policy].map(|manifest| Wanted::in_plane(Stage::Probe, manifest).held(hold)).into()
}

/// The template with the value of this moment.
fn asked(object: &KarmadaDeployment, now: Timestamp) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": PROBE, "namespace": PROBE, "labels": labels(object) },
        "data": { (ASKED_AT): now.to_string() },
    })
}

/// Removes it from a plane that goes on by itself; none: it is not there, or is going.
pub(super) fn removal(observed: &Observed<'_>) -> Option<Action> {
    delete(Place::Plane, observed.plane.seen()?.left.as_ref()?)
}
