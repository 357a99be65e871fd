//! An Addon, cut off and refused at every write: each cluster has one ClusterAddon, and the revision is kept once.

use std::sync::Arc;

use crds::{Addon, Cluster, ClusterAddon};
use serde_json::{Value, json};

use super::Observation;
use crate::cluster_addon;
use crate::fake_api::{Cut, FakeApi};
use crate::reconcile::reconcile;

const GROUP: &str = "apiVersion: clusterwright.dev/v1alpha1";

/// Two clusters that answer, one that does not, and an Addon for all of them.
fn world() -> FakeApi {
    let api = FakeApi::default();
    for (name, reachable) in [("a", "True"), ("b", "True"), ("dead", "False")] {
        api.put("clusters", &format!("{{{GROUP}, kind: Cluster, metadata: {{name: {name}, namespace: fleet}}, spec: {{kubeconfigRef: {{name: k}}}}, status: {{conditions: [{{type: Reachable, status: '{reachable}', reason: X, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}}}"));
    }
    api.put("configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: agent, namespace: fleet}, data: {a.yaml: '{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}'}}");
    api.put("addons", &format!("{{{GROUP}, kind: Addon, metadata: {{name: agent, namespace: fleet}}, spec: {{clusterSelector: {{}}, source: {{manifests: {{from: [{{configMapRef: {{name: agent}}}}]}}}}}}}}"));
    api
}

async fn turns(api: &FakeApi) {
    let ctx = api.context();
    for _ in 0..4 {
        ctx.cache.clusters.fill(api.list::<Cluster>("clusters"));
        ctx.cache.addons.fill(api.list::<Addon>("addons"));
        ctx.cache.cluster_addons.fill(api.list::<ClusterAddon>("clusteraddons"));
        for addon in api.list::<Addon>("addons") {
            // What goes wrong is tried again by the next turn.
            let _ = reconcile::<Observation>(ctx.clone(), Arc::new(addon)).await;
        }
        for object in api.list::<ClusterAddon>("clusteraddons") {
            let _ = reconcile::<cluster_addon::Observation>(ctx.clone(), Arc::new(object)).await;
        }
    }
}

/// What is there, whoever was cut off.
fn there(api: &FakeApi) -> Vec<Value> {
    let mut names: Vec<Value> = api.names().into_iter().map(Value::String).collect();
    let objects: Vec<Value> = api.values("clusteraddons");
    names.extend(objects.iter().map(|object| json!([object["metadata"]["name"], object["spec"]])));
    names
}

async fn survives(world: impl AsyncFn() -> FakeApi, expected: impl Fn(&FakeApi)) {
    let whole = world().await;
    turns(&whole).await;
    expected(&whole);
    let writes = whole.writes();
    assert!(writes > 1, "{:?}", whole.requests());
    turns(&whole).await;
    assert_eq!(whole.writes(), writes, "at rest nothing is written: {:?}", whole.requests());
    for number in 0..writes {
        for kind in [Cut::Before, Cut::After] {
            let api = world().await;
            api.cut(Some((number, kind)));
            turns(&api).await;
            api.cut(None);
            turns(&api).await;
            assert_eq!(there(&api), there(&whole), "cut off {kind:?} write {number}: {:?}", api.requests());
        }
        let api = world().await;
        api.conflict(number, 1);
        turns(&api).await;
        turns(&api).await;
        assert_eq!(there(&api), there(&whole), "refused at write {number}: {:?}", api.requests());
    }
}

#[tokio::test]
async fn each_cluster_has_one_object_and_the_revision_is_kept_whoever_is_cut_off() {
    survives(
        async || world(),
        |api| {
            let objects: Vec<ClusterAddon> = api.list("clusteraddons");
            let given: Vec<(&str, bool)> = objects
                .iter()
                .map(|object| (object.spec.cluster_ref.name.as_str(), object.spec.revision.is_some()))
                .collect();
            assert_eq!(given, [("a", true), ("b", true), ("dead", false)]);
            let revision = objects[0].spec.revision.clone().unwrap();
            let secret = api.get(&format!("secrets/fleet/agent-{revision}")).unwrap();
            assert_eq!(
                (&secret["immutable"], &secret["metadata"]["ownerReferences"][0]["name"]),
                (&json!(true), &json!("agent"))
            );
            let says = |object: &ClusterAddon| object.status.as_ref().unwrap().message.clone().unwrap();
            assert_eq!(says(&objects[0]), "Cluster a does not answer; it goes on when it does");
            assert_eq!(says(&objects[2]), "waiting for its turn in the rollout");
            let addon: Addon = api.list("addons").remove(0);
            assert_eq!(addon.metadata.finalizers.unwrap(), ["clusterwright.dev/addon-removed"]);
        },
    )
    .await;
}

#[tokio::test]
async fn an_edit_of_the_source_keeps_another_revision_and_forgets_the_one_that_no_cluster_has() {
    let edited = async || {
        let api = world();
        turns(&api).await;
        api.edit("configmaps/fleet/agent", |object| {
            object["data"]["a.yaml"] = json!("{apiVersion: v1, kind: ConfigMap, metadata: {name: y}}");
        });
        api
    };
    let before = world();
    turns(&before).await;
    let kept = |api: &FakeApi| -> Vec<String> {
        api.names().into_iter().filter(|name| name.starts_with("secrets/")).collect()
    };
    let old = kept(&before);
    survives(edited, |api| {
        let now = kept(api);
        assert!(now.len() == 1 && now != old, "{now:?} {old:?}");
    })
    .await;
}

#[tokio::test]
async fn an_addon_that_is_deleted_waits_for_a_dead_cluster_until_it_is_forgotten() {
    let going = async || {
        let api = world();
        turns(&api).await;
        api.edit("clusteraddons/fleet/agent-dead", |object| {
            object["metadata"]["finalizers"] = json!(["clusterwright.dev/objects-removed"]);
            object["status"]["inventory"] =
                json!([{"version": "v1", "kind": "ConfigMap", "namespace": "default", "name": "x"}]);
        });
        api.edit("addons/fleet/agent", |object| {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")
        });
        api
    };
    survives(going, |api| {
        let objects: Vec<ClusterAddon> = api.list("clusteraddons");
        assert_eq!(objects.len(), 1);
        let says = objects[0].status.as_ref().unwrap().message.clone().unwrap();
        assert!(says.contains("clusterwright.dev/force-remove="), "{says}");
        assert_eq!(api.list::<Addon>("addons").len(), 1);
    })
    .await;
    let api = going().await;
    turns(&api).await;
    api.edit("clusteraddons/fleet/agent-dead", |object| {
        let generation = object["metadata"]["generation"].to_string();
        object["metadata"]["annotations"]["clusterwright.dev/force-remove"] = json!(generation);
    });
    turns(&api).await;
    assert!(api.list::<ClusterAddon>("clusteraddons").is_empty() && api.list::<Addon>("addons").is_empty());
}
