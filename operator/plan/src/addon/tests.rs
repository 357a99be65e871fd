//! An Addon in a fleet.

use std::collections::BTreeMap;

use crds::{Addon, Cluster, ClusterAddon, ClusterDeployment, Reason};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Action, Content, Observed, Problem, plan};
use crate::naming::cluster_addon as cluster_addon_name;

const NOW: &str = "2026-01-01T01:00:00Z";

fn addon(more: Value) -> Addon {
    let mut object = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Addon",
        "metadata": {"name": "agent", "namespace": "fleet", "uid": "u", "generation": 1, "finalizers": ["clusterwright.dev/addon-removed"]},
        "spec": {"clusterSelector": {}, "source": {"manifests": {"from": [{"configMapRef": {"name": "agent"}}]}}},
    });
    merge(&mut object, more);
    serde_json::from_value(object).unwrap()
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

fn cluster(name: &str, reachable: bool, labels: Value) -> Cluster {
    let reachable = if reachable { "True" } else { "False" };
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Cluster",
        "metadata": {"name": name, "namespace": "fleet", "labels": labels},
        "spec": {"kubeconfigRef": {"name": format!("{name}-kubeconfig")}},
        "status": {"conditions": [{"type": "Reachable", "status": reachable, "reason": "X", "message": "", "lastTransitionTime": NOW}]},
    }))
    .unwrap()
}

/// An Addon on a cluster: given a revision, and how it stands: `ready`, `failed` or `busy`.
fn there(addon: &str, cluster: &str, revision: &str, standing: &str) -> ClusterAddon {
    let ready = if standing == "ready" { "True" } else { "False" };
    let condition = |type_: &str, status: &str| json!({"type": type_, "status": status, "reason": "X", "message": format!("it is {standing}"), "lastTransitionTime": "2026-01-01T00:59:00Z"});
    let mut conditions = vec![condition("Ready", ready)];
    conditions.extend((standing == "failed").then(|| condition("Stalled", "True")));
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterAddon",
        "metadata": {"name": cluster_addon_name(addon, cluster), "namespace": "fleet", "uid": cluster, "generation": 1},
        "spec": {"addonRef": {"name": addon}, "clusterRef": {"name": cluster}, "revision": revision},
        "status": {"observedGeneration": 1, "revision": revision, "message": format!("it is {standing}"), "conditions": conditions},
    }))
    .unwrap()
}

#[derive(Default)]
struct World {
    others: Vec<Addon>,
    clusters: Vec<Cluster>,
    deployments: Vec<ClusterDeployment>,
    there: Vec<ClusterAddon>,
}

/// What is done, in short, and what is said.
fn planned(world: &World, addon: &Addon, content: Result<&str, Problem>) -> (Vec<String>, crds::AddonStatus) {
    let mut addons: Vec<&Addon> = world.others.iter().collect();
    addons.push(addon);
    let content = content.map(|revision| Content { revision: revision.into(), size: 100, is_kept: true });
    let plan = plan(&Observed {
        now: NOW.parse::<Timestamp>().unwrap(),
        addon,
        addons: &addons,
        clusters: &world.clusters.iter().collect::<Vec<_>>(),
        deployments: &world.deployments.iter().collect::<Vec<_>>(),
        cluster_addons: &world.there.iter().collect::<Vec<_>>(),
        content: &content,
    });
    let short = |action: &Action| match action {
        Action::AddFinalizer => "finalizer".to_owned(),
        Action::Keep(revision) => format!("keep {revision}"),
        Action::Apply(object) => {
            format!("{} {}", object.spec.cluster_ref.name, object.spec.revision.as_deref().unwrap_or("-"))
        }
        Action::Delete(object) => format!("delete {}", object.spec.cluster_ref.name),
        Action::Forget(revision) => format!("forget {revision}"),
        Action::RemoveFinalizer => "release".to_owned(),
    };
    (plan.actions.iter().map(short).collect(), plan.status)
}

fn check(world: &World, addon: &Addon, actions: &[&str], reason: Reason, message: &str) {
    let (done, status) = planned(world, addon, Ok("new"));
    assert_eq!(done, actions);
    let ready = &status.conditions[0];
    assert_eq!((ready.reason.as_str(), ready.message.as_str()), (reason.as_str(), message));
    assert_eq!(status.message.as_deref(), Some(message));
    let kstatus: Vec<&str> = status.conditions[1..].iter().map(|there| there.type_.as_str()).collect();
    let expected: &[&str] = match (ready.status.as_str(), reason.is_warning() || reason == Reason::Paused) {
        ("True", _) => &[],
        (_, true) => &["Stalled"],
        (_, false) => &["Reconciling"],
    };
    assert_eq!(kstatus, expected, "{message}");
}

