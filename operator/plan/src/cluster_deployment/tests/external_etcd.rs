//! Clusters whose etcd is run by others.

use crds::cluster::ComponentHealth;
use crds::cluster_deployment::RecoveryStrategy;
use crds::conditions;
use crds::names::condition;
use crds::step::{Intent, Role, Step};
use crds::{ClusterDeployment, Reason};

use super::ready;
use crate::inputs::InputsProblem;
use crate::testing::World;

const ETCD: &str = "etcd: {topology: External, endpoints: ['https://10.9.0.1:2379', 'https://10.9.0.2:2379'], secretRef: {name: etcd}}";

fn spec(replicas: u32, more: &str) -> String {
    format!("controlPlane: {{replicas: {replicas}, endpoint: {{host: 10.0.0.100}}}}, {ETCD}{more}")
}

fn world(spec: &str, hosts: usize) -> World {
    let mut world = World::new(spec, hosts);
    world.etcd_client = Some(Ok("client".into()));
    world
}

/// What `/readyz` of the API server says of etcd.
fn etcd_is_well(world: &mut World, well: bool) {
    let status = world.cluster.as_mut().unwrap().status.get_or_insert_default();
    let message = (!well).then(|| "the API server does not reach it".to_owned());
    status.components = vec![ComponentHealth { name: "etcd".into(), healthy: well, message }];
    world.touch();
}

pub(super) fn built(replicas: u32, hosts: usize) -> World {
    let mut world = world(&spec(replicas, ""), hosts);
    world.settle();
    etcd_is_well(&mut world, true);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    world
}

fn says(world: &World, type_: &str) -> (String, String, String) {
    let status = world.deployment.status.as_ref().unwrap();
    let found = conditions::find(&status.conditions, type_).unwrap();
    (found.status.clone(), found.reason.clone(), found.message.clone())
}

/// Steps of all runs that change something.
fn steps(world: &World) -> Vec<Step> {
    let works = world.runs.iter().filter(|run| run.spec.intent != Intent::Probe);
    works.flat_map(|run| run.spec.steps.clone()).collect()
}

/// Steps that touch a member of etcd, or its data.
const OF_MEMBERS: [Step; 9] = [
    Step::Etcd,
    Step::RemoveEtcdMember,
    Step::RecoverEtcd,
    Step::ProbeEtcd,
    Step::DefragmentEtcd,
    Step::BackupEtcd,
    Step::StageBackup,
    Step::RestoreEtcd,
    Step::UndoRestore,
];

fn no_member_is_touched(world: &World) {
    let all: Vec<Step> = world.runs.iter().flat_map(|run| run.spec.steps.clone()).collect();
    assert!(all.iter().all(|step| !OF_MEMBERS.contains(step)), "{all:?}");
    assert!(world.voters.is_empty(), "{:?}", world.voters);
}

#[test]
fn a_cluster_is_installed_grows_shrinks_and_goes_without_a_step_on_etcd() {
    let mut world = built(1, 4);
    assert!(steps(&world).contains(&Step::ControlPlane));
    world.respec(&spec(3, ""));
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    assert_eq!(world.machines.iter().filter(|machine| machine.spec.role == Role::ControlPlane).count(), 3);
    world.respec(&spec(1, ""));
    world.settle();
    assert_eq!(ready(&world).0, "True", "nobody is asked about one member: {:?}", ready(&world));
    no_member_is_touched(&world);
    world.delete();
    world.settle();
    assert!(world.gone);
    no_member_is_touched(&world);
}

#[test]
fn a_control_plane_that_is_lost_is_replaced_without_a_step_on_etcd() {
    let repair =
        ", remediation: {unhealthyAfterSeconds: 60, cooldownSeconds: 0, maxUnhealthy: '100%', actions: [Replace]}";
    let mut world = built(3, 4);
    world.respec(&spec(3, repair));
    world.settle();
    world.kill("h2");
    world.run_for(60);
    assert_eq!(ready(&world).0, "True", "another one has taken its place: {:?}", ready(&world));
    world.revive("h2");
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    assert!(world.machines.iter().all(|machine| machine.spec.host_ref.as_ref().unwrap().name != "h2"));
    no_member_is_touched(&world);
}

