use crds::machine::{DrainReason, MachinePhase};
use crds::{ClusterDeployment, Host, Machine, MachineStatus, PlaybookRun, conditions};

use crate::Plan;
use crate::cluster::NodeSeen;
use crate::drain::{Drain, PodSeen, Refusal};
use crate::formed_cluster::FormedCluster;
use crate::machine::{Action, Observed, looks_at_pods, plan};

/// A provisioned worker that somebody works on, and all that its planner may look at.
struct Case {
    machine: Machine,
    host: Host,
    deployment: ClusterDeployment,
    nodes: Option<Vec<NodeSeen>>,
    drain: Option<Drain>,
}

fn parse<T: serde::de::DeserializeOwned>(yaml: &str) -> T {
    serde_yaml::from_str(yaml).unwrap()
}

fn maintained() -> Case {
    Case {
        machine: parse(
            "{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {name: m, namespace: fleet, uid: m-uid, generation: 3, finalizers: [clusterwright.dev/release-host]}, spec: {clusterName: a, role: worker, kubernetesVersion: 1.35.4, hostRef: {name: h}, drainFor: [Maintenance]}, status: {provisionedAt: '2026-01-01T00:02:00Z'}}",
        ),
        host: parse(
            "{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {name: h, finalizers: [clusterwright.dev/claimed]}, spec: {address: 10.0.0.1, claimEpoch: 1, claimRef: {kind: Machine, name: m, uid: m-uid}, ssh: {credentialsRef: {name: key}}}}",
        ),
        deployment: parse(
            "{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {name: a, generation: 1}, spec: {kubernetesVersion: 1.35.4, controlPlane: {replicas: 1}}, status: {installedAt: '2026-01-01T00:00:00Z'}}",
        ),
        nodes: Some(vec![node()]),
        drain: None,
    }
}

fn node() -> NodeSeen {
    let mut node = NodeSeen { name: "h".into(), uid: "n-uid".into(), ready: Some(true), ..NodeSeen::default() };
    node.kubelet_version = "1.35.4".into();
    node.labels = [("node-role.kubernetes.io/worker".to_owned(), String::new())].into();
    node
}

fn pods(names: &[&str], held: &[&str]) -> Option<Drain> {
    let pod = |name: &&str| PodSeen {
        namespace: "default".into(),
        name: (*name).into(),
        uid: (*name).into(),
        ..PodSeen::default()
    };
    let refusal = |name: &&str| Refusal { uid: (*name).into(), budgets: vec!["web".into()], ..Refusal::default() };
    Some(Drain { pods: Ok(names.iter().map(pod).collect()), refusals: held.iter().map(refusal).collect() })
}

impl Case {
    fn observed<T>(&self, look: impl FnOnce(&Observed<'_>) -> T) -> T {
        let runs: Vec<&PlaybookRun> = Vec::new();
        look(&Observed {
            now: "2026-01-01T01:00:00Z".parse().unwrap(),
            resumed_at: None,
            machine: &self.machine,
            formed: Some(FormedCluster::from(&self.deployment)),
            machines: &[&self.machine],
            hosts: &[&self.host],
            share: None,
            runs: &runs,
            nodes: self.nodes.as_deref(),
            cluster: None,
            node_answer: None,
            drain: self.drain.as_ref(),
        })
    }

    fn plan(&self) -> Plan<Action, MachineStatus> {
        self.observed(plan)
    }

    /// What is done at the Node, in a word each.
    fn does(&self) -> Vec<&'static str> {
        let done = |action: Action| match action {
            Action::Cordon { uid, .. } if uid == "n-uid" => "cordon",
            Action::Uncordon { uid, .. } if uid == "n-uid" => "uncordon",
            Action::Evict { .. } => "evict",
            Action::ApplyNode { .. } => "labels",
            other => panic!("{other:?}"),
        };
        self.plan().actions.into_iter().map(done).filter(|done| *done != "labels").collect()
    }

    /// Status, reason and message of `Drained`; empty: nothing is said.
    fn says(&self) -> String {
        let status = self.plan().status;
        let drained = conditions::find(&status.conditions, "Drained");
        drained.map(|there| format!("{} {}: {}", there.status, there.reason, there.message)).unwrap_or_default()
    }

    /// The status is written, and what was done at the Node is seen.
    fn goes_on(&mut self) {
        let Plan { actions, status, .. } = self.plan();
        for action in actions {
            let cordons = matches!(action, Action::Cordon { .. });
            if cordons || matches!(action, Action::Uncordon { .. }) {
                for node in self.nodes.iter_mut().flatten() {
                    (node.unschedulable, node.owners.drains) = (cordons, cordons);
                }
            }
        }
        self.machine.status = Some(status);
    }
}

