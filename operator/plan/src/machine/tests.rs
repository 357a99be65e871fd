mod member;
mod of_plane;
mod without_node;

use crds::{ClusterDeployment, Host, Machine, PlaybookRun, conditions};
use jiff::Timestamp;

use super::{Action, Observed, plan};
use crate::Plan;
use crate::claims::Shares;
use crate::cluster::NodeSeen;
use crate::formed_cluster::FormedCluster;

fn machine(more: &str, status: &str) -> Machine {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: m, namespace: fleet, uid: m-uid, generation: 2, finalizers: [clusterwright.dev/release-host]}}, spec: {{clusterName: a, role: worker, kubernetesVersion: 1.35.4 {more}}}, status: {status}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

fn host(name: &str, claim: &str) -> Host {
    let claim =
        if claim.is_empty() { String::new() } else { format!(", claimRef: {{kind: Machine, name: m, uid: {claim}}}") };
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: {name}, resourceVersion: '7', finalizers: [other]}}, spec: {{address: 10.0.0.1, ssh: {{credentialsRef: {{name: key}}}}, claimEpoch: 4 {claim}}}, status: {{cleanedEpoch: 4, conditions: [{{type: Ready, status: 'True', reason: Available, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

fn deployment() -> ClusterDeployment {
    serde_yaml::from_str(
        "{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {name: a, generation: 1}, spec: {kubernetesVersion: 1.35.4, controlPlane: {replicas: 1}}, status: {installedAt: '2026-01-01T00:00:00Z'}}",
    )
    .unwrap()
}

fn run(name: &str, target: &str, status: &str) -> PlaybookRun {
    let wanted = crate::provisioning::wanted(&deployment());
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: {name}, creationTimestamp: '2026-01-01T00:01:00Z', annotations: {{clusterwright.dev/machines: '{{\"h\": {{\"uid\": \"{target}\"}}}}', clusterwright.dev/wanted: '{wanted}'}}}}, spec: {{clusterName: a, intent: Join, steps: [node], hosts: [h]}}, status: {status}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

fn planned(
    machine: &Machine,
    hosts: &[Host],
    runs: &[PlaybookRun],
    nodes: Option<&[NodeSeen]>,
) -> Plan<Action, crds::MachineStatus> {
    let (hosts, runs): (Vec<&Host>, Vec<&PlaybookRun>) = (hosts.iter().collect(), runs.iter().collect());
    plan(&Observed {
        now: "2026-01-01T01:00:00Z".parse::<Timestamp>().unwrap(),
        resumed_at: None,
        machine,
        formed: Some(FormedCluster::from(&deployment())),
        machines: &[machine],
        hosts: &hosts,
        share: Shares::new(&[machine], &hosts).share(machine),
        runs: &runs,
        nodes,
        cluster: None,
        node_answer: None,
        drain: None,
    })
}

fn said(plan: &Plan<Action, crds::MachineStatus>) -> (&str, &str) {
    let ready = conditions::find(&plan.status.conditions, "Ready").unwrap();
    (ready.status.as_str(), ready.reason.as_str())
}

const NAMED: &str = ", hostRef: {name: h}";
const WELL: &str = "{phase: Succeeded, finishedAt: '2026-01-01T00:02:00Z', hosts: [{name: h, ok: 3}]}";

#[test]
fn a_claim_raises_the_epoch_and_holds_the_host_until_it_is_given_back() {
    let plan = planned(&machine("", "{}"), &[host("h", "")], &[], None);
    let Action::Claim { host, claim, epoch, finalizers, .. } = &plan.actions[0] else { panic!("{:?}", plan.actions) };
    assert_eq!((claim.uid.as_str(), *epoch), ("m-uid", 5));
    assert_eq!(host.metadata.resource_version.as_deref(), Some("7"));
    assert_eq!(finalizers, &["other", "clusterwright.dev/claimed"]);
    assert!(matches!(&plan.actions[1], Action::SetHost(named) if named.name == "h"));
}

#[test]
fn a_worker_of_a_new_cluster_chooses_after_the_control_plane_even_where_that_is_not_made_yet() {
    let mut new = deployment();
    new.status = None;
    let (worker, host) = (machine("", "{}"), host("h", ""));
    let mut control_plane = machine("", "{}");
    control_plane.spec.role = crds::step::Role::ControlPlane;
    control_plane.metadata.uid = Some("cp-uid".into());
    let planned = |machines: &[&Machine], hosts: &[&Host]| {
        plan(&Observed {
            now: "2026-01-01T01:00:00Z".parse::<Timestamp>().unwrap(),
            resumed_at: None,
            machine: &worker,
            formed: Some(FormedCluster::from(&new)),
            machines,
            hosts,
            share: Shares::new(machines, hosts).share(&worker),
            runs: &[],
            nodes: None,
            cluster: None,
            node_answer: None,
            drain: None,
        })
    };
    let claims = |plan: &Plan<Action, crds::MachineStatus>| {
        plan.actions.iter().any(|action| matches!(action, Action::Claim { .. }))
    };
    let alone = planned(&[&worker], &[&host]);
    assert!(!claims(&alone) && alone.next == crate::Next::after_seconds(1));
    assert!(alone.waits_for.unwrap().contains("control planes choose first"));
    // It is there, and takes the only Host; of two, one is left.
    assert!(!claims(&planned(&[&worker, &control_plane], &[&host])));
    let mut second = host.clone();
    second.metadata.name = Some("i".into());
    second.spec.address = "10.0.0.2".into();
    assert!(claims(&planned(&[&worker, &control_plane], &[&host, &second])));
}

#[test]
fn a_claim_whose_second_half_was_lost_is_completed_and_not_made_twice() {
    let plan = planned(&machine("", "{}"), &[host("g", ""), host("h", "m-uid")], &[], None);
    assert!(matches!(plan.actions.as_slice(), [Action::SetHost(named)] if named.name == "h"), "{:?}", plan.actions);
}

#[test]
fn a_host_that_cannot_be_had_is_named_with_its_reason() {
    let check = |hosts: &[Host], reason: &str| {
        let plan = planned(&machine(NAMED, "{}"), hosts, &[], None);
        assert_eq!((plan.actions.len(), said(&plan)), (0, ("False", reason)));
    };
    check(&[], "HostNotFound");
    check(&[host("h", "another-uid")], "HostTaken");
    let mut unschedulable = host("h", "");
    unschedulable.spec.unschedulable = true;
    check(&[unschedulable], "HostNotReady");
}

#[test]
fn a_run_of_an_earlier_machine_on_the_same_host_says_nothing_of_this_one() {
    let held = [host("h", "m-uid")];
    let plan = planned(&machine(NAMED, "{}"), &held, &[run("old", "an-earlier-uid", WELL)], None);
    assert_eq!(plan.status.provisioned_at, None);
    let plan = planned(&machine(NAMED, "{}"), &held, &[run("new", "m-uid", WELL)], None);
    assert!(plan.status.provisioned_at.is_some());
    assert_eq!(plan.status.last_run.unwrap().outcome, "Succeeded");
}

#[test]
fn a_machine_is_ready_when_its_node_is_and_unknown_without_contact() {
    let held = [host("h", "m-uid")];
    let runs = [run("join", "m-uid", WELL)];
    let node = |ready| NodeSeen { name: "h".into(), ready, kubelet_version: "1.35.4".into(), ..NodeSeen::default() };
    let check = |nodes: Option<&[NodeSeen]>, expected: (&str, &str)| {
        assert_eq!(said(&planned(&machine(NAMED, "{}"), &held, &runs, nodes)), expected);
    };
    check(Some(&[node(Some(true))]), ("True", "Running"));
    check(Some(&[node(Some(false))]), ("False", "NodeNotReady"));
    check(Some(&[node(None)]), ("Unknown", "NodeSilent"));
    check(Some(&[]), ("False", "NodeNotFound"));
    check(None, ("Unknown", "ClusterUnreachable"));
}

#[test]
fn a_machine_whose_pods_are_cut_off_says_so_and_forgets_it_when_its_kubelet_is_silent() {
    let node = |ready, status: &str| {
        let conditions = format!(
            "[{{type: Ready, status: '{ready}'}}, {{type: clusterwright.dev/PodNetworkUnreachable, status: '{status}', message: 1 of 3 answer}}]"
        );
        let yaml = format!("{{metadata: {{name: h}}, status: {{conditions: {conditions}}}}}");
        NodeSeen::from_node(serde_yaml::from_str(&yaml).unwrap())
    };
    let (held, runs) = ([host("h", "m-uid")], [run("join", "m-uid", WELL)]);
    let of = |node: NodeSeen| {
        let status = planned(&machine(NAMED, "{}"), &held, &runs, Some(&[node])).status;
        let all = ["Ready", "NetworkReady", "Healthy"].map(|type_| {
            let there = conditions::find(&status.conditions, type_);
            there.map_or_else(String::new, |there| format!("{} {}", there.status, there.reason))
        });
        all.join(", ")
    };
    let cut_off = "True Running, False PodNetworkUnreachable, False PodNetworkUnreachable";
    assert_eq!(of(node("True", "True")), cut_off);
    assert_eq!(of(node("True", "False")), "True Running, True PodsReached, True Running");
    assert_eq!(of(node("Unknown", "True")), "Unknown NodeSilent, , Unknown NodeSilent");
    assert_eq!(of(node("True", "Unknown")), "True Running, , True Running");
}

#[test]
fn a_failed_join_shows_what_the_machine_said_and_when_it_is_tried_again() {
    let failed = "{phase: Failed, finishedAt: '2026-01-01T00:59:55Z', hosts: [{name: h, failed: 1, failure: {step: prepare, task: t, reason: TaskFailed, message: no}}]}";
    let plan = planned(&machine(NAMED, "{}"), &[host("h", "m-uid")], &[run("join", "m-uid", failed)], None);
    assert_eq!(said(&plan), ("False", "TaskFailed"));
    assert_eq!(plan.status.message.as_deref(), Some("prepare, t: no (tried again at 01:00:10 UTC)"));
    assert_eq!(plan.status.last_run.unwrap().message.as_deref(), Some("TaskFailed: prepare, t: no"));
}

#[test]
fn a_host_in_use_by_a_run_is_not_given_back() {
    let mut leaving = machine(NAMED, "{}");
    leaving.metadata.deletion_timestamp = Some(serde_json::from_str("\"2026-01-01T00:30:00Z\"").unwrap());
    let held = [host("h", "m-uid")];
    let plan = planned(&leaving, &held, &[run("join", "m-uid", "{phase: Running}")], None);
    assert!(plan.actions.is_empty());
    assert_eq!(plan.status.message.as_deref(), Some("waits for run join on Host h to end"));
    let plan = planned(&leaving, &held, &[run("join", "m-uid", WELL)], Some(&[]));
    assert_eq!(plan.status.message.as_deref(), Some("waits for the reset of Host h"));
}

#[test]
fn a_clean_machine_gives_its_host_back_once_its_node_is_gone() {
    let mut leaving = machine(NAMED, "{provisionedAt: '2026-01-01T00:02:00Z'}");
    leaving.metadata.deletion_timestamp = Some(serde_json::from_str("\"2026-01-01T00:00:30Z\"").unwrap());
    let held = [host("h", "m-uid")];
    let mut reset = run(
        "reset",
        "m-uid",
        "{phase: Failed, hosts: [{name: h, clean: true, failure: {step: reset, task: t, reason: NotReached, message: the run stopped when other failed}}, {name: other, failed: 1}]}",
    );
    reset.spec.steps = vec![crds::Step::Reset];
    reset.spec.intent = crds::Intent::Reset;
    let runs = [reset];
    let node = [NodeSeen { name: "h".into(), ..NodeSeen::default() }];
    let plan = planned(&leaving, &held, &runs, Some(&node));
    assert!(matches!(plan.actions.as_slice(), [Action::DeleteNode { node, .. }] if node == "h"));
    let plan = planned(&leaving, &held, &runs, None);
    assert!(plan.actions.is_empty(), "without contact nobody knows whether the Node is gone");
    let plan = planned(&leaving, &held, &runs, Some(&[]));
    let [Action::Release { finalizers, .. }, Action::RemoveFinalizer] = plan.actions.as_slice() else {
        panic!("{:?}", plan.actions)
    };
    assert_eq!(finalizers, &["other"]);
}
