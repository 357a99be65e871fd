use crds::host::QuarantineReason;
use crds::{Cluster, ClusterDeployment, Host, Machine, MachineStatus, PlaybookRun, conditions};
use jiff::Timestamp;
use proptest::prelude::*;

use crate::Plan;
use crate::cluster::NodeSeen;
use crate::drain::{Drain, PodSeen, Refusal};
use crate::formed_cluster::FormedCluster;
use crate::machine::{Action, Observed, looks_at_pods, plan};

/// One machine that leaves, and all that its planner may look at.
struct Case {
    now: &'static str,
    machine: Machine,
    host: Host,
    deployment: ClusterDeployment,
    runs: Vec<PlaybookRun>,
    nodes: Option<Vec<NodeSeen>>,
    cluster: Option<Cluster>,
    drain: Option<Drain>,
}

fn parse<T: serde::de::DeserializeOwned>(yaml: &str) -> T {
    serde_yaml::from_str(yaml).unwrap()
}

/// A worker of a cluster that goes on, provisioned, its node Ready, deleted at 01:00.
fn worker() -> Case {
    Case {
        now: "2026-01-01T01:00:10Z",
        machine: parse(
            "{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {name: m, namespace: fleet, uid: m-uid, generation: 3, deletionTimestamp: '2026-01-01T01:00:00Z', labels: {clusterwright.dev/machine-set: a-w}}, spec: {clusterName: a, role: worker, kubernetesVersion: 1.35.4, hostRef: {name: h}}, status: {provisionedAt: '2026-01-01T00:02:00Z'}}",
        ),
        host: parse(
            "{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {name: h, finalizers: [clusterwright.dev/claimed]}, spec: {address: 10.0.0.1, claimEpoch: 1, claimRef: {kind: Machine, name: m, uid: m-uid}, ssh: {credentialsRef: {name: key}}}}",
        ),
        deployment: parse(
            "{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {name: a, generation: 1}, spec: {kubernetesVersion: 1.35.4, controlPlane: {replicas: 1}, machineRemoval: {forceRemoveAfterSeconds: 900}}, status: {installedAt: '2026-01-01T00:00:00Z'}}",
        ),
        runs: Vec::new(),
        nodes: Some(vec![node(Some(true), false)]),
        cluster: None,
        drain: None,
    }
}

fn node(ready: Option<bool>, unschedulable: bool) -> NodeSeen {
    NodeSeen { name: "h".into(), ready, unschedulable, ..NodeSeen::default() }
}

fn pod(name: &str) -> PodSeen {
    PodSeen { namespace: "default".into(), name: name.into(), uid: name.into(), ..PodSeen::default() }
}

fn pods(names: &[&str], held: &[&str]) -> Option<Drain> {
    let refusal = |name: &&str| Refusal {
        uid: (*name).into(),
        budgets: vec!["web".into()],
        message: "not now".into(),
        retry_after_seconds: 0,
    };
    Some(Drain { pods: Ok(names.iter().map(|name| pod(name)).collect()), refusals: held.iter().map(refusal).collect() })
}

fn reset(number: u8, status: &str) -> PlaybookRun {
    parse(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: r{number}, creationTimestamp: '2026-01-01T01:00:0{number}Z', annotations: {{clusterwright.dev/attempt: '{number}', clusterwright.dev/machines: '{{\"h\": {{\"uid\": \"m-uid\"}}}}'}}}}, spec: {{clusterName: a, intent: Reset, steps: [reset], hosts: [h]}}, status: {status}}}"
    ))
}

const CLEAN: &str = "{phase: Succeeded, finishedAt: '2026-01-01T01:00:05Z', hosts: [{name: h, ok: 1, clean: true}]}";
const DIRTY: &str = "{phase: Failed, finishedAt: '2026-01-01T01:00:05Z', hosts: [{name: h, failed: 1, failure: {step: reset, task: t, reason: NotClean, message: mounts}}]}";
const SILENT: &str = "{phase: Failed, finishedAt: '2026-01-01T01:00:05Z', hosts: [{name: h, unreachable: true}]}";