fn three() -> Vec<Cluster> {
    vec![cluster("a", true, json!({})), cluster("b", true, json!({"stage": "test"})), cluster("dead", false, json!({}))]
}

#[test]
fn every_cluster_that_is_selected_has_its_object_and_those_that_answer_get_the_revision() {
    let mut world = World { clusters: three(), ..World::default() };
    let message = "rolling out: 0 of 2 clusters Ready; dead does not answer";
    check(&world, &addon(json!({})), &["a new", "b new", "dead -"], Reason::RollingOut, message);
    world.there = vec![
        there("agent", "a", "new", "ready"),
        there("agent", "b", "new", "busy"),
        there("agent", "dead", "old", "ready"),
    ];
    let message = "rolling out version 2: 1 of 2 clusters Ready; b: it is busy; dead does not answer";
    check(&world, &addon(json!({"spec": {"version": "2"}})), &[], Reason::RollingOut, message);
    world.there[1] = there("agent", "b", "new", "ready");
    let (_, status) = planned(&world, &addon(json!({})), Ok("new"));
    let counts = (status.clusters, status.updated_clusters, status.healthy_clusters, status.unreachable_clusters);
    assert_eq!(counts, (3, 2, 2, 1));
    check(&world, &addon(json!({})), &[], Reason::AllReady, "2 clusters Ready; dead does not answer");
}

#[test]
fn a_selector_reads_the_labels_of_the_cluster_and_of_its_deployment() {
    let deployment: ClusterDeployment = serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterDeployment",
        "metadata": {"name": "a", "namespace": "fleet", "labels": {"stage": "test"}},
        "spec": {"kubernetesVersion": "1.35.4", "controlPlane": {"replicas": 1}},
    }))
    .unwrap();
    let world = World { clusters: three(), deployments: vec![deployment], ..World::default() };
    let selector = json!({"spec": {"clusterSelector": {"matchLabels": {"stage": "test"}}}});
    check(&world, &addon(selector), &["a new", "b new"], Reason::RollingOut, "rolling out: 0 of 2 clusters Ready");
    let one = json!({"spec": {"clusterRef": {"name": "b"}, "clusterSelector": null}});
    check(&world, &addon(one), &["b new"], Reason::RollingOut, "rolling out: 0 of 1 cluster Ready");
    let none = json!({"spec": {"clusterRef": {"name": "x"}, "clusterSelector": null}});
    check(&world, &addon(none), &[], Reason::NoClusters, "no Cluster x is there");
}

#[test]
fn a_cluster_that_is_selected_no_more_loses_it_and_old_revisions_go() {
    let world = World {
        clusters: vec![cluster("b", true, json!({}))],
        there: vec![
            there("agent", "a", "old", "ready"),
            there("agent", "b", "new", "ready"),
            there("other", "a", "x", "ready"),
        ],
        ..World::default()
    };
    let kept = addon(json!({"status": {"revision": "new", "revisions": ["new", "old", "older"]}}));
    check(&world, &kept, &["delete a", "forget older"], Reason::AllReady, "1 cluster Ready");
    let (_, status) = planned(&world, &kept, Ok("new"));
    assert_eq!(status.revisions, ["new", "old"]);
}

#[test]
fn a_cluster_that_is_selected_again_is_not_ready_before_its_former_object_is_gone() {
    let mut former = there("agent", "a", "new", "ready");
    former.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(NOW.parse().unwrap()));
    let clusters = vec![cluster("a", true, json!({}))];
    let mut world = World { clusters, there: vec![former], ..World::default() };
    check(&world, &addon(json!({})), &[], Reason::RollingOut, "rolling out: 0 of 1 cluster Ready");
    world.there.clear();
    check(&world, &addon(json!({})), &["a new"], Reason::RollingOut, "rolling out: 0 of 1 cluster Ready");
}

#[test]
fn a_failed_canary_holds_up_the_others_and_a_failed_cluster_is_named() {
    let clusters = vec![cluster("a", true, json!({})), cluster("b", true, json!({}))];
    let world = World { clusters, there: vec![there("agent", "a", "new", "failed")], ..World::default() };
    let canary = addon(json!({"spec": {"rollout": {"canaries": 1}}}));
    let message = "canary a has failed, no other cluster gets the change: ClusterAddon agent-a: it is failed";
    check(&world, &canary, &["b -"], Reason::CanaryFailed, message);
    let message = "1 cluster failed: ClusterAddon agent-a: it is failed";
    check(&world, &addon(json!({})), &["b new"], Reason::ClustersFailed, message);
    let world = World { there: vec![there("agent", "a", "new", "ready")], ..world };
    let paused = addon(json!({"spec": {"rollout": {"canaries": 1, "pauseSeconds": 600}}}));
    let message = "rolling out: 1 of 2 clusters Ready; the others get it at 2026-01-01 01:09:00 UTC";
    check(&world, &paused, &["b -"], Reason::RollingOut, message);
}

