//! Estimators of members: made, kept, said, and removed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::karmada_deployment::{ComponentSettings, KarmadaMemberPhase as Phase, MemberEstimator, UnjoinPolicy};
use serde_json::{Value, json};

use super::super::{ESTIMATOR_ACCOUNT, EstimatorDue, Member};
use super::world::World;

/// Members `a` (Push) and `b` (Pull) with estimators.
fn joined(policy: Option<UnjoinPolicy>) -> World {
    let mut world = World::new(policy, &["a", "b"]);
    world.object.spec.estimator = Some(ComponentSettings::default());
    world.name("a", "push");
    world.name("b", "pull");
    world.rest();
    for name in ["a", "b"] {
        assert_eq!(world.said(name), (Phase::Joined, "AllReady".to_owned()), "{:?}", world.row(name));
    }
    world
}

/// Kind and name of what is on the host for a member.
fn on_host(world: &World, name: &str) -> Vec<String> {
    let label = crds::names::label::KARMADA_MEMBER;
    let own = world.host.objects.iter().filter(|live| live["metadata"]["labels"][label] == name);
    let mut all: Vec<String> = own
        .map(|live| format!("{} {}", live["kind"].as_str().unwrap(), live["metadata"]["name"].as_str().unwrap()))
        .collect();
    all.sort();
    all
}

/// What the estimator is in its member.
fn in_member(world: &World, name: &str) -> Vec<String> {
    let own = world.sites[name].api.objects.iter().filter(|live| live["metadata"]["name"] == ESTIMATOR_ACCOUNT);
    own.map(|live| live["kind"].as_str().unwrap().to_owned()).collect()
}

fn secret(world: &World, name: &str, key: &str) -> String {
    let secret = world.host.find("Secret", &format!("k1-estimator-{name}")).unwrap();
    String::from_utf8(STANDARD.decode(secret["data"][key].as_str().unwrap()).unwrap()).unwrap()
}

fn deployment(world: &World, name: &str) -> Value {
    world.host.find("Deployment", &format!("k1-estimator-{name}")).unwrap().clone()
}

/// What the pods of an estimator were made of.
fn digest(world: &World, name: &str) -> Value {
    deployment(world, name)["spec"]["template"]["metadata"]["annotations"]["clusterwright.dev/files"].clone()
}

#[test]
fn a_member_gets_an_estimator_with_an_account_of_its_own_that_reads_what_it_needs() {
    let world = joined(None);
    assert!(world.plan().actions.is_empty());
    for name in ["a", "b"] {
        let made = ["Deployment", "Secret", "Service"].map(|kind| format!("{kind} k1-estimator-{name}"));
        assert_eq!(on_host(&world, name), made);
        assert_eq!(in_member(&world, name).len(), 4, "{:?}", in_member(&world, name));
        let role = world.sites[name].api.find("ClusterRole", ESTIMATOR_ACCOUNT).unwrap();
        for rule in role["rules"].as_array().unwrap() {
            assert_eq!(rule["verbs"], json!(["get", "list", "watch"]));
            assert!(!rule["resources"].to_string().contains("secrets"), "{rule}");
        }
        let kubeconfig: Value = serde_json::from_str(&secret(&world, name, "kubeconfig")).unwrap();
        assert_eq!(kubeconfig["clusters"][0]["cluster"]["server"], format!("https://{name}.example:6443"));
        assert_eq!(kubeconfig["users"][0]["user"], json!({ "tokenFile": "/etc/karmada/member/token" }));
        let command = deployment(&world, name)["spec"]["template"]["spec"]["containers"][0]["command"].clone();
        for flag in [
            &format!("--cluster-name={name}"),
            "--kubeconfig=/etc/karmada/kubeconfig",
            "--grpc-auth-cert-file=/etc/karmada/pki/estimator.crt",
            "--grpc-client-ca-file=/etc/karmada/pki/ca.crt",
        ] {
            assert!(command.as_array().unwrap().contains(&json!(flag)), "{flag}: {command}");
        }
        // Each Service leads to the Pods of its own member.
        let service = world.host.find("Service", &format!("k1-estimator-{name}")).unwrap();
        assert_eq!(service["spec"]["selector"]["clusterwright.dev/karmada-member"], name);
        assert_eq!(service["spec"]["ports"][0]["port"], 10352);
    }
}

