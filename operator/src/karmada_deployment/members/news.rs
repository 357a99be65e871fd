//! Changes of what a plane's members depend on: a plane is not looked at because somebody counts in a status.

use std::collections::HashMap;

use crds::names::condition;
use crds::{Conditions, ObjectExt};
use kube::Resource;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// What was seen of each object of a kind last, by namespace and name.
#[derive(Default)]
pub(in crate::karmada_deployment) struct ReadinessNews(Mutex<HashMap<(String, String), Value>>);

impl ReadinessNews {
    /// Whether there is something new to decide by: another object, spec, label or readiness, or that it is going. One
    /// that is gone always is new.
    pub fn is_news(&self, object: &(impl Resource + Conditions), is_there: bool) -> bool {
        let key = (object.namespace().to_owned(), object.name().to_owned());
        if !is_there {
            self.0.lock().remove(&key);
            return true;
        }
        let metadata = object.meta();
        let seen = json!([
            metadata.uid,
            metadata.generation,
            metadata.labels,
            object.is_deleting(),
            object.is_true(condition::READY),
        ]);
        self.0.lock().insert(key, seen.clone()) != Some(seen)
    }
}
