//! Promises of the drain, kept by the Machine controller as it runs: cut off at every write to either API, refused by
//! budgets and by an API server that is ill, and overtaken by Pods that come and go meanwhile.

use std::sync::Arc;
use std::time::Duration;

use crds::{ClusterDeployment, Host, Machine, PlaybookRun};
use k8s_openapi::api::core::v1::Node;
use plan::Next;
use plan::cluster::NodeSeen;
use serde_json::{Value, json};

use crate::context::Context;
use crate::fake_api::{Cut, FakeApi};
use crate::machine::Observation;
use crate::reconcile::reconcile;
use crate::remote::Key;

const MACHINE: &str = "machines/fleet/w1";
const TURNS: usize = 12;

/// The metadata cluster, and the cluster that a worker leaves.
struct World {
    ours: FakeApi,
    theirs: FakeApi,
}

fn key() -> Key {
    Key { namespace: "fleet".into(), name: "a".into() }
}

impl World {
    /// The worker h1 is deleted, with three Pods on it that a controller of theirs makes anew elsewhere.
    fn new() -> Self {
        let (ours, theirs) = (FakeApi::default(), FakeApi::default());
        let group = "apiVersion: clusterwright.dev/v1alpha1";
        ours.put("clusterdeployments", &format!("{{{group}, kind: ClusterDeployment, metadata: {{name: a, namespace: fleet}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1}}}}, status: {{installedAt: '2026-01-01T00:00:00Z'}}}}"));
        ours.put("machines", &format!("{{{group}, kind: Machine, metadata: {{name: w1, namespace: fleet, finalizers: [clusterwright.dev/release-host], deletionTimestamp: '2026-01-01T00:00:00Z'}}, spec: {{clusterName: a, role: worker, kubernetesVersion: 1.35.4, hostRef: {{name: h1}}}}, status: {{provisionedAt: '2026-01-01T00:00:00Z'}}}}"));
        ours.put("hosts", &format!("{{{group}, kind: Host, metadata: {{name: h1, namespace: fleet, finalizers: [clusterwright.dev/claimed]}}, spec: {{address: 10.0.0.1, ssh: {{credentialsRef: {{name: k}}}}, claimEpoch: 1, claimRef: {{kind: Machine, name: w1, uid: machines-fleet-w1-1}}}}}}"));
        for node in ["h1", "h2"] {
            theirs.put("nodes", &format!("{{apiVersion: v1, kind: Node, metadata: {{name: {node}}}, spec: {{}}, status: {{conditions: [{{type: Ready, status: 'True'}}]}}}}"));
        }
        let world = Self { ours, theirs };
        for name in ["db-0", "db-1", "web-0"] {
            world.pod(name, "h1");
        }
        world
    }

    /// The worker stays, and somebody is to work on it.
    fn maintained() -> Self {
        let world = Self::new();
        world.ours.edit(MACHINE, |machine| {
            machine["metadata"].as_object_mut().unwrap().remove("deletionTimestamp");
            machine["spec"]["drainFor"] = json!(["Maintenance"]);
        });
        world
    }

    fn is_cordoned(&self) -> bool {
        self.theirs.get("nodes//h1").unwrap()["spec"]["unschedulable"] == json!(true)
    }

    /// Whether no Pod is left on the machine, and each was moved once.
    fn assert_drained(&self, when: &str) {
        let pods = self.pods();
        assert!(self.is_cordoned() && pods.iter().all(|pod| pod.ends_with("on h2")), "{when}: {pods:?}");
        assert!(pods.iter().all(|pod| pod.contains("-2 ")), "{when}: moved once each: {pods:?}");
        assert_eq!(self.drained(), ("True".into(), "Drained".into()), "{when}");
    }

    /// The finalizer is its kubelet.
    fn pod(&self, name: &str, node: &str) {
        put_pod(&self.theirs, name, node);
    }

    fn budget(&self, app: &str, allowed: i32) {
        self.theirs.put("poddisruptionbudgets", &format!("{{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {{name: keep-{app}, namespace: shop}}, spec: {{selector: {{matchLabels: {{app: {app}}}}}}}, status: {{disruptionsAllowed: {allowed}}}}}"));
    }

    /// An operator that has just started.
    fn operator(&self) -> Arc<Context> {
        let ctx = self.ours.context();
        ctx.remote.put(&key(), self.theirs.client());
        ctx
    }