#[test]
fn it_waits_on_each_cluster_for_what_comes_first() {
    let mut first = addon(json!({"metadata": {"name": "first"}, "status": {"revision": "r"}}));
    first.spec.cluster_selector = None;
    first.spec.cluster_ref = Some(crds::references::LocalRef::new("a"));
    let clusters = vec![cluster("a", true, json!({})), cluster("b", true, json!({}))];
    let mut world = World { others: vec![first], clusters, ..World::default() };
    let later = addon(json!({"spec": {"dependsOn": ["first"]}}));
    let message = "rolling out: 0 of 2 clusters Ready; a waits for Addon first to be Ready there";
    check(&world, &later, &["a -", "b new"], Reason::RollingOut, message);
    world.there = vec![there("first", "a", "older", "ready")];
    check(&world, &later, &["a -", "b new"], Reason::RollingOut, message);
    world.there = vec![there("first", "a", "r", "ready")];
    check(&world, &later, &["a new", "b new"], Reason::RollingOut, "rolling out: 0 of 2 clusters Ready");
}

#[test]
fn what_is_wrong_with_it_is_said_and_clusters_keep_what_they_have() {
    let world = World { clusters: three(), there: vec![there("agent", "a", "old", "ready")], ..World::default() };
    let problem = Problem { reason: Reason::ConfigMapNotFound, message: "ConfigMap agent is not there".into() };
    let (done, status) =
        planned(&world, &addon(json!({"status": {"revision": "old", "revisions": ["old"]}})), Err(problem));
    assert_eq!(done, ["b -", "dead -"]);
    assert_eq!(status.message.as_deref(), Some("ConfigMap agent is not there"));
    assert_eq!((status.revision.as_deref(), status.updated_clusters), (Some("old"), 1));
    let paused = "paused: nothing is applied, put back or removed until spec.paused is false";
    check(&world, &addon(json!({"spec": {"paused": true}})), &[], Reason::Paused, paused);
}

#[test]
fn an_addon_that_is_deleted_goes_after_its_objects_and_with_its_policy() {
    let mut world = World { there: vec![there("agent", "a", "new", "ready")], ..World::default() };
    let going = |more: Value| {
        let mut object = json!({"metadata": {"deletionTimestamp": NOW}});
        merge(&mut object, more);
        addon(object)
    };
    let message = "is being deleted: waiting for 1 ClusterAddon; agent-a: it is ready";
    check(&world, &going(json!({})), &["delete a"], Reason::Deleting, message);
    check(
        &world,
        &going(json!({"spec": {"deletionPolicy": "Orphan"}})),
        &["a new", "delete a"],
        Reason::Deleting,
        message,
    );
    world.there.clear();
    let kept = going(json!({"status": {"revisions": ["new"]}}));
    let gone = "is being deleted: waiting for 0 ClusterAddons";
    check(&world, &kept, &["forget new", "release"], Reason::Deleting, gone);
    check(&world, &going(json!({})), &["release"], Reason::Deleting, "is being deleted: waiting for 0 ClusterAddons");
}

#[test]
fn what_came_last_goes_first_on_each_cluster() {
    let going = |name: &str, more: Value| {
        let mut object = json!({"metadata": {"name": name, "deletionTimestamp": NOW}});
        merge(&mut object, more);
        addon(object)
    };
    let later = going("later", json!({"spec": {"dependsOn": ["agent"]}}));
    let there = vec![
        there("agent", "a", "new", "ready"),
        there("agent", "b", "new", "ready"),
        there("later", "a", "x", "ready"),
    ];
    let mut world = World { others: vec![later], there, clusters: three(), ..World::default() };
    let first = going("agent", json!({}));
    let message =
        "is being deleted: waiting for 2 ClusterAddons; agent-a: Addon later, which comes after it, is removed first";
    check(&world, &first, &["delete b"], Reason::Deleting, message);
    // One that stays holds up nothing; nor does one that comes before.
    world.others[0] = addon(json!({"metadata": {"name": "later"}, "spec": {"dependsOn": ["agent"]}}));
    let (done, _) = planned(&world, &first, Ok("new"));
    assert_eq!(done, ["delete a", "delete b"]);
    world.others[0] = going("later", json!({}));
    let waved = going("agent", json!({"spec": {"wave": 1}}));
    assert_eq!(planned(&world, &waved, Ok("new")).0, ["delete a", "delete b"]);
    // The same where a cluster is selected no more.
    let selector = json!({"spec": {"clusterSelector": {"matchLabels": {"stage": "test"}}}});
    let mut later = addon(selector.clone());
    later.metadata.name = Some("later".into());
    later.spec.wave = 3;
    world.others[0] = later;
    let done = |world: &World| planned(world, &addon(selector.clone()), Ok("new")).0;
    assert_eq!(done(&world), Vec::<String>::new(), "b has it, and a waits");
    world.there.retain(|there| there.spec.addon_ref.name == "agent");
    assert_eq!(done(&world), ["delete a"]);
}

