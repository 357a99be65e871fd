//! Estimators of members of a plane on machines: what is kept for them, and what leads to them.

use crds::karmada_deployment::{ComponentSettings, KarmadaMemberPhase as Phase, MemberEstimator, UnjoinPolicy};
use crds::names::label;
use serde_json::{Value, json};

use super::super::ESTIMATOR_ACCOUNT;
use super::world::World;

/// Members `a` (Push) and `b` (Pull), whose estimators have come to the machines.
fn joined(policy: Option<UnjoinPolicy>) -> World {
    let mut world = World::new(policy, &["a", "b", "c"]).on_machines();
    world.object.spec.estimator = Some(ComponentSettings::default());
    world.name("a", "push");
    world.name("b", "pull");
    world.rest();
    for name in ["a", "b"] {
        assert_eq!(world.said(name), (Phase::Joined, "EstimatorProgressing".to_owned()), "{:?}", world.row(name));
    }
    world.bring_estimators();
    world.rest();
    for name in ["a", "b"] {
        assert_eq!(world.said(name), (Phase::Joined, "AllReady".to_owned()), "{:?}", world.row(name));
    }
    world
}

fn service<'a>(world: &'a World, name: &str) -> Option<&'a Value> {
    world.plane.find("Service", &format!("k1-estimators-{name}"))
}

fn text(world: &World, name: &str, file: &str) -> String {
    String::from_utf8(world.given(name).unwrap().files.get(file).unwrap().to_vec()).unwrap()
}

fn accounts(world: &World, name: &str) -> usize {
    let objects = world.sites[name].api.objects.iter();
    objects.filter(|live| live["metadata"]["name"] == ESTIMATOR_ACCOUNT).count()
}

#[test]
fn each_member_has_what_its_estimator_is_given_and_a_service_in_the_plane_that_leads_to_its_port() {
    let world = joined(None);
    assert!(world.plan().actions.is_empty());
    assert_ne!(world.given("a").unwrap().port, world.given("b").unwrap().port);
    for name in ["a", "b"] {
        let port = world.given(name).unwrap().port;
        let live = service(&world, name).unwrap();
        assert_eq!(live["metadata"]["namespace"], "karmada-system");
        assert_eq!(live["metadata"]["labels"][label::KARMADA_MEMBER], name);
        let ports = json!([{ "name": "grpc", "port": 10352, "targetPort": port, "protocol": "TCP" }]);
        assert_eq!(live["spec"], json!({ "type": "ExternalName", "externalName": "localhost", "ports": ports }));
        let kubeconfig: Value = serde_json::from_str(&text(&world, name, "kubeconfig")).unwrap();
        assert_eq!(kubeconfig["clusters"][0]["cluster"]["server"], format!("https://{name}.example:6443"));
        let directory = format!("/etc/karmada/pki/estimator-{name}");
        assert_eq!(kubeconfig["users"][0]["user"], json!({ "tokenFile": format!("{directory}/member-token") }));
        assert_eq!(kubeconfig["clusters"][0]["cluster"]["certificate-authority"], format!("{directory}/member-ca.crt"));
        let files: Vec<&str> = world.given(name).unwrap().files.0.keys().map(String::as_str).collect();
        assert_eq!(files, ["ca.crt", "estimator.crt", "estimator.key", "kubeconfig", "member-ca.crt", "member-token"]);
        assert_eq!((world.made_on_host(name), accounts(&world, name)), (0, 4));
    }
}

#[test]
fn a_token_that_is_made_anew_is_carried_over_and_port_and_others_stay() {
    let mut world = joined(None);
    let (a, b) = (world.given("a").unwrap().clone(), world.given("b").unwrap().clone());
    let api = &mut world.sites.get_mut("a").unwrap().api;
    api.delete("ServiceAccount", ESTIMATOR_ACCOUNT);
    world.rest();
    let now = world.given("a").unwrap().clone();
    assert_eq!((now.port, world.given("b")), (a.port, Some(&b)));
    assert_ne!(now.files.get("member-token"), a.files.get("member-token"));
    assert_eq!(world.said("a").1, "AllReady", "it worked before, and nobody has looked since");
}

#[test]
fn of_a_member_that_does_not_answer_what_was_given_stays_and_one_that_joins_takes_no_port_of_it() {
    let mut world = joined(None);
    let before = world.given("a").unwrap().clone();
    world.sites.get_mut("a").unwrap().is_up = false;
    world.name("c", "push");
    world.rest();
    assert_eq!(world.given("a"), Some(&before));
    assert!(service(&world, "a").is_some() && service(&world, "c").is_some());
    assert_ne!(world.given("c").unwrap().port, before.port);
}

#[test]
fn what_a_dead_member_s_estimator_was_given_goes_at_once_when_it_leaves() {
    let mut world = joined(Some(UnjoinPolicy::Preserve));
    world.sites.get_mut("a").unwrap().is_up = false;
    world.forget("a");
    for _ in 0..3 {
        world.turn();
    }
    assert!(world.given("a").is_none() && service(&world, "a").is_none());
    assert!(!world.has_certificate("a", "estimator"));
    assert!(world.given("b").is_some() && service(&world, "b").is_some());
    world.rest();
    world.sites.get_mut("a").unwrap().is_up = true;
    world.rest();
    assert!(world.row("a").is_none() && world.made_in("a") == 0);
}

#[test]
fn what_it_is_in_a_member_that_stays_goes_once_it_is_off_the_machines() {
    let mut world = joined(None);
    world.object.spec.members[0].estimator = Some(MemberEstimator { enabled: false });
    world.rest();
    assert!(world.given("a").is_none() && service(&world, "a").is_none());
    assert_eq!((accounts(&world, "a"), world.said("a").1), (4, "EstimatorProgressing".to_owned()));
    world.bring_estimators();
    world.rest();
    assert_eq!((accounts(&world, "a"), world.said("a").1), (0, "AllReady".to_owned()));
    assert_eq!((accounts(&world, "b"), world.said("b").1), (4, "AllReady".to_owned()));
    world.object.spec.estimator = None;
    world.rest();
    world.bring_estimators();
    world.rest();
    assert_eq!((accounts(&world, "b"), world.given("b")), (0, None));
}

#[test]
fn one_that_does_not_work_says_on_which_machine_and_why_and_its_member_stays_joined() {
    let mut world = joined(None);
    world.sick.insert("b".to_owned(), "on machine m1 (Host h1): timed out".to_owned());
    world.rest();
    assert_eq!(world.said("b"), (Phase::Joined, "EstimatorNotReady".to_owned()));
    let message = &world.row("b").unwrap().message;
    assert_eq!(message, "Karmada reaches it; its estimator on machine m1 (Host h1): timed out");
    assert_eq!(world.said("a").1, "AllReady");
    world.sick.clear();
    world.rest();
    assert_eq!(world.said("b").1, "AllReady");
}

#[test]
fn a_service_in_the_plane_that_somebody_changes_is_put_back() {
    let mut world = joined(None);
    let before = service(&world, "a").unwrap()["spec"].clone();
    let mut changed = service(&world, "a").unwrap().clone();
    changed["spec"]["externalName"] = json!("elsewhere");
    world.plane.apply(&changed);
    world.rest();
    assert_eq!(service(&world, "a").unwrap()["spec"], before);
    world.plane.delete("Service", "k1-estimators-a");
    world.rest();
    assert_eq!(service(&world, "a").unwrap()["spec"], before);
}
