//! Requests for machines, and pools of Hosts.

use anyhow::{Result, ensure};
use e2e::api_server::ApiServer;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::{Admitted, admitted, check, check_changes, created, object, refused, refused_at, with};

fn request(name: &str) -> Value {
    object("MachineRequest", name, json!({ "clusterName": "demo", "set": "general", "count": 2 }))
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_request_is_for_a_count_or_for_hosts_of_a_set_of_workers() -> Result<()> {
    let on = |hosts: Value| json!([{ "clusterName": "demo", "set": "general", "hosts": hosts }]);
    let both = json!([{ "clusterName": "demo", "set": "general", "hosts": ["m1"], "hostSelector": {} }]);
    check(&ApiServer::shared().await?, [
        (0, "counts", request("r"), "spec.count", json!([1, 500]), Admitted),
        (0, "no machine", request("r"), "spec.count", json!([0, -1]), refused("greater than or equal to 1")),
        (0, "too many", request("r"), "spec.count", json!([501]), refused("less than or equal to 500")),
        (0, "neither", request("r"), "spec.count", json!([null]), refused_at("spec", "exactly one of count and hosts")),
        (0, "both", request("r"), "spec.hosts", json!([["m1"]]), refused_at("spec", "exactly one of count and hosts")),
        (0, "Hosts", request("r"), "spec", on(json!(["m1", "m2"])), Admitted),
        (0, "no Host", request("r"), "spec", on(json!([])), refused_at("spec.hosts", "at least 1 items")),
        (9, "twice", request("r"), "spec", on(json!(["m1", "m1"])), refused_at("spec.hosts[1]", "Duplicate value")),
        (0, "both", request("r"), "spec", both, refused_at("spec", "exclude each other")),
        (0, "others", request("r"), "spec.set", json!(["control-plane", "etcd"]), refused("for sets of workers")),
        (0, "no time", request("r"), "spec.deadlineSeconds", json!([0, 604_801]), refused("spec.deadlineSeconds")),
        (0, "an ID", request("r"), "spec.requestID", json!(["platform-7/4711", "a", "urn:x:1"]), Admitted),
        (17, "no ID", request("r"), "spec.requestID", json!(["", "a b", "{{ x }}", "a\n", "-"]), refused("")),
        (0, "a policy", request("r"), "spec.onDelete", json!(["Return", "Keep"]), Admitted),
        (0, "another", request("r"), "spec.onDelete", json!(["Delete"]), refused("supported values")),
        (3, "a name", request("r"), "metadata.name", json!(["1a", &"a".repeat(55)]), refused("at most 54 characters")),
    ]).await?;
    let spec = admitted(&ApiServer::shared().await?, request("r")).await?["spec"].take();
    ensure!(spec["deadlineSeconds"] == 3600 && spec["cancel"] == false && spec["onDelete"] == "Return", "{spec}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_request_that_was_made_is_canceled_or_kept_and_not_changed() -> Result<()> {
    let server = ApiServer::shared().await?;
    check_changes(&server, request("ordered"), [
        (15, "kept", json!({ "onDelete": "Keep" }), Admitted),
        (15, "canceled", json!({ "cancel": true }), Admitted),
        (15, "more", json!({ "count": 3 }), refused_at("spec", "only cancel and onDelete")),
        (15, "later", json!({ "deadlineSeconds": 7200 }), refused_at("spec", "only cancel and onDelete")),
        (15, "elsewhere", json!({ "set": "other" }), refused_at("spec", "only cancel and onDelete")),
        (15, "an ID", json!({ "requestID": "x" }), refused_at("spec", "only cancel and onDelete")),
        (15, "a selector", json!({ "hostSelector": {} }), refused_at("spec", "only cancel and onDelete")),
    ]).await?;
    check_changes(&server, with(request("canceled"), "spec.cancel", json!(true)), [
        (15, "wanted again", json!({ "cancel": false }), refused_at("spec", "stays canceled")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_answered_cannot_be_canceled() -> Result<()> {
    let server = ApiServer::shared().await?;
    created(&server, request("answered")).await?;
    let api: Api<crds::MachineRequest> = Api::namespaced(server.client(), "default");
    let answer = Patch::Merge(json!({ "status": { "answeredAt": "2026-01-01T00:00:00Z", "answer": "Fulfilled" } }));
    api.patch_status("answered", &PatchParams::default(), &answer).await?;
    let refused = server.try_patch("machinerequests", "answered", &json!({ "spec": { "cancel": true } })).await?;
    ensure!(refused.message().contains("the request has been answered: delete it"), "{}", refused.message());
    let kept = server.try_patch("machinerequests", "answered", &json!({ "spec": { "onDelete": "Keep" } })).await?;
    ensure!(kept.code == 200, "{}", kept.message());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_machine_without_a_version_has_its_clusters_and_a_pool_selects_as_a_set() -> Result<()> {
    let server = ApiServer::shared().await?;
    let pool = || object("HostPool", "large", json!({}));
    let expression = |operator: &str| json!([{ "key": "rack", "operator": operator }]);
    check(&server, [
        (0, "no version", super::machine("m"), "spec.kubernetesVersion", json!([null]), Admitted),
        (0, "labels", pool(), "spec.hostSelector.matchLabels.size", json!(["large", ""]), Admitted),
        (0, "CPUs", pool(), "spec.hostSelector.minCPUs", json!([0]), refused("greater than or equal to 1")),
        (0, "expressions", pool(), "spec.hostSelector.matchExpressions", json!([expression("Exists")]), Admitted),
        (0, "no values", pool(), "spec.hostSelector.matchExpressions", json!([expression("In")]), refused_at("spec.hostSelector.matchExpressions[0]", "values go with operator In")),
    ]).await
}