    /// One look, one pass of the Machine, and what kubelets and controllers of theirs do about it.
    async fn turn(&self, ctx: &Arc<Context>) -> Option<Next> {
        let cache = &ctx.cache;
        cache.cluster_deployments.fill(self.ours.list::<ClusterDeployment>("clusterdeployments"));
        cache.hosts.fill(self.ours.list::<Host>("hosts"));
        cache.machines.fill(self.ours.list::<Machine>("machines"));
        cache.runs.fill(self.ours.list::<PlaybookRun>("playbookruns"));
        cache.clusters.fill(Vec::new());
        let nodes = self.theirs.list::<Node>("nodes").into_iter().map(NodeSeen::from_node);
        ctx.remote.show(&key(), nodes.collect());
        let mut next = None;
        for machine in self.ours.list::<Machine>("machines") {
            // What goes wrong is tried again by the next turn.
            next = reconcile::<Observation>(ctx.clone(), Arc::new(machine)).await.ok().map(|pass| pass.next);
        }
        self.kubelets();
        next
    }

    async fn turns(&self, number: usize) {
        let ctx = self.operator();
        for _ in 0..number {
            self.turn(&ctx).await;
        }
    }

    /// Pods that were asked to go are gone, and come back on the other node.
    fn kubelets(&self) {
        for pod in self.theirs.values("pods") {
            if pod["metadata"]["deletionTimestamp"].is_string() {
                let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
                self.theirs.edit(&format!("pods/shop/{name}"), |pod| {
                    pod["metadata"]["finalizers"] = json!([]);
                });
                self.pod(&name, "h2");
            }
        }
    }

    /// Pods by name, with the node that they are on and how often they were made.
    fn pods(&self) -> Vec<String> {
        let pods = self.theirs.values("pods");
        let told = |pod: &Value| {
            let node = pod["spec"]["nodeName"].as_str().unwrap();
            format!("{} on {node}", pod["metadata"]["uid"].as_str().unwrap())
        };
        pods.iter().map(told).collect()
    }

