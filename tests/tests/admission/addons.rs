//! Addons and ClusterAddons.

use anyhow::Result;
use e2e::api_server::ApiServer;
use serde_json::{Value, json};

use super::{Admitted, check, check_changes, cluster_addon, many_fields, object, refused, refused_at};

fn addon() -> Value {
    let from = json!([{ "configMapRef": { "name": "agent" } }]);
    object("Addon", "agent", json!({ "clusterSelector": {}, "source": { "manifests": { "from": from } } }))
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn an_addon_has_one_source_and_says_which_clusters_it_is_for() -> Result<()> {
    let server = ApiServer::shared().await?;
    let from = "spec.source.manifests.from";
    let check_of = |field: &str| format!("spec.healthChecks[0].{field}");
    let mut checked = addon();
    checked["spec"]["healthChecks"] = json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "expression": "true" }]);
    let checked = || checked.clone();
    check(&server, [
        (0, "no clusters, or two kinds of them", addon(), "spec.clusterRef", json!([{ "name": "a" }]), refused_at("spec", "exactly one of clusterRef and clusterSelector")),
        (0, "no clusters", addon(), "spec.clusterSelector", json!([null]), refused_at("spec", "exactly one of clusterRef and clusterSelector")),
        (0, "no source", addon(), "spec.source", json!([{}]), refused("source.manifests is required")),
        (0, "no source", addon(), "spec.source", json!([null]), refused("Required value")),
        (0, "nothing in it", addon(), from, json!([[], null]), refused("")),
        (0, "neither or both", addon(), from, json!([[{}], [{ "configMapRef": { "name": "a" }, "secretRef": { "name": "b" } }]]), refused("exactly one of configMapRef and secretRef")),
        (22, "elsewhere", addon(), from, json!([[{ "secretRef": { "name": "a", "namespace": "kube-system" } }]]), refused("unknown field")),
        (0, "a Secret", addon(), from, json!([[{ "secretRef": { "name": "a" } }]]), Admitted),
        (0, "no version", addon(), "spec.version", json!(["", "a b", "-1", "x".repeat(65)]), refused("")),
        (0, "a version", addon(), "spec.version", json!(["1", "v1.2.3-rc.1+x"]), Admitted),
        (0, "a pause without canaries", addon(), "spec.rollout", json!([{ "pauseSeconds": 60 }]), refused_at("spec", "set rollout.canaries too")),
        (0, "out of range", addon(), "spec.rollout", json!([{ "maxConcurrent": 0 }, { "maxConcurrent": 1001 }, { "canaries": 101 }, { "canaries": -1 }]), refused("")),
        (0, "canaries", addon(), "spec.rollout", json!([{ "canaries": 2, "pauseSeconds": 3600, "maxConcurrent": 50 }]), Admitted),
        (0, "named twice, or no name", addon(), "spec.dependsOn", json!([["a", "a"], ["A"], [""]]), refused("")),
        (0, "out of range", addon(), "spec.wave", json!([-1, 101]), refused("")),
        (0, "no policy", addon(), "spec.deletionPolicy", json!(["Keep"]), refused("Unsupported value")),
        (0, "no policy", addon(), "spec.conflicts", json!(["Fight"]), refused("Unsupported value")),
        (0, "out of range", addon(), "spec.resyncSeconds", json!([59, 86401]), refused("")),
        (0, "out of range", addon(), "spec.healthTimeoutSeconds", json!([29, 86401]), refused("")),
        (0, "no kind", checked(), &check_of("kind"), json!(["deployment", ""]), refused("")),
        (0, "no version", checked(), &check_of("apiVersion"), json!(["apps", "Apps/v1"]), refused("")),
        (0, "no expression", checked(), &check_of("expression"), json!(["", "x".repeat(1025)]), refused("")),
        (0, "too many labels", addon(), "spec.clusterSelector.matchLabels", json!([many_fields(33)]), refused("at most 32")),
        (3, "no name", addon(), "metadata.name", json!(["a".repeat(41), "a.b", "A"]), refused("")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_cluster_addon_stays_that_of_its_addon_and_its_cluster() -> Result<()> {
    let server = ApiServer::shared().await?;
    check_changes(&server, cluster_addon("agent-paris"), [
        (0, "another Addon", json!({ "addonRef": { "name": "other" } }), refused("addonRef and clusterRef cannot be changed")),
        (0, "another Cluster", json!({ "clusterRef": { "name": "lyon" } }), refused("addonRef and clusterRef cannot be changed")),
        (0, "no revision", json!({ "revision": "A b" }), refused("revision")),
        (0, "a revision", json!({ "revision": "0a1b2c3d4e", "waitsFor": ["other"] }), Admitted),
    ]).await
}