#[test]
fn its_node_takes_no_pods_while_somebody_works_on_it_and_takes_them_again() {
    let mut case = maintained();
    assert!(case.observed(looks_at_pods));
    case.drain = pods(&["web-1"], &[]);
    assert_eq!(case.does(), ["cordon", "evict"]);
    assert_eq!(case.says(), "False Draining: 1 Pod is left: default/web-1");
    case.goes_on();
    let status = case.machine.status.clone().unwrap();
    assert_eq!(status.phase, Some(MachinePhase::Draining));
    assert_eq!(status.message.unwrap(), "Maintenance: 1 Pod is left: default/web-1");
    case.drain = pods(&[], &[]);
    case.goes_on();
    assert_eq!((case.does().len(), case.says()), (0, "True Drained: no Pod is left on Node h".into()));
    assert!(!case.observed(looks_at_pods), "nobody looks again at a Node that takes no Pods");
    assert_eq!(case.plan().status.phase, Some(MachinePhase::Running));

    case.machine.spec.drain_for.clear();
    assert_eq!((case.does(), case.says()), (vec!["uncordon"], String::new()));
    case.goes_on();
    assert_eq!((case.does().len(), case.plan().status.message.unwrap()), (0, "running".into()));
}

#[test]
fn a_budget_is_waited_for_however_long_that_takes_and_named() {
    let mut case = maintained();
    case.drain = pods(&["web-1"], &["web-1"]);
    let status = case.plan().status;
    assert_eq!(status.blocked_pods[0].budgets, ["web"]);
    case.goes_on();
    case.machine.status.as_mut().unwrap().conditions[0].last_transition_time.0 -= jiff::SignedDuration::from_hours(9);
    assert_eq!(case.does(), ["evict"]);
    assert_eq!(case.says(), "False PodsBlocked: 1 Pod is left: default/web-1 (PodDisruptionBudget web)");
}

#[test]
fn a_node_that_a_person_opens_meanwhile_is_drained_again() {
    let mut case = maintained();
    case.drain = pods(&[], &[]);
    (0..2).for_each(|_| case.goes_on());
    assert!(case.says().starts_with("True Drained"));
    case.nodes = Some(vec![node()]);
    case.drain = None;
    assert!(case.observed(looks_at_pods));
    assert_eq!(case.does(), ["cordon"]);
    assert!(case.says().starts_with("False Draining"), "{}", case.says());
}

#[test]
fn what_a_person_cordoned_is_left_so() {
    let mut case = maintained();
    case.machine.spec.drain_for = Vec::new();
    case.nodes.as_mut().unwrap()[0].unschedulable = true;
    assert_eq!((case.does().len(), case.says()), (0, String::new()));
    case.machine.spec.drain_for = vec![DrainReason::Maintenance];
    assert_eq!(case.does(), ["cordon"], "the operator holds it as well");
}

#[test]
fn nothing_is_done_in_a_cluster_that_is_paused_and_that_is_said() {
    let mut case = maintained();
    case.drain = pods(&["web-1"], &[]);
    case.goes_on();
    case.deployment.spec.paused = true;
    assert_eq!((case.does().len(), case.observed(looks_at_pods)), (0, false));
    assert_eq!(case.says(), "Unknown DrainOnHold: Node h is not drained: its cluster is paused");
    case.machine.spec.drain_for.clear();
    assert_eq!(case.does().len(), 0);
    assert_eq!(case.says(), "Unknown DrainOnHold: Node h takes no new Pods still: its cluster is paused");
}

#[test]
fn what_is_not_known_is_not_done_and_what_was_done_is_not_forgotten() {
    let mut case = maintained();
    case.nodes = None;
    assert!(case.says().starts_with("Unknown ClusterUnreachable"), "{}", case.says());
    case.nodes = Some(Vec::new());
    assert_eq!(case.says(), "True NothingToDrain: the cluster has no Node h");
    case.nodes = Some(vec![node()]);
    case.drain = pods(&[], &[]);
    (0..2).for_each(|_| case.goes_on());
    case.nodes = None;
    assert_eq!(case.says(), "True Drained: no Pod is left on Node h");
}

#[test]
fn a_machine_that_was_drained_for_something_is_drained_again_when_it_leaves() {
    let mut case = maintained();
    case.drain = pods(&[], &[]);
    (0..2).for_each(|_| case.goes_on());
    case.machine.spec.drain_for.clear();
    case.nodes = Some(vec![node()]);
    case.machine.metadata.deletion_timestamp = Some(parse("2026-01-01T00:59:00Z"));
    case.drain = pods(&["web-1"], &[]);
    assert!(case.observed(looks_at_pods));
    assert_eq!(case.does(), ["cordon", "evict"]);
    case.goes_on();
    case.drain = pods(&[], &[]);
    assert!(case.says().starts_with("True Drained"), "{}", case.says());
}