    /// Status, reason and message of a condition.
    fn says(&self, type_: &str) -> (String, String, String) {
        let machine = self.ours.get(MACHINE).unwrap();
        let conditions = machine["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|condition| condition["type"] == type_);
        let found = found.cloned().unwrap_or_default();
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    fn drained(&self) -> (String, String) {
        let (status, reason, _) = self.says("Drained");
        (status, reason)
    }

    /// How often Events of a reason were told.
    fn events(&self, reason: &str) -> u64 {
        let events = self.ours.values("events");
        let of_reason = events.iter().filter(|event| event["reason"] == reason);
        let times = |event: &Value| event["series"]["count"].as_u64().unwrap_or(1);
        of_reason.map(times).sum()
    }

    /// The end of every drain that is not held up: nothing is done twice, and nothing to another Pod.
    fn assert_over(&self, place: &str) {
        assert_eq!(
            self.pods(),
            ["pods-shop-db-0-2 on h2", "pods-shop-db-1-2 on h2", "pods-shop-web-0-2 on h2"],
            "{place}"
        );
        let mut evicted = self.theirs.evicted();
        evicted.sort();
        assert_eq!(evicted, ["pods-shop-db-0-1", "pods-shop-db-1-1", "pods-shop-web-0-1"], "{place}");
        // An operator that died before it said so finds no Node to drain.
        let (status, reason) = self.drained();
        assert_eq!(status, "True", "{place}");
        let is_over = ["Drained", "NothingToDrain"].contains(&reason.as_str());
        assert!(is_over, "{place}: {reason}");
        assert_eq!(self.says("Deleting").1, "WaitingForReset", "{place}");
        assert_eq!(self.theirs.get("nodes//h1"), None, "{place}");
        assert!(self.theirs.get("nodes//h2").is_some(), "{place}");
        let claim = &self.ours.get("hosts/fleet/h1").unwrap()["spec"]["claimRef"];
        assert_eq!(claim["name"], "w1", "{place}: it is not clean yet");
    }
}

fn put_pod(api: &FakeApi, name: &str, node: &str) {
    let app = name.split('-').next().unwrap();
    api.put("pods", &format!("{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: shop, labels: {{app: {app}}}, finalizers: [kubelet]}}, spec: {{nodeName: {node}, containers: []}}}}"));
}

#[tokio::test]
async fn pods_behind_any_number_that_need_not_go_are_asked_to_go_under_their_budgets() {
    let of_node = "ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: d, controller: true}]";
    for (metadata, phase) in [("labels: {}", "Succeeded"), ("labels: {}", "Failed"), (of_node, "Running")] {
        let world = World::new();
        for number in 0..1200 {
            world.theirs.put("pods", &format!("{{apiVersion: v1, kind: Pod, metadata: {{name: a-{number:04}, namespace: shop, {metadata}}}, spec: {{nodeName: h1}}, status: {{phase: {phase}}}}}"));
        }
        world.budget("db", 0);
        world.turns(4).await;
        let there =
            |world: &World| world.pods().iter().filter(|pod| pod.contains("-db-") && pod.ends_with("on h1")).count();
        assert_eq!(there(&world), 2, "{phase}: {:?}", world.says("Drained"));
        assert_ne!(world.drained().0, "True", "{phase}");
    }
}

#[tokio::test]
async fn a_worker_is_cordoned_drained_and_taken_out_and_at_rest_nothing_is_written() {
    let world = World::new();
    world.turns(TURNS).await;
    world.assert_over("undisturbed");
    let requests = world.theirs.requests();
    assert_eq!(requests[0], "PATCH nodes//h1", "cordoned first: {requests:?}");
    assert_eq!(requests.len(), 5, "one cordon, three evictions, one deletion: {requests:?}");
    let before = (world.ours.writes(), world.theirs.writes());
    world.turns(TURNS).await;
    assert_eq!((world.ours.writes(), world.theirs.writes()), before);
    assert_eq!(world.events("Drained"), 1);
}

/// Rows 1 and 2: a write that did not arrive, one whose answer was lost, and an operator that begins anew after it.
#[tokio::test]
async fn an_operator_that_dies_at_any_write_of_a_drain_is_followed_by_one_that_ends_it_the_same_rows_1_and_2() {
    let whole = World::new();
    whole.turns(TURNS).await;
    for kind in [Cut::Before, Cut::After] {
        for number in 0..whole.theirs.writes() {
            let world = World::new();
            world.theirs.cut(Some((number, kind)));
            world.turns(4).await;
            world.theirs.cut(None);
            world.turns(TURNS).await;
            let requests = world.theirs.requests();
            world.assert_over(&format!("their API cut off {kind:?} write {number}: {requests:?}"));
        }
        for number in 0..whole.ours.writes() {
            let world = World::new();
            world.ours.cut(Some((number, kind)));
            world.turns(4).await;
            world.ours.cut(None);
            world.turns(TURNS).await;
            let requests = world.ours.requests();
            world.assert_over(&format!("our API cut off {kind:?} write {number}: {requests:?}"));
        }
    }
}

#[tokio::test]
async fn conflicts_at_any_write_of_a_drain_are_tried_again_row_5() {
    let whole = World::new();
    whole.turns(TURNS).await;
    for times in [1, 20] {
        for number in 0..whole.theirs.writes() {
            let world = World::new();
            world.theirs.conflict(number, times);
            world.turns(TURNS + times).await;
            world.assert_over(&format!("{times} conflicts of their API from write {number}"));
        }
        for number in 0..whole.ours.writes() {
            let world = World::new();
            world.ours.conflict(number, times);
            world.turns(TURNS + times).await;
            world.assert_over(&format!("{times} conflicts of our API from write {number}"));
        }
    }
}

#[tokio::test]
async fn pods_that_a_budget_holds_stay_are_named_with_it_and_go_once_it_lets_them() {
    let world = World::new();
    world.budget("db", 1);
    let ctx = world.operator();
    for _ in 0..4 {
        world.turn(&ctx).await;
    }
    let (status, reason, message) = world.says("Drained");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "PodsBlocked"));
    assert!(
        message.starts_with("1 Pod is left: shop/db-1 (PodDisruptionBudget keep-db); goes on without"),
        "{message}"
    );
    let blocked = world.ours.get(MACHINE).unwrap()["status"]["blockedPods"].clone();
    let uid = "pods-shop-db-1-1";
    assert_eq!(blocked, json!([{ "namespace": "shop", "name": "db-1", "uid": uid, "budgets": ["keep-db"] }]));
    assert_eq!(world.theirs.evicted(), ["pods-shop-db-0-1", "pods-shop-web-0-1"], "the others went");
    assert!(world.theirs.get("nodes//h1").is_some());
    assert_eq!(world.events("PodsBlocked"), 1, "told once");
    let before = world.ours.writes();
    world.turn(&ctx).await;
    assert_eq!(world.ours.writes(), before, "a drain that is held up writes nothing");
    world.theirs.edit("poddisruptionbudgets/shop/keep-db", |budget| {
        budget["status"]["disruptionsAllowed"] = json!(1);
    });
    world.turns(TURNS).await;
    world.assert_over("the budget let it go");
}

