//! `spec.configuration` of a control plane: what rolls an edit out, in which order, and that it is taken back.

use std::collections::BTreeMap;

use crds::conditions;
use crds::names::condition;
use crds::step::{Intent, Role, Step};
use serde_json::{Value, json};

use crate::testing::World;

const SPEC: &str = "controlPlane: {replicas: 3, endpoint: {host: 10.0.0.100}}, workers: [{name: a, replicas: 1}]";

fn built(spec: &str, hosts: usize) -> World {
    let mut world = World::new(spec, hosts);
    world.settle();
    world
}

fn configure(world: &mut World, configuration: Value) {
    world.deployment.spec.configuration = serde_json::from_value(configuration).unwrap();
    world.touch();
    world.settle();
}

/// The Hosts and steps of the runs that configured machines since the last look.
fn configured(world: &World, seen: &mut usize) -> Vec<(String, Vec<Step>)> {
    let runs = world.runs.iter().filter(|run| run.spec.intent == Intent::Configure);
    let new: Vec<_> = runs.map(|run| (run.spec.hosts.join(" "), run.spec.steps.clone())).skip(*seen).collect();
    *seen += new.len();
    new
}

fn is_up_to_date(world: &World) -> bool {
    let status = world.deployment.status.clone().unwrap();
    conditions::find(&status.conditions, condition::UP_TO_DATE).unwrap().status == "True"
}

fn hosts(world: &World, role: Role) -> Vec<String> {
    let machines = world.machines.iter().filter(|machine| machine.spec.role == role);
    let mut hosts: Vec<String> = machines.map(|machine| machine.spec.host_ref.clone().unwrap().name).collect();
    hosts.sort();
    hosts
}

/// Of runs that each had one machine: which, in no order.
fn sorted(runs: &[(String, Vec<Step>)]) -> Vec<String> {
    let mut hosts: Vec<String> = runs.iter().map(|(host, _)| host.clone()).collect();
    hosts.sort();
    hosts
}

#[test]
fn flags_come_to_one_control_plane_after_the_other_and_to_nobody_else_and_so_does_that_they_are_taken_back() {
    let (mut world, mut seen) = (built(SPEC, 4), 0);
    for configuration in [
        json!({"apiServer": {"requestTimeoutSeconds": 90}}),
        json!({"apiServer": {"requestTimeoutSeconds": 90}, "scheduler": {"extraArgs": {"v": "4"}}}),
        json!({"controllerManager": {"terminatedPodGCThreshold": 100}}),
        json!({}),
    ] {
        configure(&mut world, configuration);
        let runs = configured(&world, &mut seen);
        assert_eq!(sorted(&runs), hosts(&world, Role::ControlPlane), "{runs:?}");
        assert!(runs.iter().all(|(_, steps)| *steps == [Step::ControlPlaneConfiguration]), "{runs:?}");
        assert!(is_up_to_date(&world));
    }
}

#[test]
fn another_content_of_a_config_map_is_rolled_out_as_an_edit_is() {
    let (mut world, mut seen) = (built(SPEC, 4), 0);
    let audit = json!({"apiServer": {"audit": {"policyRef": {"name": "policy"}}}});
    world.manifests.files = Some(BTreeMap::from([("audit-policy.yaml".to_owned(), "one".to_owned())]));
    configure(&mut world, audit);
    assert_eq!(configured(&world, &mut seen).len(), 3, "flags and files come together");
    world.manifests.files = Some(BTreeMap::from([("audit-policy.yaml".to_owned(), "two".to_owned())]));
    world.settle();
    let runs = configured(&world, &mut seen);
    assert_eq!(sorted(&runs), hosts(&world, Role::ControlPlane), "{runs:?}");
    assert!(runs.iter().all(|(_, steps)| *steps == [Step::ControlPlaneConfiguration]), "{runs:?}");
    world.manifests.files = None;
    world.settle();
    assert_eq!(configured(&world, &mut seen), [], "what cannot be read is not known to be another");
    world.manifests.files = Some(BTreeMap::new());
    configure(&mut world, json!({}));
    assert_eq!(configured(&world, &mut seen).len(), 3);
    assert!(is_up_to_date(&world));
}

#[test]
fn the_mode_of_kube_proxy_is_brought_once_for_the_cluster_and_taken_back() {
    let (mut world, mut seen) = (built(SPEC, 5), 0);
    let first = world.deployment.status.clone().unwrap().first_control_plane;
    let first = world.machines.iter().find(|machine| machine.metadata.name == first).unwrap();
    let brought = vec![(first.spec.host_ref.clone().unwrap().name, vec![Step::Addons])];
    let nftables = json!({"kubeProxy": {"mode": "nftables"}});
    for configuration in
        [nftables.clone(), json!({"kubeProxy": {"mode": "iptables"}}), json!({"kubeProxy": {}}), json!({})]
    {
        let changes = configuration != json!({});
        configure(&mut world, configuration);
        assert_eq!(configured(&world, &mut seen), if changes { brought.clone() } else { Vec::new() });
        assert!(is_up_to_date(&world));
    }
    // What waits for an approval is not taken for brought because another step was played.
    world.deployment.spec.approval = crds::cluster_deployment::Approval::Manual;
    world.deployment.spec.control_plane.cert_sans = vec!["api.example".into()];
    configure(&mut world, nftables);
    let runs = configured(&world, &mut seen);
    assert!(!runs.is_empty() && runs.iter().all(|(_, steps)| *steps == [Step::ControlPlane]), "{runs:?}");
    assert!(!is_up_to_date(&world));
    world.deployment.spec.approval = crds::cluster_deployment::Approval::Automatic;
    world.touch();
    world.settle();
    assert_eq!(configured(&world, &mut seen), brought);
    assert!(is_up_to_date(&world));
}

