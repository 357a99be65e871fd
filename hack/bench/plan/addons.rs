//! Addons on fleets: so many clusters, each with its ClusterAddons.

use std::error::Error;
use std::hint::black_box;

use crds::{Addon, Cluster, ClusterAddon};
use jiff::Timestamp;
use plan::addon::{Content, Observed, plan};
use plan::naming;
use serde_json::{Value, json};

use crate::cases::Call;

const NOW: &str = "2026-01-01T00:00:00Z";

fn addon(name: &str, depends_on: &[&str], deleted: bool) -> Result<Addon, serde_json::Error> {
    let deleted = deleted.then_some(NOW);
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Addon",
        "metadata": {"name": name, "namespace": "fleet", "uid": name, "finalizers": ["clusterwright.dev/addon-removed"], "deletionTimestamp": deleted},
        "spec": {"clusterSelector": {}, "dependsOn": depends_on, "source": {"manifests": {"from": [{"configMapRef": {"name": "a"}}]}}},
        "status": {"revision": "r", "revisions": ["r"]},
    }))
}

fn ready() -> Value {
    json!([{"type": "Ready", "status": "True", "reason": "X", "message": "", "lastTransitionTime": NOW},
           {"type": "Reachable", "status": "True", "reason": "X", "message": "", "lastTransitionTime": NOW}])
}

fn cluster(name: &str) -> Result<Cluster, serde_json::Error> {
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Cluster", "metadata": {"name": name, "namespace": "fleet"},
        "spec": {"kubeconfigRef": {"name": "k"}}, "status": {"conditions": ready()},
    }))
}

fn there(addon: &str, cluster: &str) -> Result<ClusterAddon, serde_json::Error> {
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterAddon",
        "metadata": {"name": naming::cluster_addon(addon, cluster), "namespace": "fleet", "uid": cluster, "generation": 1},
        "spec": {"addonRef": {"name": addon}, "clusterRef": {"name": cluster}, "revision": "r"},
        "status": {"observedGeneration": 1, "revision": "r", "conditions": ready()},
    }))
}

/// The first of two Addons that all clusters have: at rest, or while both are being deleted.
pub fn first_of_two(clusters: usize, deleted: bool) -> Result<Call, Box<dyn Error>> {
    let now: Timestamp = NOW.parse()?;
    let addons = [addon("first", &[], deleted)?, addon("second", &["first"], deleted)?];
    let names: Vec<String> = (0..clusters).map(|number| format!("c{number:05}")).collect();
    let clusters = names.iter().map(|name| cluster(name)).collect::<Result<Vec<_>, _>>()?;
    let pairs = names.iter().flat_map(|name| ["first", "second"].map(|addon| there(addon, name)));
    let objects = pairs.collect::<Result<Vec<_>, _>>()?;
    let content = Ok(Content { revision: "r".into(), size: 100, is_kept: true });
    Ok(Box::new(move || {
        black_box(plan(&Observed {
            now,
            addon: &addons[0],
            addons: &addons.iter().collect::<Vec<_>>(),
            clusters: &clusters.iter().collect::<Vec<_>>(),
            deployments: &[],
            cluster_addons: &objects.iter().collect::<Vec<_>>(),
            content: &content,
        }));
    }))
}
