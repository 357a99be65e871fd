//! The ends of quarantines and of claims whose Machine is gone, cut off and refused at every write.

use std::sync::Arc;

use crds::{Host, Machine};
use serde_json::Value;

use super::Observation;
use crate::fake_api::{Cut, FakeApi};
use crate::reconcile::reconcile;

const KEY: &str = "hosts/fleet/h";

/// A Host that the last probe found clean.
fn world(metadata: &str, spec: &str) -> FakeApi {
    let api = FakeApi::default();
    let state = |type_: &str| {
        format!(
            "{{type: {type_}, status: 'True', reason: X, message: '', observedGeneration: 1, lastTransitionTime: '2026-01-01T00:00:00Z'}}"
        )
    };
    let conditions = ["Ready", "Reachable", "Clean"].map(state).join(", ");
    api.put("hosts", &format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: h, namespace: fleet, finalizers: [clusterwright.dev/claimed]{metadata}}}, spec: {{address: 10.0.0.1, ssh: {{credentialsRef: {{name: k}}}}, claimEpoch: 1, {spec}}}, status: {{cleanedEpoch: 1, lastProbeAt: '2026-01-01T00:00:00Z', lastProbeRun: r, conditions: [{conditions}]}}}}"));
    api
}

async fn turns(api: &FakeApi) {
    let ctx = api.context();
    for _ in 0..3 {
        ctx.cache.hosts.fill(api.list::<Host>("hosts"));
        ctx.cache.machines.fill(api.list::<Machine>("machines"));
        for host in api.list::<Host>("hosts") {
            // What goes wrong is tried again by the next turn.
            let _ = reconcile::<Observation>(ctx.clone(), Arc::new(host)).await;
        }
    }
}

async fn survives(world: impl Fn() -> FakeApi, expected: impl Fn(&Value)) {
    let whole = world();
    turns(&whole).await;
    expected(&whole.get(KEY).unwrap());
    let writes = whole.writes();
    turns(&whole).await;
    assert_eq!(whole.writes(), writes, "at rest nothing is written: {:?}", whole.requests());
    for number in 0..writes {
        for kind in [Cut::Before, Cut::After] {
            let api = world();
            api.cut(Some((number, kind)));
            turns(&api).await;
            api.cut(None);
            turns(&api).await;
            expected(&api.get(KEY).unwrap());
        }
        let api = world();
        api.conflict(number, 1);
        turns(&api).await;
        expected(&api.get(KEY).unwrap());
    }
}

const CLAIM: &str = "claimRef: {kind: Machine, name: m, uid: u}";

#[tokio::test]
async fn a_quarantine_that_is_over_ends_whoever_is_cut_off() {
    let forced = "quarantine: {reason: ForceRemoved, message: x, machine: m, since: '2026-01-01T00:00:00Z'}";
    survives(|| world("", forced), |host| assert!(host["spec"]["quarantine"].is_null(), "{host}")).await;
    let failed = forced.replace("ForceRemoved", "JoinFailed");
    survives(
        || world("", &failed),
        |host| {
            assert_eq!(host["spec"]["quarantine"]["reason"], "JoinFailed", "nobody has asked");
            assert_eq!(host["status"]["phase"], "Quarantined");
        },
    )
    .await;
}

#[tokio::test]
async fn a_claim_whose_machine_is_gone_is_told_and_ends_by_release_in_a_quarantine() {
    survives(
        || world("", CLAIM),
        |host| {
            assert_eq!(host["spec"]["claimRef"]["uid"], "u");
            assert!(host["status"]["message"].as_str().unwrap().contains("release=1"), "{host}");
        },
    )
    .await;
    survives(
        || world(", annotations: {clusterwright.dev/release: '1'}", CLAIM),
        |host| {
            assert!(host["spec"]["claimRef"].is_null(), "{host}");
            assert_eq!(host["metadata"]["finalizers"].as_array().map(Vec::len), Some(0));
        },
    )
    .await;
}

#[tokio::test]
async fn a_claim_that_a_lagging_cache_knows_nothing_of_is_kept() {
    let api = world(
        ", annotations: {clusterwright.dev/release: '1'}",
        "claimRef: {kind: Machine, name: m, uid: machines-fleet-m-1}",
    );
    api.put("machines", "{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {name: m, namespace: fleet}, spec: {clusterName: a, role: worker, kubernetesVersion: 1.35.4}}");
    let ctx = api.context();
    ctx.cache.hosts.fill(api.list::<Host>("hosts"));
    ctx.cache.machines.fill(Vec::new());
    let host: Host = api.list("hosts").remove(0);
    let _ = reconcile::<Observation>(ctx, Arc::new(host)).await;
    assert_eq!(api.get(KEY).unwrap()["spec"]["claimRef"]["name"], "m");
}
