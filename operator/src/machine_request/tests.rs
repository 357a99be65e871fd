//! A request through its whole life, cut off and refused at every write.

use std::sync::Arc;

use crds::{ClusterDeployment, HostPool, Machine, MachineRequest, MachineSet};
use serde_json::{Value, json};

use super::Observation;
use crate::fake_api::{Cut, FakeApi};
use crate::reconcile::reconcile;

const GROUP: &str = "apiVersion: clusterwright.dev/v1alpha1";
const REQUEST: &str = "machinerequests/fleet/order";

/// A cluster that stands, its set of workers, and a request for two more.
fn world(spec: &str) -> FakeApi {
    let api = FakeApi::default();
    api.put("clusterdeployments", &format!("{{{GROUP}, kind: ClusterDeployment, metadata: {{name: a, namespace: fleet}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1}}, workers: [{{name: w}}]}}, status: {{installedAt: '2026-01-01T00:00:00Z'}}}}"));
    api.put("machinesets", &format!("{{{GROUP}, kind: MachineSet, metadata: {{name: a-w, namespace: fleet}}, spec: {{clusterName: a, role: worker}}}}"));
    api.put("machinerequests", &format!("{{{GROUP}, kind: MachineRequest, metadata: {{name: order, namespace: fleet}}, spec: {{clusterName: a, set: w, count: 2, {spec}}}}}"));
    // Its deadline is not over.
    api.edit(REQUEST, |request| {
        request["metadata"]["creationTimestamp"] = json!(format!("{:.0}", jiff::Timestamp::now()))
    });
    api
}

async fn turns(api: &FakeApi) {
    let ctx = api.context();
    for _ in 0..6 {
        ctx.cache.cluster_deployments.fill(api.list::<ClusterDeployment>("clusterdeployments"));
        ctx.cache.machine_sets.fill(api.list::<MachineSet>("machinesets"));
        ctx.cache.host_pools.fill(api.list::<HostPool>("hostpools"));
        ctx.cache.machines.fill(api.list::<Machine>("machines"));
        for request in api.list::<MachineRequest>("machinerequests") {
            // What goes wrong is tried again by the next turn.
            let _ = reconcile::<Observation>(ctx.clone(), Arc::new(request)).await;
        }
    }
}

/// Turns of an operator that dies at this write, if it comes to it, and of the next one.
async fn operators(api: &FakeApi, dies_at: Option<(usize, Cut)>) {
    turns(api).await;
    let is_dead = dies_at.is_some_and(|(number, kind)| match kind {
        Cut::Before => api.writes() >= number,
        Cut::After => api.writes() > number,
    });
    if is_dead {
        api.cut(None);
        turns(api).await;
    }
}

/// One Machine becomes Ready, and the request is canceled or deleted.
async fn life(api: &FakeApi, end: &str, dies_at: Option<(usize, Cut)>) {
    operators(api, dies_at).await;
    let machines: Vec<Value> = api.values("machines");
    if let Some(name) = machines.first().and_then(|machine| machine["metadata"]["name"].as_str()) {
        api.edit(&format!("machines/fleet/{name}"), |machine| {
            machine["status"] = json!({ "conditions": [
                {"type": "Ready", "status": "True", "reason": "Running", "message": "running", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            ] });
        });
    }
    operators(api, dies_at).await;
    if api.get(REQUEST).is_some() {
        api.edit(REQUEST, |request| match end {
            "cancel" => request["spec"]["cancel"] = json!(true),
            _ => request["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
        });
    }
    operators(api, dies_at).await;
}

/// Names of the Machines, whether they stay, and whether they are the request's.
fn machines(api: &FakeApi) -> Vec<Value> {
    let machines: Vec<Value> = api.values("machines");
    let told = |machine: &Value| {
        let metadata = &machine["metadata"];
        let of_request = metadata["labels"]["clusterwright.dev/machine-request"].clone();
        json!([metadata["name"], metadata["deletionTimestamp"].is_null(), of_request])
    };
    machines.iter().map(told).collect()
}

async fn survives(spec: &str, end: &str, expected: impl Fn(&FakeApi)) {
    let whole = world(spec);
    life(&whole, end, None).await;
    expected(&whole);
    let writes = whole.writes();
    assert!(writes > 5, "{:?}", whole.requests());
    turns(&whole).await;
    assert_eq!(whole.writes(), writes, "at rest nothing is written: {:?}", whole.requests());
    for number in 0..writes {
        for kind in [Cut::Before, Cut::After] {
            let api = world(spec);
            api.cut(Some((number, kind)));
            life(&api, end, Some((number, kind))).await;
            expected(&api);
        }
        let api = world(spec);
        api.conflict(number, 1);
        life(&api, end, None).await;
        expected(&api);
    }
}

fn stay(api: &FakeApi) -> usize {
    machines(api).iter().filter(|machine| machine[1] == true).count()
}

#[tokio::test]
async fn a_request_that_is_canceled_keeps_what_is_ready_whoever_is_cut_off() {
    survives("requestID: ord-7", "cancel", |api| {
        assert_eq!((machines(api).len(), stay(api)), (2, 1), "{:?} {:?}", machines(api), api.get(REQUEST));
        let request = api.get(REQUEST).unwrap();
        assert_eq!(request["status"]["answer"], "PartiallyFulfilled", "{request}");
        let states: Vec<&Value> =
            request["status"]["machines"].as_array().unwrap().iter().map(|machine| &machine["state"]).collect();
        assert!(states.contains(&&json!("Ready")) && states.contains(&&json!("GivenBack")), "{states:?}");
    })
    .await;
}

#[tokio::test]
async fn a_request_that_is_deleted_gives_all_back_whoever_is_cut_off() {
    survives("onDelete: Return", "delete", |api| {
        assert_eq!((machines(api).len(), stay(api)), (2, 0), "{:?}", machines(api));
        assert!(api.get(REQUEST).is_some(), "it waits for them");
    })
    .await;
}

#[tokio::test]
async fn a_request_that_keeps_its_machines_lets_them_go_and_goes_whoever_is_cut_off() {
    survives("onDelete: Keep", "delete", |api| {
        assert_eq!((machines(api).len(), stay(api)), (2, 1), "{:?} {:?}", machines(api), api.get(REQUEST));
        let left = machines(api).into_iter().find(|machine| machine[1] == true).unwrap();
        assert_eq!(left[2], Value::Null, "it is its set's: {left}");
    })
    .await;
}