#[tokio::test]
async fn an_api_that_says_when_to_ask_again_is_left_alone_until_then_row_6() {
    let check = async |seconds: u32, expected: u64| {
        let world = World::new();
        let cause = json!([{ "reason": "DisruptionBudget", "message": "still being processed" }]);
        let details = json!({ "causes": cause, "retryAfterSeconds": seconds });
        world.theirs.refuse("POST pods/", 3, 429, details);
        let next = world.turn(&world.operator()).await;
        assert_eq!(next, Some(Next::After(Duration::from_secs(expected))));
        world.turns(TURNS).await;
        world.assert_over("in the end");
    };
    check(0, 5).await;
    check(10, 10).await;
    check(3600, 60).await;
}

/// No budget is blamed for an API server that is busy.
#[tokio::test]
async fn an_api_server_that_is_busy_is_told_in_its_own_words() {
    let world = World::new();
    world.budget("db", 1);
    world.theirs.refuse("POST pods/shop/db-0", 1, 429, json!({ "retryAfterSeconds": 1 }));
    world.turn(&world.operator()).await;
    let message = world.says("Drained").2;
    assert!(message.contains("shop/db-0 (TooManyRequests)"), "{message}");
}

#[tokio::test]
async fn a_pod_that_goes_between_the_look_and_the_eviction_is_no_trouble() {
    let world = World::new();
    world.theirs.just_before("POST pods/shop/db-0/eviction", |api| {
        api.edit("pods/shop/db-0", |pod| {
            pod["metadata"]["finalizers"] = json!([]);
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        });
    });
    let ctx = world.operator();
    world.turn(&ctx).await;
    assert_eq!(world.drained().1, "Draining", "nothing is in the way");
    world.turns(TURNS).await;
    assert_eq!(world.theirs.evicted(), ["pods-shop-db-1-1", "pods-shop-web-0-1"]);
    assert_eq!(world.drained().0, "True");
}

/// A StatefulSet's Pod has the name of the one that went: it is another.
#[tokio::test]
async fn a_pod_that_came_back_under_its_name_is_not_evicted_for_the_one_that_went() {
    let world = World::new();
    world.theirs.just_before("POST pods/shop/db-0/eviction", |api| {
        api.edit("pods/shop/db-0", |pod| {
            pod["metadata"]["finalizers"] = json!([]);
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        });
        put_pod(api, "db-0", "h2");
    });
    world.turns(TURNS).await;
    let evicted = world.theirs.evicted();
    assert_eq!(evicted, ["pods-shop-db-1-1", "pods-shop-web-0-1"]);
    assert!(world.pods().contains(&"pods-shop-db-0-2 on h2".to_owned()));
    assert_eq!(world.drained().0, "True");
}

/// One that was bound to the node before the cordon, and came after the look.
#[tokio::test]
async fn a_pod_that_comes_late_goes_too() {
    let world = World::new();
    world.theirs.just_before("POST pods/shop/web-0/eviction", |api| put_pod(api, "late-0", "h1"));
    world.turns(TURNS).await;
    assert!(world.theirs.evicted().contains(&"pods-shop-late-0-1".to_owned()));
    assert_eq!(world.theirs.get("nodes//h1"), None);
}

#[tokio::test]
async fn an_api_that_fails_halts_the_drain_says_so_and_it_goes_on_by_itself_row_7() {
    let check = async |request: &str, times: usize, reason: &str, said: &str| {
        let world = World::new();
        world.theirs.refuse(request, times, 500, json!({}));
        let ctx = world.operator();
        world.turn(&ctx).await;
        if !reason.is_empty() {
            let (status, told, message) = world.says("Drained");
            assert_eq!((status.as_str(), told.as_str()), ("False", reason), "{request}");
            assert!(message.contains(said), "{request}: {message}");
        }
        assert!(world.theirs.get("nodes//h1").is_some());
        world.turns(TURNS + times).await;
        world.assert_over(request);
    };
    check("GET pods//", 2, "PodsUnknown", "InternalError").await;
    check("POST pods/shop/db-0", 1, "PodsBlocked", "shop/db-0 (InternalError (500 InternalError))").await;
    check("POST pods/", 9, "PodsBlocked", "3 Pods are left").await;
    check("PATCH nodes/", 3, "", "").await;
    check("DELETE nodes/", 3, "", "").await;
}

