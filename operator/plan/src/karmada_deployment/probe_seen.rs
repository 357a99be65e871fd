//! What is seen of the probe of a plane: its template, and what Karmada has made of it.

use crds::cluster_addon::AppliedObject;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::names::PROBE;
use super::place::object_of;
use crate::cluster_addon::State;

/// The entry of the template that changes: when it was given its value.
pub(super) const ASKED_AT: &str = "askedAt";

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
    pub(super) fn asked_at(&self) -> Option<Timestamp> {
        self.template.as_ref()?["data"][ASKED_AT].as_str()?.parse().ok()
    }

    /// Whether the binding was made of the template as it is.
    pub(super) fn is_answered(&self) -> bool {
        let (Some(template), Some(binding)) = (&self.template, &self.binding) else { return false };
        let (of, of_binding) = (&template["metadata"], &binding["spec"]["resource"]);
        ["uid", "resourceVersion"].iter().all(|field| of[field].is_string() && of[field] == of_binding[field])
    }
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
