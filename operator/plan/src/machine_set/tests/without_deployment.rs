//! A set of a cluster that no ClusterDeployment forms, and whose machines are no Nodes.

use crds::{Machine, MachineSet, MachineSetStatus};
use jiff::Timestamp;

use super::{HOST, machine};
use crate::Plan;
use crate::formed_cluster::FormedCluster;
use crate::formed_cluster::fixtures::PLANE;
use crate::machine_set::{Action, Observed, plan};

const BARE: FormedCluster<'static> = FormedCluster { name: "a", has_nodes: false, ..PLANE };

fn planned(cluster: FormedCluster<'_>, replicas: u32, machines: &[Machine]) -> Plan<Action, MachineSetStatus> {
    let set: MachineSet = serde_yaml::from_str(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: MachineSet, metadata: {{name: a-w, namespace: fleet, uid: set}}, spec: {{clusterName: a, role: control-plane, replicas: {replicas}}}}}"
    ))
    .unwrap();
    plan(&Observed {
        now: Timestamp::UNIX_EPOCH,
        set: &set,
        formed: Some(cluster),
        machines: &machines.iter().collect::<Vec<_>>(),
        hosts: &[],
        has_pool: true,
        runs: &[],
    })
}

fn control_planes(count: u32) -> Vec<Machine> {
    let control_plane = |ordinal| {
        let mut machine = machine(ordinal, HOST, true);
        machine.spec.role = crds::step::Role::ControlPlane;
        machine.spec.kubernetes_version = None;
        let labels = machine.metadata.labels.as_mut().unwrap();
        labels.insert("clusterwright.dev/role".into(), "control-plane".into());
        machine.status.as_mut().unwrap().provisioned_at = machine.metadata.creation_timestamp.clone();
        machine
    };
    (0..count).map(control_plane).collect()
}

#[test]
fn its_machines_have_no_version_of_kubernetes_and_are_as_wanted_once_they_are_ready() {
    let made = planned(BARE, 3, &[]).actions;
    assert_eq!(made.len(), 3);
    for action in made {
        let Action::CreateMachine(machine) = action else { panic!("{action:?}") };
        assert_eq!(machine.spec.kubernetes_version, None);
    }
    let all = planned(BARE, 3, &control_planes(3));
    assert_eq!((all.status.updated_replicas, all.actions.len()), (3, 0));
    // What is a Node has to show a version.
    let nodes = planned(FormedCluster { has_nodes: true, ..BARE }, 3, &control_planes(3));
    assert_eq!(nodes.status.updated_replicas, 0);
}

#[test]
fn it_shrinks_one_by_one_and_not_while_removals_are_held() {
    let goes = |cluster| planned(cluster, 3, &control_planes(5)).actions.len();
    assert_eq!(goes(BARE), 1);
    assert_eq!(goes(FormedCluster { removals_held: Some("too many are sick"), ..BARE }), 0);
    assert_eq!(goes(FormedCluster { is_paused: true, ..BARE }), 0);
}