/// A conflict says that another Pod has the name: what is still there is found by the next look.
#[tokio::test]
async fn an_eviction_that_meets_a_conflict_is_asked_for_again_row_5() {
    for times in [1, 20] {
        let world = World::new();
        world.theirs.refuse("POST pods/", times, 409, json!({}));
        world.turns(TURNS + times).await;
        world.assert_over(&format!("{times} conflicts"));
    }
}

/// Nobody new comes while those that are there go: without the cordon nothing is evicted.
#[tokio::test]
async fn without_the_cordon_nothing_is_evicted() {
    let world = World::new();
    world.theirs.refuse("PATCH nodes/", 5, 500, json!({}));
    world.turns(5).await;
    assert_eq!(world.theirs.evicted(), [""; 0]);
}

#[tokio::test]
async fn a_drain_that_comes_to_no_end_in_its_time_names_pods_and_budgets_and_the_removal_goes_on() {
    let world = World::new();
    world.budget("db", 0);
    world.theirs.refuse("POST pods/shop/web-0", 99, 500, json!({}));
    let ctx = world.operator();
    world.turn(&ctx).await;
    // The time is over.
    world.ours.edit(MACHINE, |machine| {
        for condition in machine["status"]["conditions"].as_array_mut().unwrap() {
            condition["lastTransitionTime"] = json!("2026-01-01T00:00:00Z");
        }
    });
    for _ in 0..3 {
        world.turn(&ctx).await;
    }
    let (status, reason, message) = world.says("Drained");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "TimedOut"));
    for pod in [
        "shop/db-0 (PodDisruptionBudget keep-db)",
        "shop/db-1 (PodDisruptionBudget keep-db)",
        "shop/web-0 (InternalError (500 InternalError))",
    ] {
        assert!(message.contains(pod), "{message}");
    }
    assert!(message.ends_with("the removal goes on"), "{message}");
    assert_eq!(world.events("TimedOut"), 1);
    assert_eq!(world.theirs.get("nodes//h1"), None);
    assert_eq!(world.theirs.evicted(), [""; 0]);
}

/// Row 35: the API of the cluster goes away in the middle, and comes back.
#[tokio::test]
async fn a_drain_waits_for_an_api_that_went_away_row_35() {
    let world = World::new();
    world.budget("db", 0);
    let ctx = world.operator();
    world.turn(&ctx).await;
    ctx.remote.lost(&key());
    ctx.remote.forget(&key());
    let machine = || Arc::new(world.ours.list::<Machine>("machines").remove(0));
    for _ in 0..3 {
        let _ = reconcile::<Observation>(ctx.clone(), machine()).await;
    }
    assert_eq!(world.drained(), ("Unknown".into(), "ClusterUnreachable".into()));
    assert_eq!(world.says("Deleting").1, "ClusterUnreachable");
    assert!(world.theirs.get("nodes//h1").is_some());
    world.theirs.edit("poddisruptionbudgets/shop/keep-db", |budget| {
        budget["status"]["disruptionsAllowed"] = json!(9);
    });
    world.turns(TURNS).await;
    world.assert_over("the API is back");
}

/// The playbooks before a drain could not be played: the machine let nobody in.
fn with_hooks(world: &World) {
    world.ours.edit("clusterdeployments/fleet/a", |deployment| {
        deployment["spec"]["hooks"] = json!({ "beforeDrain": [{ "name": "x" }], "afterRemove": [{ "name": "y" }] });
    });
    let machines = json!({ "h1": { "uid": "machines-fleet-w1-1" } }).to_string();
    world.ours.put("playbookruns", &format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: r, namespace: fleet, annotations: {{clusterwright.dev/machines: '{machines}'}}}}, spec: {{clusterName: a, intent: Remove, steps: [custom-x], hosts: [h1]}}, status: {{phase: Failed, hosts: [{{name: h1, unreachable: true}}]}}}}"));
}

