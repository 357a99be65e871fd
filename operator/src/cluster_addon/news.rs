//! Changes of Clusters that what is applied to them depends on. What is said of their Nodes is none.

use std::collections::HashMap;

use crds::names::condition;
use crds::{Cluster, Conditions, ObjectExt};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// What was seen of each Cluster last, by namespace and name.
#[derive(Default)]
pub(crate) struct News(Mutex<HashMap<(String, String), Value>>);

impl News {
    /// Whether there is something new to decide by: one that is gone always is.
    pub fn is_news(&self, cluster: &Cluster, is_there: bool) -> bool {
        let key = (cluster.namespace().to_owned(), cluster.name().to_owned());
        if !is_there {
            self.0.lock().remove(&key);
            return true;
        }
        let status = cluster.status.as_ref();
        let health = [condition::REACHABLE, condition::CONTROL_PLANE_HEALTHY, condition::CERTIFICATES_VALID];
        let health = health.map(|type_| cluster.condition(type_).map(|there| &there.status));
        let seen = json!([
            cluster.uid(),
            cluster.metadata.labels,
            cluster.is_deleting(),
            health,
            status.map(|status| (&status.version, &status.endpoint)),
        ]);
        self.0.lock().insert(key, seen.clone()) != Some(seen)
    }
}
