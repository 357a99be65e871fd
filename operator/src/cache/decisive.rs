//! Changes of ClusterDeployments that others decide by. While a run works, its cluster's status is written every
//! second: that wakes none of the cluster's Machines.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crds::{ClusterDeployment, ObjectExt};
use parking_lot::Mutex;
use plan::lifecycle::without_progress;

use super::Watched;

/// What was seen of each ClusterDeployment last, by namespace and name.
#[derive(Default)]
pub(crate) struct Decisive(Mutex<HashMap<(String, String), u64>>);

impl Decisive {
    /// Whether there is something new to decide by: one that is gone always is.
    pub fn is_news(&self, cache: &Watched<ClusterDeployment>, deployment: &ClusterDeployment) -> bool {
        let key = (deployment.namespace().to_owned(), deployment.name().to_owned());
        if cache.get(&key.0, &key.1).is_none() {
            self.0.lock().remove(&key);
            return true;
        }
        let digest = digest(deployment);
        self.0.lock().insert(key, digest) != Some(digest)
    }
}

fn digest(deployment: &ClusterDeployment) -> u64 {
    let mut hasher = DefaultHasher::new();
    // What cannot be written is never the same as before.
    let text = serde_json::to_string(&without_progress(deployment));
    text.unwrap_or_else(|_| deployment.metadata.resource_version.clone().unwrap_or_default()).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crds::ClusterDeployment;
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
}
