use crds::{ClusterDeployment, Machine, MachineSet, conditions};
use jiff::Timestamp;

use super::{Observed, Step, plan};
use crate::Plan;

fn set(replicas: u32, more: &str) -> MachineSet {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: MachineSet, metadata: {{name: a-w, namespace: fleet, uid: set}}, spec: {{clusterName: a, role: worker, replicas: {replicas} {more}}}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

fn deployment() -> ClusterDeployment {
    serde_yaml::from_str(
        "{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {name: a}, spec: {kubernetesVersion: 1.35.4, controlPlane: {replicas: 1}}}",
    )
    .unwrap()
}

fn machine(ordinal: u32, more: &str, ready: bool) -> Machine {
    let status = if ready {
        "{conditions: [{type: Ready, status: 'True', reason: Running, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}"
    } else {
        "{}"
    };
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: m{ordinal}, creationTimestamp: '2026-01-0{}T00:00:00Z', annotations: {{clusterwright.dev/ordinal: '{ordinal}'}}}}, spec: {{clusterName: a, role: worker, kubernetesVersion: 1.35.4 {more}}}, status: {status}}}",
        ordinal + 1
    );
    serde_yaml::from_str(&yaml).unwrap()
}

fn planned(set: &MachineSet, machines: &[Machine]) -> Plan<Step, crds::MachineSetStatus> {
    let machines: Vec<&Machine> = machines.iter().collect();
    plan(&Observed {
        now: Timestamp::UNIX_EPOCH,
        set,
        deployment: Some(&deployment()),
        machines: &machines,
        hosts: &[],
    })
}

fn deleted(set: &MachineSet, machines: &[Machine]) -> Vec<String> {
    let name = |step: Step| match step {
        Step::DeleteMachine(machine) => machine.metadata.name,
        Step::CreateMachine(_) | Step::SetVersion { .. } => None,
    };
    planned(set, machines)
        .steps
        .into_iter()
        .filter_map(name)
        .collect()
}

const HOST: &str = ", hostRef: {name: h}";

#[test]
fn machines_are_named_by_set_and_ordinal_and_a_free_ordinal_is_used_again() {
    let created = |machines: &[Machine]| {
        let steps = planned(&set(3, ""), machines).steps;
        steps
            .into_iter()
            .map(|step| match step {
                Step::CreateMachine(machine) => super::ordinal_of(&machine).unwrap(),
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(created(&[]), [0, 1, 2]);
    assert_eq!(created(&[machine(1, HOST, true)]), [0, 2]);
    let mut leaving = machine(0, HOST, true);
    leaving.metadata.deletion_timestamp = leaving.metadata.creation_timestamp.clone();
    assert_eq!(
        created(&[leaving, machine(1, HOST, true)]),
        [2, 3],
        "a name is free once its Machine is gone"
    );
}

#[test]
fn those_without_a_host_go_first_then_those_that_are_not_ready_then_the_newest() {
    let machines = [
        machine(0, HOST, true),
        machine(1, HOST, true),
        machine(2, HOST, false),
        machine(3, "", false),
        machine(4, HOST, true),
    ];
    assert_eq!(deleted(&set(4, ""), &machines), ["m3"]);
    assert_eq!(deleted(&set(2, ""), &machines), ["m3", "m2", "m4"]);
    assert_eq!(
        deleted(&set(2, ", deletion: {order: Oldest}"), &machines),
        ["m3", "m2", "m0"]
    );
}

#[test]
fn a_manual_set_neither_makes_nor_deletes() {
    assert_eq!(planned(&set(3, ", mode: Manual"), &[]).steps, []);
    assert_eq!(
        planned(&set(0, ", mode: Manual"), &[machine(0, HOST, true)]).steps,
        []
    );
}

#[test]
fn the_status_serves_the_scale_subresource_and_says_what_is_lacking() {
    let status = planned(&set(2, ""), &[machine(0, HOST, true), machine(1, "", false)]).status;
    assert_eq!(
        status.selector.as_deref(),
        Some("clusterwright.dev/cluster=a,clusterwright.dev/machine-set=a-w")
    );
    assert_eq!((status.replicas, status.ready_replicas), (2, 1));
    let hosts = conditions::find(&status.conditions, "HostsAvailable").unwrap();
    assert_eq!(
        (hosts.status.as_str(), hosts.message.as_str()),
        ("False", "needs 1, 0 free match")
    );
}

#[test]
fn a_machine_that_is_not_provisioned_follows_its_template_and_others_wait_for_an_upgrade() {
    let check = |status: &str, expected: usize| {
        let mut machine = machine(0, HOST, true);
        machine.status = serde_yaml::from_str(status).unwrap();
        let set = set(1, ", template: {kubernetesVersion: 1.35.5}");
        let steps = planned(&set, &[machine]).steps;
        assert_eq!(steps.len(), expected, "{steps:?}");
    };
    check("{}", 1);
    check(
        "{provisionedAt: '2026-01-01T00:00:00Z', kubernetesVersion: 1.35.4}",
        0,
    );
    check(
        "{provisionedAt: '2026-01-01T00:00:00Z', kubernetesVersion: 1.35.5}",
        1,
    );
}
