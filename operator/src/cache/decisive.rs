//! Changes of what forms a cluster that others decide by. While a run works, its cluster's status is written every
//! second: that wakes none of the cluster's Machines.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crds::{ClusterDeployment, KarmadaDeployment, KarmadaDeploymentStatus, ObjectExt};
use parking_lot::Mutex;
use plan::lifecycle::{decisive, without_progress};
use serde::Serialize;

use super::{Kind, Watched};

/// A kind whose objects form clusters.
pub(crate) trait Forms: Kind {
    /// The object without what nobody else decides by.
    fn decided_by(&self) -> impl Serialize;
}

impl Forms for ClusterDeployment {
    fn decided_by(&self) -> impl Serialize {
        without_progress(self)
    }
}

impl Forms for KarmadaDeployment {
    fn decided_by(&self) -> impl Serialize {
        let mut plane = self.clone();
        (plane.metadata.resource_version, plane.metadata.managed_fields) = (None, None);
        plane.status = plane.status.map(|status| KarmadaDeploymentStatus {
            first_installed_at: status.first_installed_at,
            forgotten: status.forgotten,
            compared_since: status.compared_since,
            conditions: decisive(status.conditions),
            ..KarmadaDeploymentStatus::default()
        });
        plane
    }
}

/// What was seen of each object of a kind last, by namespace and name.
#[derive(Default)]
pub(crate) struct Decisive(Mutex<HashMap<(String, String), u64>>);

impl Decisive {
    /// Whether there is something new to decide by: one that is gone always is.
    pub fn is_news<K: Forms>(&self, cache: &Watched<K>, object: &K) -> bool {
        let key = (object.namespace().to_owned(), object.name().to_owned());
        if cache.get(&key.0, &key.1).is_none() {
            self.0.lock().remove(&key);
            return true;
        }
        let digest = digest(object);
        self.0.lock().insert(key, digest) != Some(digest)
    }
}

fn digest<K: Forms>(object: &K) -> u64 {
    let mut hasher = DefaultHasher::new();
    // What cannot be written is never the same as before.
    let text = serde_json::to_string(&object.decided_by());
    text.unwrap_or_else(|_| object.meta().resource_version.clone().unwrap_or_default()).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crds::{ClusterDeployment, KarmadaDeployment};
    use serde_json::{Value, json};

    use super::{Decisive, Watched};

    fn deployment(replicas: i32, status: &Value) -> ClusterDeployment {
        let object = json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterDeployment",
            "metadata": {"name": "a", "namespace": "fleet", "uid": "u"},
            "spec": {"kubernetesVersion": "1.35.4", "controlPlane": {"replicas": replicas}}, "status": status,
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn progress_is_no_news_and_all_else_is() {
        let (cache, decisive) = (Watched::new(&Arc::default()), Decisive::default());
        let is_news = |deployment: &ClusterDeployment| decisive.is_news(&cache, deployment);
        let first = deployment(1, &json!({"message": "installing: etcd, task 1 of 3"}));
        assert!(is_news(&first) && is_news(&first), "it is not there");
        cache.fill(vec![first.clone()]);
        assert!(is_news(&first) && !is_news(&first));
        assert!(!is_news(&deployment(
            1,
            &json!({"message": "installing: etcd, task 2 of 3", "phase": "Provisioning"})
        )));
        assert!(is_news(&deployment(1, &json!({"message": "running", "installedAt": "2026-01-01T00:00:00Z"}))));
        assert!(is_news(&deployment(3, &json!({"message": "running", "installedAt": "2026-01-01T00:00:00Z"}))));
        cache.fill(Vec::new());
        assert!(is_news(&first) && is_news(&first), "it is gone");
    }

    #[test]
    fn how_a_plane_is_is_no_news_to_its_machines_and_what_is_wanted_of_it_is() {
        let plane = |replicas: i32, status: &Value| -> KarmadaDeployment {
            let binary = json!({"controlPlane": {"replicas": replicas}, "artifacts": {"url": "https://b.example.com"}});
            let crds = json!({"bundle": {"url": "https://b.example.com"}});
            let object = json!({
                "apiVersion": "clusterwright.dev/v1alpha1", "kind": "KarmadaDeployment",
                "metadata": {"name": "k", "namespace": "fleet", "uid": "u"},
                "spec": {"version": "1.18.2", "mode": "Binary", "binary": binary, "crds": crds}, "status": status,
            });
            serde_json::from_value(object).unwrap()
        };
        let (cache, decisive) = (Watched::new(&Arc::default()), Decisive::default());
        let is_news = |plane: &KarmadaDeployment| decisive.is_news(&cache, plane);
        let first = plane(1, &json!({"message": "waiting", "lastToken": 1}));
        cache.fill(vec![first.clone()]);
        assert!(is_news(&first) && !is_news(&first));
        assert!(!is_news(&plane(1, &json!({"message": "running", "lastToken": 2}))));
        assert!(is_news(&plane(1, &json!({"comparedSince": "2026-01-01T00:00:00Z"}))));
        let older = json!([{"type": "StoreIsOlder", "status": "True", "reason": "MachineIsNewer", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        assert!(is_news(&plane(1, &json!({"conditions": older}))));
        assert!(is_news(&plane(1, &json!({"firstInstalledAt": "2026-01-01T00:00:00Z"}))));
        assert!(is_news(&plane(3, &json!({"firstInstalledAt": "2026-01-01T00:00:00Z"}))));
    }
}
