//! What is seen in the plane while a member dies: its Clusters, ResourceBindings and Works are watched.

use anyhow::{Context, Result};
use futures::StreamExt;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::reflector::{Store, reflector, store::Writer};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::task::JoinSet;

use super::load::TAINT;
use super::timeline::Facts;
use crate::karmada::works::objects;

/// The watches, for as long as this is kept.
pub struct Observer {
    clusters: Store<DynamicObject>,
    bindings: Store<DynamicObject>,
    works: Store<DynamicObject>,
    _watches: JoinSet<()>,
}

impl Observer {
    /// Begins to watch; `target` is the member to which all is to come.
    pub async fn start(plane: &Client, target: &str) -> Result<Self> {
        let resource = |group: &str, version: &str, kind: &str| {
            ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
        };
        let (of_clusters, of_works) =
            (resource("cluster.karmada.io", "v1alpha1", "Cluster"), resource("work.karmada.io", "v1alpha1", "Work"));
        let mut watches = JoinSet::new();
        let observer = Self {
            clusters: watch(&mut watches, Api::all_with(plane.clone(), &of_clusters), &of_clusters),
            bindings: watch(
                &mut watches,
                objects(plane, "work.karmada.io", "v1alpha2", "ResourceBinding"),
                &resource("work.karmada.io", "v1alpha2", "ResourceBinding"),
            ),
            works: watch(
                &mut watches,
                Api::namespaced_with(plane.clone(), &format!("karmada-es-{target}"), &of_works),
                &of_works,
            ),
            _watches: watches,
        };
        for store in [&observer.clusters, &observer.bindings, &observer.works] {
            store.wait_until_ready().await.context("a watch of the plane has ended")?;
        }
        Ok(observer)
    }

    /// What is seen now; Pods are counted elsewhere.
    pub fn facts(&self, source: &str, target: &str) -> Facts {
        let clusters = self.clusters.state();
        let cluster = clusters.iter().find(|cluster| cluster.name_any() == source);
        Facts {
            ready: cluster.is_some_and(|cluster| is_true(&cluster.data, "Ready")),
            tainted: cluster.is_some_and(|cluster| is_tainted(&cluster.data)),
            moved: self.bound_to(target),
            applied: self.works.state().iter().filter(|work| is_true(&work.data, "Applied")).count(),
            running: 0,
        }
    }

    /// How many ResourceBindings name this member, and no other.
    pub fn bound_to(&self, member: &str) -> usize {
        self.bindings.state().iter().filter(|binding| is_bound_to(&binding.data, member)).count()
    }
}

fn watch(watches: &mut JoinSet<()>, api: Api<DynamicObject>, resource: &ApiResource) -> Store<DynamicObject> {
    let writer = Writer::new(resource.clone());
    let store = writer.as_reader();
    let changes = reflector(writer, watcher(api, watcher::Config::default())).default_backoff().touched_objects();
    watches.spawn(changes.for_each(|_| std::future::ready(())));
    store
}

fn is_true(object: &Value, condition: &str) -> bool {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == condition && one["status"] == "True")
}

fn is_tainted(cluster: &Value) -> bool {
    let mut taints = cluster["spec"]["taints"].as_array().into_iter().flatten();
    taints.any(|taint| taint["key"] == TAINT && taint["effect"] == "NoExecute")
}

fn is_bound_to(binding: &Value, member: &str) -> bool {
    binding["spec"]["clusters"].as_array().is_some_and(|all| all.len() == 1 && all[0]["name"] == member)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{TAINT, is_bound_to, is_tainted, is_true};

    #[test]
    fn a_binding_is_moved_once_it_names_the_other_member_alone() {
        let binding = |names: &[&str]| {
            let clusters: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"spec": {"clusters": clusters}})
        };
        assert!(is_bound_to(&binding(&["target"]), "target"));
        assert!(!is_bound_to(&binding(&["source"]), "target"));
        assert!(!is_bound_to(&binding(&["source", "target"]), "target"));
        assert!(!is_bound_to(&json!({"spec": {}}), "target"));
    }

    #[test]
    fn a_cluster_is_tainted_by_the_taint_that_evicts_alone() {
        let cluster = |key: &str, effect: &str| json!({"spec": {"taints": [{"key": key, "effect": effect}]}});
        assert!(is_tainted(&cluster(TAINT, "NoExecute")));
        assert!(!is_tainted(&cluster(TAINT, "NoSchedule")));
        assert!(!is_tainted(&cluster("cluster.karmada.io/not-ready", "NoExecute")));
        assert!(!is_tainted(&json!({"spec": {}})));
    }

    #[test]
    fn a_condition_that_is_not_there_is_not_true() {
        let object = |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
        assert!(is_true(&object("True"), "Ready"));
        assert!(!is_true(&object("False"), "Ready") && !is_true(&object("True"), "Applied"));
        assert!(!is_true(&json!({}), "Ready"));
    }
}
