//! `spec.encryption` of ClusterDeployments.

use anyhow::Result;
use e2e::api_server::ApiServer;
use serde_json::{Value, json};

use super::{Admitted, check, check_changes, deployment, refused, with};

fn sealed() -> Value {
    deployment("sealed")
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn what_is_encrypted_is_named_and_what_may_not_be_is_refused_by_name() -> Result<()> {
    let resources = "spec.encryption.resources";
    let plugin = |name: &str, endpoint: &str| json!({"provider": "KMSv2", "kms": {"name": name, "endpoint": endpoint}});
    let by_plugin = with(sealed(), "spec.encryption", plugin("vault", "unix:///run/kms/vault.sock"));
    check(&ApiServer::shared().await?, [
        (6, "resources", sealed(), resources, json!([
            ["secrets"], ["secrets", "configmaps", "pods", "*.apps", "jobs.batch"], ["secrets", "widgets.example.com", "*.example.org"],
            ["secrets", "gateways.gateway.networking.k8s.io"]]), Admitted),
        (6, "without Secrets", sealed(), resources, json!([["configmaps"], ["*.apps"]]), refused("secrets are always encrypted")),
        (6, "none", sealed(), resources, json!([[]]), refused("should have at least 1 items")),
        (6, "twice", sealed(), resources, json!([["secrets", "secrets"]]), refused("Duplicate value")),
        (6, "what may not be", sealed(), resources, json!([["secrets", "nodes"]]), refused("encryption.resources: nodes cannot be encrypted; allowed are secrets, configmaps")),
        (6, "what may not be", sealed(), resources,
            json!([["secrets", "*.*"], ["secrets", "*."], ["secrets", "events"], ["secrets", "leases.coordination.k8s.io"], ["secrets", "*.rbac.authorization.k8s.io"],
                ["secrets", "secrets."], ["secrets", "Widgets.example.com"], ["secrets", "*.policy"], ["secrets", "deployments.extensions"]]),
            refused("cannot be encrypted; allowed are")),
        (6, "a plug-in", sealed(), "spec.encryption", json!([
            plugin("vault", "unix:///run/kms/vault.sock"), plugin("a", "unix:///var/lib/kms/x/y.sock")]), Admitted),
        (6, "half of one", sealed(), "spec.encryption", json!([
            {"provider": "KMSv2"}, {"kms": {"name": "a", "endpoint": "unix:///run/kms/a.sock"}}]), refused("give it with KMSv2, and leave it out with Secretbox")),
        (6, "a wildcard with it", by_plugin.clone(), resources, json!([["secrets", "*.apps"]]), refused("each resource is named")),
        (6, "no socket of its own", by_plugin.clone(), "spec.encryption.kms.endpoint",
            json!(["unix:///run/a.sock", "unix:///etc/kubernetes/a.sock", "unix:///run/../etc/a.sock", "unix://@abstract", "tcp://1.2.3.4:5", "unix:///run/kms/a:b"]),
            refused("should match")),
        (6, "no name", by_plugin.clone(), "spec.encryption.kms.name", json!(["a:b", "A", "1", ""]), refused("should")),
        (6, "no patience", by_plugin, "spec.encryption.kms.timeoutSeconds", json!([0, 61]), refused("should be")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_plugin_keeps_its_socket_and_everything_else_may_be_edited() -> Result<()> {
    let kms = |name: &str, endpoint: &str, seconds: i32| json!({"encryption": {
        "provider": "KMSv2", "kms": {"name": name, "endpoint": endpoint, "timeoutSeconds": seconds}}});
    let first = with(deployment("sealed-edited"), "spec.encryption", kms("vault", "unix:///run/kms/vault.sock", 3)["encryption"].clone());
    check_changes(&ApiServer::shared().await?, first, [
        (0, "another socket", kms("vault", "unix:///run/kms/other.sock", 3), refused("give the plug-in behind another endpoint another name")),
        (0, "more patience", kms("vault", "unix:///run/kms/vault.sock", 9), Admitted),
        (0, "another plug-in", kms("other", "unix:///run/kms/other.sock", 3), Admitted),
        (0, "a key", json!({"encryption": null}), Admitted),
    ]).await
}
