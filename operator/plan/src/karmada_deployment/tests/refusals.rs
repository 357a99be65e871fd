//! What cannot be done is said, and nothing else is done.

use crds::names::condition;

use super::super::Files;
use super::world::{World, plane, settled};
use crate::addon::Problem;

fn check(world: &mut World, reason: &str, parts: &[&str]) {
    let log = world.log.len();
    world.settle();
    let (status, found, message) = world.condition("Ready");
    assert_eq!((status == "True", found.as_str()), (false, reason), "{message}");
    assert!(parts.iter().all(|part| message.contains(part)), "{parts:?} in {message}");
    assert_eq!(world.condition(condition::UP_TO_DATE).1, reason, "{message}");
    assert_eq!(world.log.len(), log, "{:?}", &world.log[log..]);
}

fn refused(more: &str, reason: &str, parts: &[&str]) {
    check(&mut World::new(plane(more)), reason, parts);
}

#[test]
fn a_wish_that_cannot_be_met_names_its_field() {
    refused("featureGates: {Failovr: true}", "SettingUnknown", &["spec.featureGates", "1.18.2", "Failovr"]);
    refused("webhook: {featureGates: {Nope: true}}", "SettingUnknown", &["spec.webhook.featureGates", "Nope"]);
    refused(
        "controllerManager: {extraArgs: {cluster-lease-duration: 40s}}",
        "SettingUnknown",
        &["spec.controllerManager.extraArgs", "cluster-lease-duration"],
    );
    refused("kubeControllerManager: {version: 1.36.0}", "VersionSkewNotAllowed", &["1.36.0", "1.35.2"]);
    refused("apiServer: {version: 1.37.0}", "VersionSkewNotAllowed", &["kubeControllerManager.version", "1.37.0"]);
    refused("hostClusterRef: {name: host-a}, apiServer: {serviceType: LoadBalancer}", "ClusterNotFound", &["host-a"]);
    refused(
        "images: {pullSecretRefs: [{name: registry}]}",
        "SecretNotFound",
        &["spec.images.pullSecretRefs", "registry"],
    );
    let external = "etcd: {external: {endpoints: ['https://10.0.0.5:2379'], secretRef: {name: etcd-client}}}";
    let mut world = World::new(plane(external));
    world.sources.insert("etcd-client".into(), Files([("ca.crt".to_owned(), Vec::new())].into()));
    check(&mut world, "SecretNotFound", &["spec.etcd.external.secretRef", "has no key tls.crt"]);
}

#[test]
fn gates_of_one_minor_are_not_those_of_another() {
    let gate = "featureGates: {SchedulingOvercommitProtection: true}";
    assert!(settled(gate).is_ready());
    let mut world = World::new(plane(gate));
    world.object.spec.version = "1.17.5".parse().unwrap();
    check(&mut world, "SettingUnknown", &["1.17.5", "SchedulingOvercommitProtection"]);
}

#[test]
fn of_two_planes_in_one_place_the_first_has_it() {
    let mut other = plane("");
    (other.metadata.name, other.metadata.uid) = (Some("k0".into()), Some("uid-0".into()));
    let mut world = World::new(plane(""));
    world.others = vec![other.clone()];
    check(&mut world, "NameTaken", &["karmada-system", "fleet/k0"]);
    world.others[0].spec.host_namespace = "other".into();
    world.settle();
    assert!(world.is_ready());
    let mut first = World::new(plane(""));
    first.others = vec![other];
    first.object.metadata.uid = Some("uid-".into());
    first.settle();
    assert!(first.is_ready(), "{:?}", first.condition("Ready"));

    let external = |prefix: &str| {
        plane(&format!(
            "etcd: {{external: {{endpoints: ['https://10.0.0.5:2379'], secretRef: {{name: x}}, prefix: {prefix}}}}}"
        ))
    };
    for (prefix, shares) in [("/registry", true), ("/registry/a", true), ("/registry-a", false)] {
        let mut world = World::new(external(prefix));
        let files = ["ca.crt", "tls.crt", "tls.key"].map(|name| (name.to_owned(), b"x".to_vec()));
        world.sources.insert("x".into(), Files(files.into()));
        let mut other = external("/registry");
        other.metadata.uid = Some("uid-0".into());
        other.spec.host_namespace = "other".into();
        world.others = vec![other];
        match shares {
            true => check(&mut world, "EtcdInUse", &["spec.etcd.external", prefix]),
            false => drop(world.settle()),
        }
        assert_eq!(world.is_ready(), !shares, "{prefix}");
    }
    let mut world = World::new(plane(""));
    world.namesake = Some("ClusterDeployment k1".into());
    check(&mut world, "NameTaken", &["ClusterDeployment k1"]);
}

#[test]
fn keys_that_are_gone_are_not_made_anew() {
    let mut world = settled("");
    world.keys = false;
    check(&mut world, "PKIMissing", &["k1-pki", "sa.key", "kubectl -n fleet create secret generic k1-pki"]);
    // Also where the status was lost with them: what runs says that there was a plane.
    world.object.status = None;
    check(&mut world, "PKIMissing", &["k1-pki"]);
    assert!(!world.keys);
}

#[test]
fn a_bundle_without_all_definitions_stops_before_the_webhook() {
    let mut world = World::new(plane(""));
    world.crds.as_mut().unwrap().pop();
    world.settle();
    let (_, reason, message) = world.condition(condition::COMPONENTS_READY);
    assert_eq!(reason, "BundleInvalid");
    assert!(message.contains("works.work.karmada.io is missing") && message.contains("crds.tar.gz"), "{message}");
    assert!(world.find(super::super::Place::Host, "Deployment", "k1-webhook").is_none());
    let problem = Problem { reason: crds::Reason::BundleNotFetched, message: "no answer".into() };
    world.crds = Err(problem);
    world.settle();
    assert_eq!(world.condition("Ready").1, "BundleNotFetched");
    world.crds = Ok(super::world::definitions());
    world.settle();
    assert!(world.is_ready());
}

#[test]
fn what_was_not_made_for_the_plane_is_not_taken() {
    let mut world = settled("");
    let (key, mut live) = world
        .host
        .iter()
        .find(|(key, _)| key.2 == "k1-scheduler" && key.0 == "Deployment")
        .map(|(key, live)| (key.clone(), live.clone()))
        .unwrap();
    live["metadata"]["labels"]["clusterwright.dev/karmada-uid"] = serde_json::json!("uid-of-another");
    world.host.insert(key.clone(), live);
    world.applied.remove(&(super::super::Place::Host, key));
    check(&mut world, "ObjectTaken", &["Deployment karmada-system/k1-scheduler", "delete it"]);
    // A namespace that is there already is used as it is.
    let mut world = World::new(plane(""));
    let key = ("Namespace".to_owned(), String::new(), "karmada-system".to_owned());
    let namespace =
        serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "karmada-system"}});
    world.host.insert(key.clone(), namespace.clone());
    world.settle();
    assert!(world.is_ready());
    assert_eq!(world.host[&key], namespace);
}

#[test]
fn an_object_that_is_refused_is_named_with_the_reason() {
    let mut world = World::new(plane(""));
    let key = ("StatefulSet".to_owned(), "karmada-system".to_owned(), "k1-etcd".to_owned());
    world.refused.insert(key, "exceeded quota: small".into());
    world.settle();
    let (_, reason, message) = world.condition("Ready");
    assert_eq!(reason, "ApplyFailed");
    assert!(message.contains("StatefulSet karmada-system/k1-etcd") && message.contains("exceeded quota"), "{message}");
}
