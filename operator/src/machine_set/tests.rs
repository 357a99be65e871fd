//! What a set writes beside making Machines, cut off and refused at every write: it takes Machines over, and puts Hosts
//! aside.

use std::sync::Arc;

use crds::{ClusterDeployment, Host, HostPool, Machine, MachineSet, PlaybookRun};
use serde_json::{Value, json};

use super::Observation;
use crate::fake_api::{Cut, FakeApi};
use crate::reconcile::reconcile;

const GROUP: &str = "apiVersion: clusterwright.dev/v1alpha1";
const OWNED: &str = "labels: {clusterwright.dev/machine-set: a-w}, ownerReferences: [{apiVersion: clusterwright.dev/v1alpha1, kind: MachineSet, name: a-w, uid: machinesets-fleet-a-w-1, controller: true}]";

/// A cluster that stands, and its set of workers.
fn world(replicas: u32) -> FakeApi {
    let api = FakeApi::default();
    api.put("clusterdeployments", &format!("{{{GROUP}, kind: ClusterDeployment, metadata: {{name: a, namespace: fleet}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1}}}}, status: {{installedAt: '2026-01-01T00:00:00Z'}}}}"));
    api.put("machinesets", &format!("{{{GROUP}, kind: MachineSet, metadata: {{name: a-w, namespace: fleet}}, spec: {{clusterName: a, role: worker, replicas: {replicas}}}}}"));
    api
}

fn machine(api: &FakeApi, name: &str, metadata: &str) {
    api.put("machines", &format!("{{{GROUP}, kind: Machine, metadata: {{name: {name}, namespace: fleet, {metadata}}}, spec: {{clusterName: a, role: worker, kubernetesVersion: 1.35.4, hostRef: {{name: h}}}}}}"));
}

fn host(api: &FakeApi, name: &str, more: &str) {
    api.put("hosts", &format!("{{{GROUP}, kind: Host, metadata: {{name: {name}, namespace: fleet}}, spec: {{address: {name}.example, ssh: {{credentialsRef: {{name: k}}}}{more}}}, status: {{cleanedEpoch: 0, conditions: [{{type: Ready, status: 'True', reason: X, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}}}"));
}

async fn turns(api: &FakeApi) {
    let ctx = api.context();
    for _ in 0..4 {
        ctx.cache.cluster_deployments.fill(api.list::<ClusterDeployment>("clusterdeployments"));
        ctx.cache.machines.fill(api.list::<Machine>("machines"));
        ctx.cache.hosts.fill(api.list::<Host>("hosts"));
        ctx.cache.host_pools.fill(api.list::<HostPool>("hostpools"));
        ctx.cache.runs.fill(api.list::<PlaybookRun>("playbookruns"));
        for set in api.list::<MachineSet>("machinesets") {
            // What goes wrong is tried again by the next turn.
            let _ = reconcile::<Observation>(ctx.clone(), Arc::new(set)).await;
        }
    }
}

/// Metadata of the Machines that stay what it is, whoever is cut off.
fn machines(api: &FakeApi) -> Vec<Value> {
    let machines: Vec<Value> = api.values("machines");
    let told = |machine: &Value| {
        let metadata = &machine["metadata"];
        json!([
            metadata["name"],
            metadata["labels"],
            metadata["annotations"],
            metadata["ownerReferences"],
            metadata["deletionTimestamp"]
        ])
    };
    machines.iter().map(told).collect()
}

async fn survives(world: impl Fn() -> FakeApi, expected: impl Fn(&FakeApi)) {
    let whole = world();
    turns(&whole).await;
    expected(&whole);
    let writes = whole.writes();
    assert!(writes > 1, "{:?}", whole.requests());
    turns(&whole).await;
    assert_eq!(whole.writes(), writes, "at rest nothing is written: {:?}", whole.requests());
    for number in 0..writes {
        for kind in [Cut::Before, Cut::After] {
            let api = world();
            api.cut(Some((number, kind)));
            turns(&api).await;
            api.cut(None);
            turns(&api).await;
            assert_eq!(machines(&api), machines(&whole), "cut off {kind:?} write {number}: {:?}", api.requests());
        }
        let api = world();
        api.conflict(number, 1);
        turns(&api).await;
        assert_eq!(machines(&api), machines(&whole), "refused at write {number}: {:?}", api.requests());
    }
}

#[tokio::test]
async fn a_machine_is_taken_over_once_and_one_is_made_whoever_is_cut_off() {
    let offered = || {
        let api = world(2);
        machine(&api, "p", "labels: {clusterwright.dev/machine-set: a-w}");
        api
    };
    survives(offered, |api| {
        assert_eq!(machines(api).len(), 2, "{:?}", machines(api));
        let adopted = api.get("machines/fleet/p").unwrap();
        let owner = &adopted["metadata"]["ownerReferences"][0];
        assert_eq!(owner["uid"], "machinesets-fleet-a-w-1");
        assert_eq!(adopted["metadata"]["annotations"]["clusterwright.dev/ordinal"], "0");
    })
    .await;
}

#[tokio::test]
async fn a_host_is_put_aside_once_and_another_machine_made_whoever_is_cut_off() {
    let failing = || {
        let api = world(1);
        machine(
            &api,
            "m",
            &format!(
                "finalizers: [clusterwright.dev/release-host], annotations: {{clusterwright.dev/ordinal: '0'}}, {OWNED}"
            ),
        );
        host(&api, "h", ", claimEpoch: 1, claimRef: {kind: Machine, name: m, uid: machines-fleet-m-1}");
        host(&api, "i", "");
        host(&api, "j", "");
        let deployment: ClusterDeployment = api.list("clusterdeployments").remove(0);
        let wanted = plan::provisioning::wanted(&deployment);
        for attempt in 0..3 {
            api.put("playbookruns", &format!("{{{GROUP}, kind: PlaybookRun, metadata: {{name: r{attempt}, namespace: fleet, annotations: {{clusterwright.dev/machines: '{{\"h\": {{\"uid\": \"machines-fleet-m-1\"}}}}', clusterwright.dev/attempt: '{attempt}', clusterwright.dev/wanted: {wanted}}}}}, spec: {{clusterName: a, intent: Join, steps: [node], hosts: [h]}}, status: {{phase: Failed, finishedAt: '2026-01-01T00:00:00Z', hosts: [{{name: h, failed: 1, failure: {{step: node, task: t, reason: PackageNotFound, message: no}}}}]}}}}"));
        }
        api
    };
    survives(failing, |api| {
        let given_up = api.get("machines/fleet/m").unwrap();
        let metadata = &given_up["metadata"];
        assert!(metadata["deletionTimestamp"].is_string(), "{metadata}");
        let why = metadata["annotations"]["clusterwright.dev/quarantine"].as_str().unwrap();
        assert!(why.contains("JoinFailed") && why.contains("PackageNotFound"), "{why}");
        assert_eq!(machines(api).len(), 2, "one other: {:?}", machines(api));
    })
    .await;
}