#[test]
fn an_estimator_that_does_not_start_is_said_and_its_member_has_joined() {
    let mut world = World::new(None, &["a"]);
    world.object.spec.estimator = Some(ComponentSettings::default());
    world.host_works = false;
    world.name("a", "push");
    world.rest();
    assert_eq!(world.said("a"), (Phase::Joined, "EstimatorProgressing".to_owned()));
    let waiting = json!({ "reason": "CrashLoopBackOff", "message": "back-off" });
    world.pods.push(json!({
        "metadata": { "name": "k1-estimator-a-x", "labels": {
            "app.kubernetes.io/name": "karmada-scheduler-estimator", "clusterwright.dev/karmada-uid": "plane-uid",
            "clusterwright.dev/karmada-member": "a",
        } },
        "status": { "containerStatuses": [{ "image": "i", "state": { "waiting": waiting } }] },
    }));
    world.rest();
    assert_eq!(world.said("a"), (Phase::Joined, "EstimatorNotReady".to_owned()));
    let message = &world.row("a").unwrap().message;
    assert!(message.contains("Pod k1-estimator-a-x: CrashLoopBackOff of i"), "{message}");
    let ready = super::super::members_ready(&world.object.status.as_ref().unwrap().members);
    assert_eq!(ready.status, Some(true));
    assert!(ready.message.contains("1 member without an estimator that works: a: "), "{}", ready.message);
    world.host_works = true;
    world.pods.clear();
    world.rest();
    assert_eq!(world.said("a").1, "AllReady");
}

#[test]
fn a_new_token_of_the_member_is_carried_to_its_estimator_alone() {
    let mut world = joined(None);
    let (before, other) = (digest(&world, "a"), digest(&world, "b"));
    let token = secret(&world, "a", "member.token");
    world.sites.get_mut("a").unwrap().api.delete("ServiceAccount", ESTIMATOR_ACCOUNT);
    world.rest();
    assert_ne!(secret(&world, "a", "member.token"), token);
    assert_ne!(digest(&world, "a"), before);
    assert_eq!(digest(&world, "b"), other);
}

#[test]
fn what_is_taken_from_the_host_is_put_back_also_of_a_member_that_is_dead() {
    let mut world = joined(None);
    world.sites.get_mut("a").unwrap().is_up = false;
    world.rest();
    let before = on_host(&world, "a");
    for kind in ["Deployment", "Service"] {
        world.host.delete(kind, "k1-estimator-a");
    }
    let at = world.host.objects.iter().position(|live| live["metadata"]["name"] == "k1-estimator-b");
    world.host.objects[at.unwrap()]["metadata"]["labels"]["clusterwright.dev/karmada"] = json!("edited");
    world.rest();
    assert_eq!(on_host(&world, "a"), before);
    assert!(world.plan().actions.is_empty());
}

#[test]
fn a_member_that_leaves_loses_its_estimator_at_once_also_while_it_is_dead() {
    for is_dead in [false, true] {
        let mut world = joined(Some(UnjoinPolicy::Preserve));
        world.sites.get_mut("a").unwrap().is_up = !is_dead;
        world.forget("a");
        world.rest();
        assert_eq!(on_host(&world, "a"), Vec::<String>::new());
        assert!(!world.has_certificate("a", "estimator"));
        assert_eq!(world.phase("a"), is_dead.then_some(Phase::Leaving));
        assert_eq!(on_host(&world, "b").len(), 3);
        world.sites.get_mut("a").unwrap().is_up = true;
        world.rest();
        assert_eq!((world.phase("a"), world.made_in("a")), (None, 0));
    }
}

#[test]
fn switched_off_they_go_once_nobody_asks_them_and_from_the_host_first() {
    let mut world = joined(None);
    let asks = |flag: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "k1-scheduler", "labels": { "clusterwright.dev/karmada-uid": "plane-uid" } },
            "spec": { "replicas": 1, "template": { "spec": { "containers": [{ "command": ["x", flag] }] } } },
        })
    };
    world.host.apply(&asks("--scheduler-estimator-service-prefix=k1-estimator"));
    world.object.spec.estimator = None;
    world.rest();
    assert_eq!(world.said("a").1, "EstimatorProgressing");
    assert!(world.row("a").unwrap().message.contains("ask it no more"), "{}", world.row("a").unwrap().message);
    assert_eq!((on_host(&world, "a").len(), in_member(&world, "a").len()), (3, 4));
    world.host.apply(&asks("--v=2"));
    world.rest();
    for name in ["a", "b"] {
        assert_eq!((on_host(&world, name).len(), in_member(&world, name).len()), (0, 0), "{name}");
        assert!(!world.has_certificate(name, "estimator"));
        assert_eq!(world.said(name), (Phase::Joined, "AllReady".to_owned()));
    }
}

#[test]
fn with_two_pods_it_has_a_budget_that_goes_with_the_second() {
    let mut world = joined(None);
    let replicas = |world: &mut World, count| world.object.spec.estimator.as_mut().unwrap().replicas = count;
    replicas(&mut world, 2);
    world.rest();
    assert_eq!(on_host(&world, "a")[1], "PodDisruptionBudget k1-estimator-a");
    replicas(&mut world, 1);
    world.rest();
    assert_eq!(on_host(&world, "a").len(), 3);
}