#[tokio::test]
async fn hooks_that_a_machine_goes_without_are_told_once_by_event_and_condition() {
    let world = World::new();
    with_hooks(&world);
    world.turns(TURNS).await;
    world.assert_over("without its hooks");
    let (status, reason, message) = world.says("HooksPlayed");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "PassedOver"));
    assert!(message.starts_with("hooks.beforeDrain was not played"), "{message}");
    assert_eq!(world.events("PassedOver"), 1);
    world.turns(TURNS).await;
    assert_eq!(world.events("PassedOver"), 1);
}

/// Nothing is played any more on a machine that is forgotten, and its object goes in the same pass.
#[tokio::test]
async fn hooks_of_a_machine_that_is_forgotten_are_told_before_it_is_gone() {
    let world = World::new();
    with_hooks(&world);
    world.ours.edit(MACHINE, |machine| {
        machine["metadata"]["annotations"]["clusterwright.dev/force-remove"] = json!("1");
    });
    // Its cluster has written down what it leaves behind.
    world.ours.edit("clusterdeployments/fleet/a", |deployment| {
        deployment["status"]["forgotten"] = json!([{ "uid": "machines-fleet-w1-1", "machine": "w1", "host": "h1", "role": "worker", "provisioned": true, "since": "2026-01-01T00:00:00Z" }]);
    });
    // The cluster's API is gone, too.
    let ctx = world.ours.context();
    let cache = &ctx.cache;
    cache.cluster_deployments.fill(world.ours.list("clusterdeployments"));
    cache.hosts.fill(world.ours.list("hosts"));
    cache.machines.fill(world.ours.list("machines"));
    cache.runs.fill(world.ours.list("playbookruns"));
    let machine = Arc::new(world.ours.list::<Machine>("machines").remove(0));
    reconcile::<Observation>(ctx, machine).await.unwrap();
    assert_eq!(world.ours.get(MACHINE), None);
    assert_eq!(world.events("PassedOver"), 1);
    let events = world.ours.values("events");
    let told = events.iter().find(|event| event["reason"] == "PassedOver").unwrap();
    let note = told["note"].as_str().unwrap();
    assert!(note.starts_with("not played: hooks.beforeDrain, hooks.afterRemove; the machine was removed by"), "{note}");
}

#[tokio::test]
async fn a_machine_that_somebody_works_on_is_drained_and_takes_pods_again_when_it_is_done() {
    let world = World::maintained();
    world.turns(TURNS).await;
    world.assert_drained("undisturbed");
    let before = (world.ours.writes(), world.theirs.writes());
    world.turns(TURNS).await;
    assert_eq!((world.ours.writes(), world.theirs.writes()), before, "at rest nothing is written");
    assert_eq!((world.events("Draining"), world.events("Drained")), (1, 1));
    world.ours.edit(MACHINE, |machine| machine["spec"]["drainFor"] = json!([]));
    world.turns(TURNS).await;
    assert!(!world.is_cordoned());
    assert_eq!(world.drained(), (String::new(), String::new()));
}

#[tokio::test]
async fn an_operator_that_dies_at_any_write_of_such_a_drain_is_followed_by_one_that_ends_it_the_same() {
    let whole = World::maintained();
    whole.turns(TURNS).await;
    for kind in [Cut::Before, Cut::After] {
        for number in 0..whole.theirs.writes() {
            let world = World::maintained();
            world.theirs.cut(Some((number, kind)));
            world.turns(4).await;
            world.theirs.cut(None);
            world.turns(TURNS).await;
            world.assert_drained(&format!("their API cut off {kind:?} write {number}"));
        }
        for number in 0..whole.ours.writes() {
            let world = World::maintained();
            world.ours.cut(Some((number, kind)));
            world.turns(4).await;
            world.ours.cut(None);
            world.turns(TURNS).await;
            world.assert_drained(&format!("our API cut off {kind:?} write {number}"));
        }
    }
}

#[tokio::test]
async fn a_node_that_a_person_has_cordoned_too_stays_so() {
    let world = World::maintained();
    world.theirs.edit("nodes//h1", |node| {
        node["spec"]["unschedulable"] = json!(true);
        let fields = json!({ "f:spec": { "f:unschedulable": {} } });
        node["metadata"]["managedFields"] =
            json!([{ "manager": "kubectl-cordon", "operation": "Update", "fieldsV1": fields }]);
    });
    world.turns(TURNS).await;
    world.assert_drained("cordoned before");
    world.ours.edit(MACHINE, |machine| machine["spec"]["drainFor"] = json!([]));
    world.turns(TURNS).await;
    assert!(world.is_cordoned());
}
