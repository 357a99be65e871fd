//! `spec.configuration` of ClusterDeployments: the control plane's parts.

use anyhow::Result;
use e2e::api_server::ApiServer;
use serde_json::{Value, json};

use super::{Admitted, check, deployment, refused, with};

fn demo() -> Value {
    deployment("demo")
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_control_plane_is_configured_by_fields_within_bounds() -> Result<()> {
    let api = "spec.configuration.apiServer";
    let external = with(demo(), "spec.etcd", json!({
        "topology": "External", "endpoints": ["https://10.0.0.1:2379"], "secretRef": {"name": "etcd"},
    }));
    check(&ApiServer::shared().await?, [
        (6, "all of it", demo(), api, json!([{
            "audit": {"policyRef": {"name": "policy"}, "maxAgeDays": 7, "maxBackups": 3, "maxSizeMegabytes": 50},
            "authenticationRef": {"name": "login"}, "requestTimeoutSeconds": 90, "eventTTLSeconds": 7200,
            "admissionPlugins": {"enable": ["AlwaysPullImages"], "disable": ["DefaultStorageClass"]},
            "maxRequestsInflight": 800, "maxMutatingRequestsInflight": 400, "goawayChance": "0.001",
            "shutdownDelaySeconds": 10, "featureGates": {"MutatingAdmissionPolicy": true},
            "extraArgs": {"v": "4", "tls-min-version": "VersionTLS13", "runtime-config": "api/all=true"},
        }]), Admitted),
        (6, "a chance", demo(), &format!("{api}.goawayChance"), json!(["0.0", "0.02", "0.015"]), Admitted),
        (6, "no chance", demo(), &format!("{api}.goawayChance"), json!(["0.03", "1", "0.025", ".1"]), refused("should match")),
        (6, "too long a delay", demo(), &format!("{api}.shutdownDelaySeconds"), json!([30]), refused("less than or equal to 25")),
        (6, "an audit without a policy", demo(), &format!("{api}.audit"), json!([{}]), refused("Required value")),
        (6, "NodeRestriction", demo(), &format!("{api}.admissionPlugins"), json!([{"disable": ["NodeRestriction"]}]),
            refused("NodeRestriction keeps kubelets to their own Nodes")),
        (6, "on and off", demo(), &format!("{api}.admissionPlugins"), json!([{"disable": ["A"], "enable": ["A"]}]),
            refused("a plugin is in enable or in disable")),
        (6, "no gate's name", demo(), &format!("{api}.featureGates"), json!([{"a": true}]), refused("begins with a capital")),
        (6, "an election too soon", demo(), "spec.configuration.etcd",
            json!([{"heartbeatMillis": 500, "electionMillis": 1000}, {"heartbeatMillis": 500}]), refused("at least 5 times")),
        (6, "members of etcd", demo(), "spec.configuration.etcd",
            json!([{"heartbeatMillis": 200, "electionMillis": 2000, "quotaBackendBytes": 4_294_967_296_i64}]), Admitted),
        (6, "an etcd of others", external, "spec.configuration.etcd", json!([{"snapshotCount": 5000}]),
            refused("an external one is configured by its administrator")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn flags_that_have_a_field_or_that_the_cluster_depends_on_are_refused_by_name() -> Result<()> {
    let args = |component: &str| format!("spec.configuration.{component}.extraArgs");
    let ours = "a flag on which the cluster depends";
    check(&ApiServer::shared().await?, [
        (6, "a field", demo(), &args("apiServer"), json!([{"v": "2", "audit-policy-file": "/x", "request-timeout": "1s"}]),
            refused("audit-policy-file: use audit.policyRef")),
        (6, "ours", demo(), &args("apiServer"),
            json!([{"etcd-servers": "x"}, {"secure-port": "1"}, {"authorization-mode": "AlwaysAllow"}, {"client-ca-file": "x"},
                {"anonymous-auth": "false"}, {"service-account-issuer": "x"}, {"encryption-provider-config-automatic-reload": "true"}]),
            refused(ours)),
        (6, "ours, named", demo(), &args("apiServer"), json!([{"v": "2", "etcd-prefix": "x", "bind-address": "::"}]),
            refused("bind-address")),
        (6, "no name", demo(), &args("apiServer"), json!([{"--v": "2"}, {"V": "2"}, {"": "2"}]), refused("without the dashes before it")),
        (6, "two lines", demo(), &args("apiServer"), json!([{"v": "2\n    - --x"}]), refused("should match")),
        (6, "no text", demo(), &args("apiServer"), json!([{"v": 2}]), refused("must be of type string")),
        (6, "ours", demo(), &args("controllerManager"),
            json!([{"kubeconfig": "x"}, {"cluster-cidr": "x"}, {"controllers": "*"}, {"leader-elect": "false"}, {"cluster-signing-duration": "1h"}]),
            refused(ours)),
        (6, "a field", demo(), &args("controllerManager"), json!([{"terminated-pod-gc-threshold": "1"}]),
            refused("terminated-pod-gc-threshold: use terminatedPodGCThreshold")),
        (6, "ours", demo(), &args("scheduler"), json!([{"kubeconfig": "x"}, {"leader-elect-lease-duration": "1s"}]), refused(ours)),
        (6, "a field", demo(), &args("scheduler"), json!([{"config": "x"}]), refused("config: use configurationRef")),
        (6, "others", demo(), &args("scheduler"), json!([{"v": "4"}]), Admitted),
        (6, "OIDC twice", demo(), "spec.configuration.apiServer",
            json!([{"authenticationRef": {"name": "a"}, "extraArgs": {"oidc-issuer-url": "https://x"}}]), refused("exclude each other")),
    ]).await
}
