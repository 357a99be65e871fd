//! Promises of what a RemediationPolicy shows.

use crds::{ClusterDeployment, Machine, RemediationPolicy, RemediationPolicyStatus};

use super::{Observed, plan};

fn policy(name: &str, spec: &str) -> RemediationPolicy {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: RemediationPolicy, metadata: {{name: {name}, uid: uid-{name}, generation: 1}}, spec: {{{spec}}}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

fn machine(name: &str, cluster: &str, role: &str) -> Machine {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: {name}, uid: uid-{name}, labels: {{pool: {role}}}}}, spec: {{clusterName: {cluster}, role: {role}, kubernetesVersion: 1.35.4}}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

fn deployment(repairs: &str) -> ClusterDeployment {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: a}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1}}}}, status: {{repairs: [{repairs}]}}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

fn shown(policy: &RemediationPolicy, others: &[&RemediationPolicy], repairs: &str) -> RemediationPolicyStatus {
    let machines = [
        machine("c1", "a", "control-plane"),
        machine("w1", "a", "worker"),
        machine("w2", "a", "worker"),
        machine("x1", "b", "worker"),
    ];
    let deployment = deployment(repairs);
    let policies: Vec<&RemediationPolicy> = std::iter::once(policy).chain(others.iter().copied()).collect();
    plan(&Observed {
        now: "2026-11-21T12:00:00Z".parse().unwrap(),
        policy,
        policies: &policies,
        machines: &machines.iter().collect::<Vec<_>>(),
        deployments: &[&deployment],
        runs: &[],
    })
    .status
}

const REBOOTS: &str =
    "{machine: w1, action: Reboot, reason: Rebooting, message: it is rebooted, since: '2026-11-21T11:00:00Z'}";
const STUCK: &str =
    "{machine: w2, reason: NoSpareHost, message: no spare Host would do, since: '2026-11-21T11:00:00Z'}";

#[test]
fn it_counts_the_machines_that_it_holds_for_and_says_what_is_done() {
    let check = |spec: &str, repairs: &str, counts: (i32, i32, i32), message: &str| {
        let status = shown(&policy("p", spec), &[], repairs);
        let found = (status.machines, status.unhealthy_machines, status.repairing);
        assert_eq!((found, status.message.as_deref()), (counts, Some(message)), "{spec}");
    };
    check("clusterName: a", "", (3, 0, 0), "no machine is sick");
    check("", "", (4, 0, 0), "no machine is sick");
    check("roles: [worker]", "", (3, 0, 0), "no machine is sick");
    check("matchLabels: {pool: control-plane}", "", (1, 0, 0), "no machine is sick");
    check("clusterName: c", "", (0, 0, 0), "holds for no machine");
    check("clusterName: a", REBOOTS, (3, 1, 1), "w1: it is rebooted");
    check("clusterName: a", STUCK, (3, 1, 0), "w2: no spare Host would do");
    check("clusterName: a, paused: true", STUCK, (3, 1, 0), "paused: nothing is done until spec.paused is false");
    let last = shown(&policy("p", "clusterName: a"), &[], REBOOTS).last_action_at;
    assert_eq!(last.unwrap().0.to_string(), "2026-11-21T11:00:00Z");
}

#[test]
fn of_two_that_select_a_machine_the_first_by_name_holds() {
    let (first, second) = (policy("a-first", "roles: [worker]"), policy("b-second", ""));
    assert_eq!(shown(&second, &[&first], "").machines, 1);
    assert_eq!(shown(&first, &[&second], "").machines, 3);
}