#[test]
fn a_cluster_all_of_whose_machines_are_lost_is_built_anew_on_the_same_etcd() {
    let mut world = built(1, 2);
    world.silent = ["h1".to_owned()].into();
    world.silent_nodes = world.silent.clone();
    world.api_lost = true;
    let since = world.time();
    world.cluster.as_mut().unwrap().status.get_or_insert_default().unreachable_since = Some(since);
    world.run_for(20);
    let (_, reason, message) = ready(&world);
    assert_eq!(reason, "AllMachinesLost");
    assert!(message.contains("installed anew, with what its external etcd holds, on spare Hosts"), "{message}");
    world.deployment.spec.recovery.strategy = RecoveryStrategy::Rebuild;
    world.touch();
    world.run_for(60);
    etcd_is_well(&mut world, true);
    world.run_for(5);
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    assert!(world.machines.iter().all(|machine| machine.spec.host_ref.as_ref().unwrap().name == "h2"));
    no_member_is_touched(&world);
}

#[test]
fn etcd_is_as_the_api_server_sees_it() {
    let mut world = world(&spec(1, ""), 1);
    world.run_for(1);
    assert_eq!(says(&world, condition::ETCD_READY).1, "NotInstalled");
    world.settle();
    let (status, reason, message) = says(&world, condition::ETCD_READY);
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "ClusterUnreachable"), "{message}");
    etcd_is_well(&mut world, true);
    world.settle();
    let (status, _, message) = says(&world, condition::ETCD_READY);
    assert_eq!(status, "True");
    assert_eq!(message, "external, 2 endpoints: the API server reaches it (/readyz)");
    etcd_is_well(&mut world, false);
    world.run_for(30);
    let (status, reason, message) = says(&world, condition::ETCD_READY);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "EtcdUnhealthy"));
    assert!(message.ends_with("the API server does not reach it"), "{message}");
    no_member_is_touched(&world);
}

#[test]
fn nothing_begins_while_the_secret_cannot_be_used_and_all_does_once_it_can() {
    let mut world = world(&spec(1, ""), 1);
    let message = "Secret etcd of spec.etcd.secretRef is not there: make it";
    world.etcd_client = Some(Err(InputsProblem::waits(Reason::SecretNotFound, message)));
    world.settle();
    assert_eq!(ready(&world), ("False".into(), "SecretNotFound".into(), message.into()));
    assert!(world.runs.is_empty() && world.machines.is_empty());
    world.etcd_client = Some(Ok("client".into()));
    world.settle();
    etcd_is_well(&mut world, true);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
}

#[test]
fn what_is_changed_in_the_spec_or_the_secret_is_rolled_out() {
    let mut world = built(1, 1);
    let configured = |world: &World| world.runs.iter().filter(|run| run.spec.intent == Intent::Configure).count();
    assert_eq!(says(&world, condition::UP_TO_DATE).0, "True", "{:?}", says(&world, condition::UP_TO_DATE));
    world.deployment.spec.etcd.endpoints.reverse();
    world.touch();
    world.settle();
    assert_eq!(
        (says(&world, condition::UP_TO_DATE).0.as_str(), configured(&world)),
        ("True", 0),
        "their order is nothing"
    );
    world.deployment.spec.etcd.endpoints.pop();
    world.etcd_client = Some(Ok("next".into()));
    world.touch();
    world.settle();
    assert_eq!(says(&world, condition::UP_TO_DATE).0, "True", "{:?}", says(&world, condition::UP_TO_DATE));
    let run = world.runs.iter().find(|run| run.spec.intent == Intent::Configure).unwrap();
    assert_eq!(
        (run.spec.hosts.as_slice(), run.spec.steps.as_slice()),
        (&["h1".to_owned()][..], &[Step::EtcdEndpoints][..])
    );
    world.etcd_client = Some(Ok("after that".into()));
    world.settle();
    assert_eq!((says(&world, condition::UP_TO_DATE).0.as_str(), configured(&world)), ("True", 2));
}

#[test]
fn of_two_clusters_below_one_prefix_the_younger_waits() {
    let other = |change: fn(&mut ClusterDeployment)| {
        let mut world = world(&spec(1, ""), 1);
        let mut other = world.deployment.clone();
        (other.metadata.uid, other.metadata.namespace) = (Some("other".into()), Some("elsewhere".into()));
        other.metadata.name = Some("b".into());
        other.metadata.creation_timestamp = None;
        change(&mut other);
        world.others = vec![other];
        world.settle();
        ready(&world)
    };
    let (_, reason, message) = other(|_| {});
    assert_eq!(reason, "EtcdInUse");
    assert!(message.contains("https://10.9.0.1:2379 has the data of ClusterDeployment elsewhere/b below /registry"));
    for free in [
        (|other| other.spec.etcd.prefix = Some("/b".into())) as fn(&mut ClusterDeployment),
        |other| other.spec.etcd.endpoints = vec!["https://10.9.0.7:2379".into()],
        |other| {
            let late = "2030-01-01T00:00:00Z".parse().unwrap();
            other.metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(late));
        },
    ] {
        assert_ne!(other(free).1, "EtcdInUse");
    }
}
