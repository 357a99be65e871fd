//! The probe of a plane: a template in it, whose ResourceBinding shows that karmada-controller-manager makes of a change
//! what is to be propagated. It reaches no member. Its policy names a scheduler that there is not, so that the binding
//! is given no member, and allows no member either; and its namespace is made in none.

mod answer;
mod hidden;

use crds::KarmadaDeployment;
use crds::cluster_addon::AppliedObject;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::action::Action;
use super::component::Component;
use super::names::{PROBE, labels};
use super::observed::{HostFacts, Observed};
use super::place::{Hold, Place, Stage, Wanted, object_of};
use super::removal::delete;
use super::restoring::restoring;
use super::upgrade::find;
use crate::cluster_addon::State;
pub(super) use answer::{Probing, probing};
pub(super) use hidden::hidden_by;

/// The entry of the template that changes: when it was given its value.
const ASKED_AT: &str = "askedAt";
/// Keeps Karmada from making a namespace in members.
const NOT_IN_MEMBERS: &str = "namespace.karmada.io/skip-auto-propagation";

/// What was seen of the probe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProbeSeen {
    /// The object of `probe_template()`; `None`: it is not there.
    pub template: Option<Value>,
    /// The object of `probe_binding()`; `None`: it is not there.
    pub binding: Option<Value>,
    /// Why one of them could not be read or written.
    pub refused: Option<String>,
}

impl ProbeSeen {
    /// The template is so, now that it was applied.
    pub fn apply(&mut self, state: State) {
        match state {
            State::There { live, .. } => (self.template, self.refused) = (Some(*live), None),
            State::Refused(why) => self.refused = Some(why),
            // Nothing of it is another one's, and the kind is Kubernetes' own.
            State::Conflicting(_) | State::KindUnknown | State::Missing => {}
        }
    }

    /// When the template was given its value; none: it is not there, or its value is no such time.
    fn asked_at(&self) -> Option<Timestamp> {
        self.template.as_ref()?["data"][ASKED_AT].as_str()?.parse().ok()
    }

    /// Whether the binding was made of the template as it is.
    fn is_answered(&self) -> bool {
        let (Some(template), Some(binding)) = (&self.template, &self.binding) else { return false };
        let (of, of_binding) = (&template["metadata"], &binding["spec"]["resource"]);
        ["uid", "resourceVersion"].iter().all(|field| of[field].is_string() && of[field] == of_binding[field])
    }
}

/// Whether the plane is probed: not while a restore or an upgrade holds its controllers, nor where they are told to
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

/// The template, a ConfigMap.
pub fn template() -> AppliedObject {
    named("v1", "ConfigMap", PROBE)
}

/// The ResourceBinding that Karmada makes of the template.
pub fn binding() -> AppliedObject {
    named("work.karmada.io/v1alpha2", "ResourceBinding", &format!("{PROBE}-configmap"))
}

fn named(api_version: &str, kind: &str, name: &str) -> AppliedObject {
    let metadata = json!({ "name": name, "namespace": PROBE });
    object_of(&json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata }))
}

/// The namespace in which all of it is.
pub fn namespace() -> AppliedObject {
    object_of(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": PROBE } }))
}

/// Removes it from a plane that goes on by itself; none: it is not there, or is going.
pub(super) fn removal(observed: &Observed<'_>) -> Option<Action> {
    delete(Place::Plane, observed.plane.seen()?.left.as_ref()?)
}
