//! A ClusterDeployment made anew under an old name is another cluster.

use crds::names::{annotation, condition};
use crds::step::Role;
use crds::{Machine, conditions};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::testing::World;

const SPEC: &str = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}]";

#[test]
fn machines_of_a_former_cluster_of_the_same_name_are_reported_and_not_taken_over() {
    let mut world = World::new(SPEC, 4);
    world.settle();
    // One of them is a platform's own.
    let joined = world.time();
    let is_worker = |machine: &&mut Machine| machine.spec.role == Role::Worker;
    let own = world.machines.iter_mut().find(is_worker).unwrap();
    own.metadata.owner_references = None;
    own.metadata.annotations.get_or_insert_default().remove(annotation::ORDINAL);
    let of_old: Vec<_> = world.machines.clone();
    // Finalizers were taken off by hand: the sets are gone with their owner, and the Machines are still there.
    world.sets.clear();
    world.runs.clear();
    world.cluster = None;
    world.lose_status();
    let own = world.machines.iter_mut().find(is_worker).unwrap();
    own.status.get_or_insert_default().provisioned_at = Some(joined);
    world.deployment.metadata.uid = Some("cd-uid-2".into());
    world.deployment.metadata.creation_timestamp = Some(Time(world.time().0 + jiff::SignedDuration::from_secs(1)));
    world.settle();
    for machine in &of_old {
        let now = world.machines.iter().find(|now| now.metadata.uid == machine.metadata.uid).unwrap();
        assert_eq!(now.metadata.deletion_timestamp, None);
        assert_eq!(now.metadata.owner_references, machine.metadata.owner_references);
    }
    assert_eq!(world.machines.len(), 4);
    assert!(world.runs.iter().all(|run| run.spec.hosts.iter().all(|host| host != "h1" && host != "h2")));
    let status = world.deployment.status.clone().unwrap();
    let told = conditions::find(&status.conditions, condition::FORMER_MACHINES).unwrap();
    assert!(told.message.starts_with("2 Machines of a former ClusterDeployment a"), "{}", told.message);
    assert!(told.message.contains("kubectl -n fleet delete machines.clusterwright.dev a-"), "{}", told.message);
}