impl Case {
    fn observed<T>(&self, look: impl FnOnce(&Observed<'_>) -> T) -> T {
        let runs: Vec<&PlaybookRun> = self.runs.iter().collect();
        look(&Observed {
            node_answer: None,
            now: self.now.parse::<Timestamp>().unwrap(),
            resumed_at: None,
            machine: &self.machine,
            formed: Some(FormedCluster::from(&self.deployment)),
            machines: &[&self.machine],
            hosts: &[&self.host],
            share: None,
            runs: &runs,
            nodes: self.nodes.as_deref(),
            cluster: self.cluster.as_ref(),
            drain: self.drain.as_ref(),
        })
    }

    fn plan(&self) -> Plan<Action, MachineStatus> {
        self.observed(plan)
    }

    /// Reason of `Deleting`, and status and reason of `Drained`.
    fn says(&self) -> (String, String) {
        let status = self.plan().status;
        let condition = |type_| conditions::find(&status.conditions, type_).cloned();
        let drained = condition("Drained").map(|there| format!("{} {}", there.status, there.reason));
        (condition("Deleting").unwrap().reason, drained.unwrap_or_default())
    }

    fn check(&self, deleting: &str, drained: &str) {
        assert_eq!(self.says(), (deleting.to_owned(), drained.to_owned()));
    }

    /// What is written in the status, as the next look finds it.
    fn write(&mut self) {
        self.machine.status = Some(self.plan().status);
    }

    fn quarantine(&self) -> Option<QuarantineReason> {
        self.plan().actions.into_iter().find_map(|step| match step {
            Action::Release { quarantine, .. } => quarantine.map(|quarantine| quarantine.reason),
            _ => None,
        })
    }

    fn releases(&self) -> bool {
        matches!(self.plan().actions.as_slice(), [Action::Release { .. }, Action::RemoveFinalizer])
    }

    fn force(&mut self, generation: i64) {
        let word = ("clusterwright.dev/force-remove".to_owned(), generation.to_string());
        self.machine.metadata.annotations = Some([word].into());
    }
}

#[test]
fn a_node_is_cordoned_and_its_pods_evicted() {
    let mut case = worker();
    assert!(case.observed(looks_at_pods));
    case.check("Draining", "False Draining");
    case.drain = pods(&["web-1", "web-2"], &[]);
    let steps = case.plan().actions;
    assert!(
        matches!(steps.as_slice(), [Action::Cordon { .. }, Action::Evict { pods, .. }] if pods.len() == 2),
        "{steps:?}"
    );
}

#[test]
fn the_pods_and_the_budgets_in_the_way_are_named() {
    let mut case = worker();
    case.nodes = Some(vec![node(Some(true), true)]);
    case.drain = pods(&["web-1", "web-2"], &["web-2"]);
    case.check("Draining", "False PodsBlocked");
    assert_eq!(
        case.plan().status.message.unwrap(),
        "2 Pods are left: default/web-2 (PodDisruptionBudget web), default/web-1; goes on without them at 01:10:10 UTC"
    );
}

#[test]
fn the_removal_goes_on_after_the_timeout_and_says_so() {
    let mut case = worker();
    case.drain = pods(&["web-1"], &["web-1"]);
    case.write();
    case.now = "2026-01-01T01:10:10Z";
    case.check("DeletingNode", "False TimedOut");
    case.write();
    case.nodes = Some(Vec::new());
    case.check("WaitingForReset", "False TimedOut");
}

#[test]
fn what_need_not_be_moved_is_not_waited_for() {
    let mut silent = worker();
    silent.nodes = Some(vec![node(None, false)]);
    silent.check("DeletingNode", "False PodsNotMoved");
    let mut without = worker();
    without.nodes = Some(Vec::new());
    without.check("WaitingForReset", "True NothingToDrain");
    let mut never = worker();
    never.deployment.spec.machine_removal.drain_timeout_seconds = 0;
    never.check("DeletingNode", "False PodsNotMoved");
    let mut drained = worker();
    drained.drain = pods(&[], &[]);
    drained.check("DeletingNode", "True Drained");
    assert!(![silent, without, never].iter().any(|case| case.observed(looks_at_pods)));
}

#[test]
fn a_cluster_whose_api_is_silent_halts_the_removal_until_it_is_forced() {
    let mut case = worker();
    case.nodes = None;
    case.check("ClusterUnreachable", "Unknown ClusterUnreachable");
    assert!(case.plan().actions.is_empty());
    case.cluster = Some(parse(
        "{apiVersion: clusterwright.dev/v1alpha1, kind: Cluster, metadata: {name: a}, spec: {kubeconfigRef: {name: k}}, status: {conditions: [{type: Reachable, status: 'True', reason: ApiAnswers, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}}",
    ));
    case.force(3);
    case.check("ClusterUnreachable", "Unknown ClusterUnreachable");
    case.cluster = None;
    assert_eq!(case.quarantine(), None, "its cluster has not written it down");
    case.check("ClusterUnreachable", "");
    let status = case.deployment.status.get_or_insert_default();
    status.forgotten = vec![parse("{uid: m-uid, machine: m, host: h, role: worker, since: '2026-01-01T00:00:00Z'}")];
    assert_eq!(case.quarantine(), Some(QuarantineReason::ForceRemoved));
}

#[test]
fn a_forced_machine_still_loses_its_node_and_is_not_cleaned() {
    let mut case = worker();
    case.force(1);
    case.check("Draining", "False Draining");
    case.nodes = Some(vec![node(None, false)]);
    case.check("DeletingNode", "False PodsNotMoved");
    case.nodes = Some(Vec::new());
    case.check("WaitingForReset", "True NothingToDrain");
    // The deletion raised the generation from 2 to 3.
    case.force(2);
    assert_eq!((case.releases(), case.quarantine()), (true, Some(QuarantineReason::ForceRemoved)));
}

#[test]
fn a_machine_that_stays_silent_is_forgotten_after_its_time() {
    let mut case = worker();
    case.nodes = Some(Vec::new());
    case.runs = vec![reset(1, SILENT)];
    case.check("WaitingForReset", "True NothingToDrain");
    let message = case.plan().status.message.unwrap();
    assert!(message.contains("removed without cleaning at 01:15:00 UTC"), "{message}");
    case.now = "2026-01-01T01:15:00Z";
    assert_eq!(case.quarantine(), Some(QuarantineReason::ForceRemoved));
}

#[test]
fn a_clean_machine_goes_back_into_the_pool_once_its_node_is_gone() {
    let mut case = worker();
    case.runs = vec![reset(1, CLEAN)];
    case.drain = pods(&[], &[]);
    case.check("DeletingNode", "True Drained");
    case.write();
    case.nodes = Some(Vec::new());
    assert_eq!((case.releases(), case.quarantine()), (true, None));
}

#[test]
fn what_cannot_be_cleaned_is_quarantined_and_what_a_set_says_is_kept() {
    let mut case = worker();
    case.nodes = Some(Vec::new());
    case.runs = vec![reset(1, DIRTY), reset(2, SILENT), reset(3, DIRTY)];
    case.check("WaitingForReset", "True NothingToDrain");
    case.runs.push(reset(4, DIRTY));
    assert_eq!(case.quarantine(), Some(QuarantineReason::CleaningFailed));
    case.runs.push(reset(5, CLEAN));
    let word = "{\"reason\": \"JoinFailed\", \"message\": \"no\"}".to_owned();
    case.machine.metadata.annotations = Some([("clusterwright.dev/quarantine".to_owned(), word)].into());
    assert_eq!(case.quarantine(), Some(QuarantineReason::JoinFailed));
}

#[test]
fn in_a_clusters_own_deletion_nothing_is_drained() {
    let mut case = worker();
    case.deployment.metadata.deletion_timestamp = case.machine.metadata.deletion_timestamp.clone();
    case.check("WaitingForReset", "");
    assert!(case.plan().actions.is_empty() && !case.observed(looks_at_pods));
}

#[test]
fn a_pod_may_stay_if_it_is_a_daemon_sets_the_kubelets_own_or_has_ended() {
    let check = |metadata: &str, phase: &str, moved: bool| {
        let text = format!("{{metadata: {{name: p, {metadata}}}, status: {{phase: {phase}}}}}");
        assert_eq!(PodSeen::to_evict(&parse(&text)).is_some(), moved, "{text}");
    };
    let owner = |kind: &str| {
        format!("ownerReferences: [{{apiVersion: apps/v1, kind: {kind}, name: o, uid: u, controller: true}}]")
    };
    check("", "Running", true);
    check(&owner("ReplicaSet"), "Pending", true);
    check(&owner("DaemonSet"), "Running", false);
    check("annotations: {kubernetes.io/config.mirror: x}", "Running", false);
    check("", "Succeeded", false);
    check("", "Failed", false);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]
    /// From any state: it never gives back what is not clean without a quarantine, cleans nothing that still has a
    /// Node, drains nothing in a cluster's own deletion, and comes to an end.
    #[test]
    fn a_removal_keeps_its_promises_and_ends(
        ready in proptest::option::of(proptest::option::of(any::<bool>())),
        mut left in 0usize..5,
        held in any::<bool>(),
        forced in any::<bool>(),
        deleted in any::<bool>(),
        provisioned in any::<bool>(),
        mut outcomes in proptest::collection::vec(prop_oneof![Just(CLEAN), Just(DIRTY), Just(SILENT)], 0..4),
    ) {
        let mut case = worker();
        case.nodes = Some(ready.map(|ready| node(ready, false)).into_iter().collect());
        if forced { case.force(3); }
        if deleted {
            case.deployment.metadata.deletion_timestamp = case.machine.metadata.deletion_timestamp.clone();
        }
        if !provisioned {
            case.machine.status = Some(MachineStatus::default());
            case.runs.push(reset(0, DIRTY));
            case.runs[0].spec.intent = crds::Intent::Join;
            case.runs[0].spec.steps = vec![crds::Step::Node];
        }
        let times = ["2026-01-01T01:00:10Z", "2026-01-01T01:05:00Z", "2026-01-01T01:30:00Z"];
        let mut clean = false;
        let mut number = 1;
        for turn in 0..40 {
            case.now = times[(turn / 8_usize).min(2)];
            let names: Vec<String> = (0..left).map(|number| format!("p{number}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            case.drain = pods(&names, if held { &names } else { &[] });
            let plan = case.plan();
            for step in &plan.actions {
                match step {
                    Action::Cordon { .. } => case.nodes = case.nodes.take().map(|nodes| nodes.into_iter().map(|node| NodeSeen { unschedulable: true, ..node }).collect()),
                    Action::Evict { pods, .. } => {
                        prop_assert!(!deleted && !pods.is_empty());
                        if !held { left = left.saturating_sub(1); }
                    }
                    Action::DeleteNode { .. } => case.nodes = Some(Vec::new()),
                    Action::Release { quarantine, .. } => {
                        prop_assert!(clean || quarantine.is_some(), "released dirty");
                        return Ok(());
                    }
                    other => prop_assert!(false, "{other:?}"),
                }
            }
            case.machine.status = Some(plan.status);
            if super::waits_for_reset(&case.machine) {
                let has_node = case.nodes.as_ref().is_some_and(|nodes| !nodes.is_empty());
                prop_assert!(deleted || !has_node, "cleaned with its Node still there");
                let outcome = if outcomes.is_empty() { CLEAN } else { outcomes.remove(0) };
                clean |= outcome == CLEAN;
                case.runs.push(reset(number, outcome));
                number += 1;
            }
        }
        prop_assert!(false, "it has not come to an end: {:?}", case.machine.status);
    }
}