#[test]
fn a_cluster_without_kube_proxy_is_well_without_it_and_nothing_of_it_is_ever_brought() {
    let network = "networking: {plugin: {name: manifests, manifestsRef: {name: net}}}";
    let spec = format!("{SPEC}, {network}, configuration: {{kubeProxy: {{mode: None}}}}");
    let (mut world, mut seen) = (built(&spec, 5), 0);
    let addons = |world: &World| {
        let status = world.deployment.status.clone().unwrap();
        let told = conditions::find(&status.conditions, condition::ADDONS_READY).unwrap();
        (told.status.clone(), told.message.clone())
    };
    assert_eq!(addons(&world), ("True".into(), "coredns is rolled out; the network plugin serves Services".into()));
    assert!(is_up_to_date(&world));
    // What is remembered of it is nothing, and is as good once it was lost.
    let applied = |world: &World| world.deployment.status.clone().unwrap().applied_manifests;
    assert!(applied(&world).is_none_or(|applied| applied.kube_proxy.is_none()));
    configure(&mut world, json!({"kubeProxy": {"mode": "None"}, "scheduler": {"extraArgs": {"v": "4"}}}));
    let runs = configured(&world, &mut seen);
    assert_eq!(sorted(&runs), hosts(&world, Role::ControlPlane), "{runs:?}");
    assert!(runs.iter().all(|(_, steps)| *steps == [Step::ControlPlaneConfiguration]), "{runs:?}");
    assert!(is_up_to_date(&world));
    let with = built(SPEC, 4);
    assert_eq!(addons(&with), ("True".into(), "coredns and kube-proxy are rolled out".into()));
}

#[test]
fn etcd_is_configured_where_its_members_are_and_before_the_control_plane() {
    let (mut world, mut seen) = (built(SPEC, 4), 0);
    let both = json!({"etcd": {"quotaBackendBytes": 4_294_967_296_i64}, "apiServer": {"maxRequestsInflight": 800}});
    configure(&mut world, both.clone());
    let runs = configured(&world, &mut seen);
    assert_eq!(sorted(&runs), hosts(&world, Role::ControlPlane), "{runs:?}");
    assert!(runs.iter().all(|(_, steps)| *steps == [Step::Etcd, Step::ControlPlaneConfiguration]), "{runs:?}");
    let dedicated = "controlPlane: {replicas: 1}, etcd: {topology: Dedicated, replicas: 3}";
    let (mut world, mut seen) = (built(dedicated, 4), 0);
    configure(&mut world, both);
    let runs = configured(&world, &mut seen);
    let of = |step: Step| runs.iter().filter(move |(_, steps)| *steps == [step]).cloned().collect::<Vec<_>>();
    assert_eq!(sorted(&of(Step::Etcd)), hosts(&world, Role::Etcd), "{runs:?}");
    assert_eq!(sorted(&of(Step::ControlPlaneConfiguration)), hosts(&world, Role::ControlPlane), "{runs:?}");
    assert!(is_up_to_date(&world));
}

#[test]
fn a_control_plane_that_joins_comes_with_what_is_configured() {
    let spec = "controlPlane: {replicas: 1, endpoint: {host: 10.0.0.100}}";
    let mut world = World::new(spec, 3);
    let files = BTreeMap::from([("authentication.yaml".to_owned(), "one".to_owned())]);
    world.manifests.files = Some(files);
    configure(&mut world, json!({"apiServer": {"authenticationRef": {"name": "a"}}, "etcd": {"snapshotCount": 5000}}));
    world.deployment.spec.control_plane.replicas = 3;
    world.touch();
    world.settle();
    assert_eq!(hosts(&world, Role::ControlPlane).len(), 3);
    assert_eq!(configured(&world, &mut 0), []);
    assert!(is_up_to_date(&world));
}

#[test]
fn a_control_plane_that_refuses_flags_keeps_all_others_as_they_are() {
    let (mut world, mut seen) = (built(SPEC, 4), 0);
    world.always_fails = hosts(&world, Role::ControlPlane);
    configure(&mut world, json!({"apiServer": {"extraArgs": {"no-such-flag": "1"}}}));
    let runs = configured(&world, &mut seen);
    assert!(!runs.is_empty() && sorted(&runs).iter().all(|host| *host == sorted(&runs)[0]), "{runs:?}");
    assert!(!is_up_to_date(&world));
    world.always_fails.clear();
    configure(&mut world, json!({}));
    assert!(is_up_to_date(&world), "taken back: nothing else was touched");
}