/// An Addon's object says how many clusters there are, and never which: it is as large for a thousand as for ten.
#[test]
fn a_thousand_clusters_make_no_object_large() {
    let size = |clusters: usize, standing: &str| {
        let names: Vec<String> = (0..clusters).map(|number| format!("cluster-of-the-fleet-{number:04}")).collect();
        let world = World {
            clusters: names.iter().map(|name| cluster(name, true, json!({}))).collect(),
            there: names.iter().map(|name| there("agent", name, "new", standing)).collect(),
            ..World::default()
        };
        let mut addon = addon(json!({}));
        let (_, status) = planned(&world, &addon, Ok("new"));
        assert_eq!(status.clusters, i32::try_from(clusters).unwrap());
        addon.status = Some(status);
        let of_each = world.there.iter().map(|there| serde_json::to_vec(there).unwrap().len()).max().unwrap();
        assert!(of_each < 2000, "{of_each} bytes");
        serde_json::to_vec(&addon).unwrap().len()
    };
    for standing in ["ready", "failed", "busy"] {
        let (few, many) = (size(10, standing), size(1000, standing));
        assert!(many < 4096 && many - few < 64, "{standing}: {few} and {many} bytes");
    }
}

#[test]
fn names_of_cluster_addons_fit_and_differ() {
    assert_eq!(cluster_addon_name("agent", "paris"), "agent-paris");
    let long = "c".repeat(60);
    let names = [&long, &format!("{long}d"), &"a.b".to_owned(), &"a-b.c".to_owned()]
        .map(|cluster| cluster_addon_name(&"a".repeat(40), cluster));
    let mut by_name = BTreeMap::new();
    for name in names {
        assert!(name.len() <= 63, "{name}");
        assert_eq!(by_name.insert(name, ()), None);
    }
}

/// Played to its end: each cluster does what it was given.
#[test]
fn a_rollout_settles_and_never_has_more_clusters_under_way_than_allowed() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let clusters = names.iter().map(|name| cluster(name, *name != "c", json!({}))).collect();
    let mut world = World { clusters, ..World::default() };
    let rolled = addon(
        json!({"spec": {"rollout": {"canaries": 1, "maxConcurrent": 2}}, "status": {"revision": "new", "revisions": ["new"]}}),
    );
    for turn in 0..20 {
        let (done, status) = planned(&world, &rolled, Ok("new"));
        if done.is_empty() && status.conditions[0].status == "True" {
            assert!(turn > 3, "one after the other");
            assert_eq!(status.healthy_clusters, 6);
            return;
        }
        for done in &done {
            let (name, revision) = done.split_once(' ').unwrap();
            world.there.retain(|there| there.spec.cluster_ref.name != name);
            let mut given = there("agent", name, revision, "busy");
            given.spec.revision = (revision != "-").then(|| revision.to_owned());
            world.there.push(given);
        }
        let busy = |there: &&ClusterAddon| {
            there.spec.revision.is_some() && there.status.as_ref().unwrap().message.as_deref() == Some("it is busy")
        };
        let most = if world.there.iter().any(|one| !busy(&one) && one.spec.revision.is_some()) { 2 } else { 1 };
        let busy: Vec<String> = world.there.iter().filter(busy).map(|one| one.spec.cluster_ref.name.clone()).collect();
        assert!(busy.len() <= most && !busy.contains(&"c".to_owned()), "{busy:?}");
        if let Some(first) = busy.first() {
            let ready = there("agent", first, "new", "ready");
            world.there.retain(|one| one.spec.cluster_ref.name != *first);
            world.there.push(ready);
        }
    }
    panic!("it does not settle");
}