#[test]
fn a_member_may_be_without_one() {
    let mut world = joined(None);
    world.object.spec.members[0].estimator = Some(MemberEstimator { enabled: false });
    world.rest();
    assert_eq!((on_host(&world, "a").len(), in_member(&world, "a").len()), (0, 0));
    assert_eq!(on_host(&world, "b").len(), 3);
    assert_eq!(world.said("a"), (Phase::Joined, "AllReady".to_owned()));
}

#[test]
fn a_name_that_gives_no_service_is_said_and_the_member_joins() {
    let long = "m".repeat(48);
    let mut world = World::new(None, &[&long]);
    world.object.metadata.name = Some("production-1".to_owned());
    world.object.spec.estimator = Some(ComponentSettings::default());
    world.name(&long, "push");
    world.rest();
    assert_eq!(world.said(&long), (Phase::Joined, "EstimatorNameTooLong".to_owned()));
    let message = &world.row(&long).unwrap().message;
    // `production-1-estimator-` are 23 of 63 characters.
    assert!(message.contains("71 characters, and 63 are allowed") && message.contains("at most 40"), "{message}");
    assert!(on_host(&world, &long).is_empty() && in_member(&world, &long).is_empty());
}

#[test]
fn what_others_have_in_the_member_or_on_the_host_keeps_the_estimator_from_being_made_and_not_the_member() {
    let mut world = World::new(None, &["a", "b"]);
    world.object.spec.estimator = Some(ComponentSettings::default());
    let role = json!({ "kind": "ClusterRole", "metadata": { "name": ESTIMATOR_ACCOUNT }, "rules": [] });
    world.sites.get_mut("a").unwrap().api.apply(&role);
    let service = json!({ "kind": "Service", "metadata": { "name": "k1-estimator-b", "namespace": "karmada-system" } });
    world.host.apply(&service);
    world.name("a", "push");
    world.name("b", "push");
    world.rest();
    for name in ["a", "b"] {
        let row = world.row(name).unwrap();
        assert_eq!(row.phase, Phase::Joined);
        assert!(row.message.contains("its estimator: ") && row.message.contains("was not made for this plane"));
    }
    assert_eq!(world.sites["a"].api.find("ClusterRole", ESTIMATOR_ACCOUNT).unwrap()["rules"], json!([]));
}

#[test]
fn until_its_step_an_upgrade_leaves_estimators_as_they_are_and_rolls_them_some_at_a_time() {
    let names = ["a", "b", "c"];
    let mut world = World::new(None, &names);
    world.object.spec.estimator = Some(ComponentSettings::default());
    names.iter().for_each(|name| world.name(name, "push"));
    world.rest();
    let version = |world: &World, name: &str| {
        deployment(world, name)["metadata"]["annotations"]["clusterwright.dev/version"].as_str().unwrap().to_owned()
    };
    world.estimators = EstimatorDue::Kept("1.18.2".to_owned());
    world.object.spec.estimator.as_mut().unwrap().replicas = 2;
    world.host.delete("Deployment", "k1-estimator-b");
    world.rest();
    assert_eq!(deployment(&world, "a")["spec"]["replicas"], 1);
    assert_eq!(version(&world, "b"), "1.18.2", "what is gone comes back as it was");

    let auto_join = json!({ "selector": {}, "rules": [{ "syncMode": "push" }], "maxConcurrent": 1 });
    world.object.spec.auto_join = Some(serde_json::from_value(auto_join).unwrap());
    world.estimators = EstimatorDue::Now("1.18.3".to_owned());
    world.host_works = false;
    world.rest();
    let moved = |world: &World| names.iter().filter(|name| version(world, name) == "1.18.3").count();
    assert_eq!(moved(&world), 1, "the first has yet to start");
    world.host_works = true;
    world.rest();
    assert_eq!(moved(&world), 3);
}

#[test]
fn estimators_come_with_their_step_where_there_were_none() {
    let mut world = World::new(None, &["a"]);
    world.object.spec.estimator = Some(ComponentSettings::default());
    world.estimators = EstimatorDue::Later;
    world.name("a", "push");
    world.rest();
    assert_eq!(world.said("a"), (Phase::Joined, "EstimatorProgressing".to_owned()));
    assert!(on_host(&world, "a").is_empty());
    world.estimators = EstimatorDue::Now("1.18.2".to_owned());
    world.rest();
    assert_eq!(on_host(&world, "a").len(), 3);
}

#[test]
fn a_host_that_does_not_answer_is_no_reason_to_write_or_to_wait() {
    let mut world = joined(Some(UnjoinPolicy::Preserve));
    world.host_is_up = false;
    world.forget("a");
    world.rest();
    assert_eq!((world.phase("a"), world.phase("b")), (None, Some(Phase::Joined)));
    assert!(world.seen_members().values().all(|member: &Member| member.on_host.is_none()));
}
