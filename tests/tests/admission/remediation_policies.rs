//! RemediationPolicies, and what a ClusterDeployment says in the same words.

use anyhow::Result;
use e2e::api_server::ApiServer;
use serde_json::{Value, json};

use super::{Admitted, check, deployment, object, refused, refused_at, with};

fn policy() -> Value {
    object("RemediationPolicy", "workers", json!({ "clusterName": "demo", "roles": ["worker"] }))
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn repairs_are_refused_where_they_make_no_sense() -> Result<()> {
    let server = ApiServer::shared().await?;
    let in_cluster = || with(deployment("demo"), "spec.remediation", json!({}));
    for (policy, at) in [(policy(), "spec"), (in_cluster(), "spec.remediation")] {
        let field = |name: &str| format!("{at}.{name}");
        check(&server, [
            (0, "nothing after Replace", policy.clone(), &field("actions"),
                json!([["Replace", "Reboot"], ["RestartServices", "Replace", "Reboot"], ["Reboot", "RestartServices"]]),
                refused_at(&field("actions"), "in the order RestartServices, Reboot, Replace")),
            (0, "in their order", policy.clone(), &field("actions"),
                json!([["Replace"], ["Reboot"], ["RestartServices", "Replace"], ["RestartServices", "Reboot", "Replace"]]), Admitted),
            (0, "none, or one that there is not", policy.clone(), &field("actions"), json!([[], ["Pray"], ["Reboot", "Reboot"]]), refused("")),
            (39, "no count and no percentage", policy.clone(), &field("maxUnhealthy"), json!(["101%", "x", "-1", -1, "3", 5001]), refused("")),
            (39, "a count or a percentage", policy.clone(), &field("maxUnhealthy"), json!([0, 5000, "0%", "30%", "100%"]), Admitted),
            (0, "too short or too long", policy.clone(), &field("unhealthyAfterSeconds"), json!([29, 86401, -1, "30"]), refused("")),
            (0, "too short or too long", policy.clone(), &field("waitSeconds"), json!([29, 86401]), refused("")),
            (0, "too many or none", policy.clone(), &field("maxConcurrent"), json!([0, 101]), refused("")),
        ]).await?;
    }
    check(&server, [
        (0, "no cluster's name", policy(), "spec.clusterName", json!(["", "A", "a".repeat(33)]), refused("")),
        (0, "no role", policy(), "spec.roles", json!([["boss"], ["worker", "worker"]]), refused("")),
        (3, "no label", policy(), "metadata.name", json!(["a".repeat(64), "a.b"]), refused("RFC 1123")),
    ]).await
}
