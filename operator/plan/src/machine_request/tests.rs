use crds::machine_request::{RequestAnswer, RequestedMachineState as State};
use crds::{ClusterDeployment, Conditions, Machine, MachineRequest, MachineRequestStatus, MachineSet, ObjectExt};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Action, Observed, plan};
use crate::{Next, Plan};

const MADE: &str = "2026-01-01T00:00:00Z";

fn request(spec: &str) -> MachineRequest {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: MachineRequest, metadata: {{name: order, namespace: fleet, uid: r1, generation: 1, creationTimestamp: '{MADE}', finalizers: [clusterwright.dev/machines-returned]}}, spec: {{clusterName: a, set: w, {spec}}}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

/// What a request, its cluster and its Machines are; every write is carried out as the API would.
struct Case {
    now: Timestamp,
    request: MachineRequest,
    deployment: Option<ClusterDeployment>,
    set: Option<MachineSet>,
    machines: Vec<Machine>,
    made: usize,
    pools: usize,
}

impl Case {
    fn new(spec: &str) -> Self {
        let set = "{apiVersion: clusterwright.dev/v1alpha1, kind: MachineSet, metadata: {name: a-w, namespace: fleet, uid: set}, spec: {clusterName: a, role: worker, replicas: 2, template: {hostSelector: {matchLabels: {size: large}}, spreadBy: [rack], labels: {pool: w}}}}";
        let deployment = "{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {name: a}, spec: {kubernetesVersion: 1.35.4, controlPlane: {replicas: 1}, workers: [{name: w}]}}";
        Self {
            now: MADE.parse().unwrap(),
            request: request(spec),
            deployment: Some(serde_yaml::from_str(deployment).unwrap()),
            set: Some(serde_yaml::from_str(set).unwrap()),
            machines: Vec::new(),
            made: 0,
            pools: 0,
        }
    }

    fn plan(&self) -> Plan<Action, MachineRequestStatus> {
        plan(&Observed {
            now: self.now,
            request: &self.request,
            deployment: self.deployment.as_ref(),
            set: self.set.as_ref(),
            has_pool: self.pools > 0,
            machines: &self.machines.iter().collect::<Vec<_>>(),
        })
    }

    /// One reconcile; the status is written first.
    fn reconcile(&mut self) -> &MachineRequestStatus {
        let plan = self.plan();
        self.request.status = Some(plan.status);
        for action in plan.actions {
            self.apply(action);
        }
        self.status()
    }

    fn apply(&mut self, action: Action) {
        match action {
            Action::AddFinalizer => {
                self.request.metadata.finalizers = Some(vec!["clusterwright.dev/machines-returned".into()]);
            }
            Action::CreateHostPool(_) => self.pools += 1,
            Action::CreateMachine(mut machine) => {
                self.made += 1;
                assert!(self.machines.iter().all(|other| other.name() != machine.name()), "{}", machine.name());
                machine.metadata.uid = Some(format!("m{}", self.made));
                self.machines.push(*machine);
            }
            Action::GiveBack(machine) => self.named(machine.name()).metadata.deletion_timestamp = time(MADE),
            Action::LeaveToSet(machine) => {
                let there = self.named(machine.name());
                there.metadata.annotations = None;
                there.metadata.labels.as_mut().unwrap().remove("clusterwright.dev/machine-request");
            }
            Action::RemoveFinalizer => self.request.metadata.finalizers = None,
        }
    }

    fn named(&mut self, name: &str) -> &mut Machine {
        self.machines.iter_mut().find(|machine| machine.name() == name).unwrap()
    }

    fn status(&self) -> &MachineRequestStatus {
        self.request.status.as_ref().unwrap()
    }

    fn pass(&mut self, seconds: i64) {
        self.now += jiff::SignedDuration::from_secs(seconds);
    }

    /// The state of each Machine, with its reason.
    fn told(&self) -> Vec<(State, &str)> {
        self.status().machines.iter().map(|machine| (machine.state, machine.reason.as_str())).collect()
    }

    fn answer(&self) -> Option<RequestAnswer> {
        self.status().answer
    }

    fn condition(&self, type_: &str) -> Option<(&str, &str)> {
        let stated = self.request.condition(type_)?;
        Some((&stated.status, &stated.reason))
    }
}

fn time(text: &str) -> Option<Time> {
    Some(Time(text.parse().unwrap()))
}

fn ready(machine: &mut Machine, status: &str, reason: &str) {
    let yaml = format!(
        "{{provisionedAt: '{MADE}', conditions: [{{type: Ready, status: '{status}', reason: {reason}, message: 'as it says', lastTransitionTime: '{MADE}'}}]}}"
    );
    machine.status = Some(serde_yaml::from_str(&yaml).unwrap());
}

#[test]
fn nothing_is_made_before_the_request_is_held_and_then_as_many_machines_as_are_requested_and_no_more() {
    let mut case = Case::new("count: 3");
    case.request.metadata.finalizers = None;
    assert_eq!(case.plan().actions, [Action::AddFinalizer]);
    assert_eq!(case.plan().status, MachineRequestStatus::default(), "nothing is written beside");
    case.reconcile();
    for _ in 0..3 {
        case.reconcile();
        assert_eq!(case.machines.len(), 3);
    }
    assert_eq!(case.plan().actions, []);
    assert_eq!(case.plan().next, Next::after_seconds(3600));
}

#[test]
fn its_machines_are_as_the_set_makes_them_of_the_clusters_version_and_on_hosts_that_suit_both() {
    let mut case = Case::new("count: 1, hostSelector: {matchLabels: {gpu: 'yes'}}, requestID: ord-7");
    case.reconcile();
    assert_eq!(case.pools, 1, "what it selects together with its set can be read");
    let machine = &case.machines[0];
    let spec = &machine.spec;
    assert!(machine.name().starts_with("order-"), "{}", machine.name());
    assert_eq!((spec.kubernetes_version, spec.host_ref.as_ref()), (None, None));
    let selected: Vec<String> = spec.host_selector.as_ref().unwrap().match_labels.keys().cloned().collect();
    assert_eq!(selected, ["gpu", "size"]);
    assert_eq!(spec.spread_by.as_ref() as &[String], ["rack"]);
    assert_eq!(spec.labels, case.set.as_ref().unwrap().spec.template.labels);
    assert_eq!(machine.metadata.labels.as_ref().unwrap()["clusterwright.dev/machine-set"], "a-w");
    assert_eq!(super::request_of(machine), Some("order"));
    assert_eq!(machine.annotation("clusterwright.dev/request-id"), Some("ord-7"));
    assert_eq!(machine.metadata.owner_references, None, "onDelete alone says what becomes of it");
}

#[test]
fn hosts_that_are_named_get_a_machine_each_whatever_the_set_selects() {
    let mut case = Case::new("hosts: [h2, h1]");
    case.reconcile();
    let on: Vec<&str> = case.machines.iter().map(|m| m.spec.host_ref.as_ref().unwrap().name.as_str()).collect();
    assert_eq!(on, ["h2", "h1"]);
    assert!(case.machines.iter().all(|machine| machine.spec.host_selector.is_none()));
    case.machines.remove(0);
    case.reconcile();
    assert_eq!(case.machines[1].spec.host_ref.as_ref().unwrap().name, "h2", "made again while the request is open");
}

#[test]
fn it_is_fulfilled_once_every_machine_has_been_ready_even_if_not_all_at_once() {
    let mut case = Case::new("count: 2");
    case.reconcile();
    ready(&mut case.machines[0], "True", "Running");
    case.reconcile();
    assert_eq!((case.status().summary.as_deref(), case.answer()), (Some("1/2"), None));
    assert_eq!(case.condition("Fulfilled"), Some(("False", "WaitingForRequestedMachines")));
    ready(&mut case.machines[0], "False", "NodeNotReady");
    ready(&mut case.machines[1], "True", "Running");
    case.reconcile();
    assert_eq!(case.answer(), Some(RequestAnswer::Fulfilled));
    assert_eq!(case.condition("Fulfilled"), Some(("True", "AllReady")));
    assert_eq!((case.condition("Failed"), case.condition("PartiallyFulfilled")), (None, None));
    case.reconcile();
    assert_eq!(case.condition("Ready"), Some(("False", "MachinesNotReady")), "that follows the Machines");
    assert_eq!(case.condition("Fulfilled"), Some(("True", "AllReady")), "the answer stands");
    ready(&mut case.machines[0], "True", "Running");
    case.reconcile();
    assert_eq!(case.condition("Ready"), Some(("True", "AllReady")));
    assert_eq!(case.plan().waits_for, None);
}

#[test]
fn what_is_not_ready_by_the_deadline_is_given_back_with_its_reason_and_the_rest_stays() {
    let mut case = Case::new("count: 2, deadlineSeconds: 60");
    case.reconcile();
    ready(&mut case.machines[0], "True", "Running");
    ready(&mut case.machines[1], "False", "NoHost");
    case.machines[1].status.as_mut().unwrap().provisioned_at = None;
    case.pass(59);
    case.reconcile();
    assert_eq!(case.answer(), None);
    assert_eq!(case.plan().next, Next::after_seconds(1));
    case.pass(1);
    case.reconcile();
    assert_eq!(case.answer(), Some(RequestAnswer::PartiallyFulfilled));
    assert_eq!(case.condition("PartiallyFulfilled"), Some(("True", "RequestTimedOut")));
    assert_eq!(case.condition("Fulfilled"), Some(("False", "RequestTimedOut")));
    let message = case.status().message.clone().unwrap();
    assert!(message.contains("1 of 2 Ready by its deadline; 1 Machine given back: "), "{message}");
    assert!(message.contains("(NoHost): as it says"), "{message}");
    let leaving: Vec<bool> = case.machines.iter().map(ObjectExt::is_deleting).collect();
    assert_eq!(leaving, [false, true]);
    // What the Machine says while it leaves is not why it was given back.
    for _ in 0..2 {
        case.reconcile();
        let mut told = case.told();
        told.sort_by_key(|(_, reason)| *reason);
        assert_eq!(told, [(State::GivenBack, "NoHost"), (State::Ready, "Running")]);
        case.machines.retain(|machine| !machine.is_deleting());
    }
    assert_eq!(case.machines.len(), 1, "none is made any more");
}

#[test]
fn a_machine_that_becomes_ready_after_it_was_given_up_is_given_back_nevertheless() {
    let mut case = Case::new("count: 1, deadlineSeconds: 60");
    case.reconcile();
    case.pass(60);
    // The operator is cut off once the status is written.
    case.request.status = Some(case.plan().status);
    ready(&mut case.machines[0], "True", "Running");
    case.reconcile();
    assert!(case.machines[0].is_deleting());
    assert_eq!(case.answer(), Some(RequestAnswer::Failed));
    assert_eq!(case.condition("Failed"), Some(("True", "RequestTimedOut")));
}

#[test]
fn a_request_is_canceled_and_answered_at_once_with_what_is_ready() {
    let check = |is_ready: bool, expected: RequestAnswer, type_: &str| {
        let mut case = Case::new("count: 2");
        case.reconcile();
        if is_ready {
            ready(&mut case.machines[1], "True", "Running");
        }
        case.request.spec.cancel = true;
        case.reconcile();
        assert_eq!(case.answer(), Some(expected));
        assert_eq!(case.condition(type_), Some(("True", "RequestCanceled")));
        let stay = case.machines.iter().filter(|machine| !machine.is_deleting()).count();
        assert_eq!(stay, usize::from(is_ready));
    };
    check(true, RequestAnswer::PartiallyFulfilled, "PartiallyFulfilled");
    check(false, RequestAnswer::Failed, "Failed");
}

#[test]
fn a_request_that_cannot_begin_says_why_and_fails_with_that_at_its_deadline() {
    let check = |change: &dyn Fn(&mut Case), reason: &str, says: &str| {
        let mut case = Case::new("count: 1, hostSelector: {matchLabels: {size: small}}");
        case.set.as_mut().unwrap().spec.template.host_selector = None;
        change(&mut case);
        let status = case.reconcile().clone();
        assert_eq!(case.condition("Fulfilled"), Some(("False", reason)));
        assert!(status.message.as_ref().unwrap().contains(says), "{:?}", status.message);
        assert_eq!(case.made, 0);
        case.pass(3600);
        case.reconcile();
        assert_eq!(case.answer(), Some(RequestAnswer::Failed));
        assert!(case.status().message.as_ref().unwrap().contains(says), "{:?}", case.status().message);
    };
    check(&|case| case.deployment = None, "ClusterNotFound", "there is no ClusterDeployment a");
    check(&|case| case.deployment.as_mut().unwrap().spec.paused = true, "Paused", "cluster a is paused");
    check(&|case| case.set = None, "MachineSetNotFound", "MachineSet a-w is not there yet");
    check(
        &|case| {
            case.set = None;
            case.request.spec.set = "x".into();
        },
        "MachineSetNotFound",
        "x is no set of workers of cluster a: it has w",
    );
    check(&|case| case.set = Case::new("count: 1").set, "SelectorsContradict", "label size cannot be large and small");
}

#[test]
fn a_request_for_a_cluster_that_goes_is_answered_at_once() {
    let mut case = Case::new("count: 1");
    case.reconcile();
    case.deployment.as_mut().unwrap().metadata.deletion_timestamp = time(MADE);
    case.reconcile();
    assert_eq!(case.condition("Failed"), Some(("True", "ClusterDeleting")));
    assert!(case.machines[0].is_deleting());
}

#[test]
fn a_machine_that_is_deleted_is_made_again_while_the_request_is_open_and_not_after() {
    let mut case = Case::new("count: 1");
    case.reconcile();
    case.machines[0].metadata.deletion_timestamp = time(MADE);
    case.reconcile();
    assert_eq!(case.machines.len(), 2, "under another name: the first is not gone yet");
    case.machines.remove(0);
    ready(&mut case.machines[0], "True", "Running");
    case.reconcile();
    case.machines[0].metadata.deletion_timestamp = time(MADE);
    case.reconcile();
    assert_eq!(case.told(), [(State::Leaving, "Deleting")]);
    case.machines.clear();
    case.reconcile();
    assert_eq!(case.told(), [(State::Gone, "RequestedMachineDeleted")]);
    assert_eq!((case.made, case.condition("Fulfilled").unwrap().0), (2, "True"));
}

#[test]
fn a_status_that_is_lost_costs_no_machine_that_has_joined() {
    let mut case = Case::new("count: 2, deadlineSeconds: 60");
    case.reconcile();
    ready(&mut case.machines[0], "True", "Running");
    ready(&mut case.machines[1], "True", "Running");
    case.reconcile();
    case.request.status = None;
    ready(&mut case.machines[1], "Unknown", "NodeSilent");
    case.pass(600);
    case.reconcile();
    assert_eq!(case.answer(), Some(RequestAnswer::Fulfilled));
    assert!(case.machines.iter().all(|machine| !machine.is_deleting()));
}

fn deleted(policy: &str) -> Case {
    let mut case = Case::new(&format!("count: 2, onDelete: {policy}"));
    case.reconcile();
    ready(&mut case.machines[0], "True", "Running");
    case.reconcile();
    case.request.metadata.deletion_timestamp = time(MADE);
    case.reconcile();
    case
}

#[test]
fn a_request_that_is_deleted_gives_its_machines_back_and_waits_for_them() {
    let mut case = deleted("Return");
    assert!(case.machines.iter().all(ObjectExt::is_deleting));
    assert_eq!(case.condition("Deleting"), Some(("True", "ReturningMachines")));
    case.reconcile();
    assert!(case.status().message.as_ref().unwrap().starts_with("waits for 2 Machines to be given back: order-"));
    case.machines.clear();
    case.reconcile();
    assert_eq!(case.request.metadata.finalizers, None);
}

#[test]
fn a_request_that_keeps_its_machines_leaves_those_that_it_delivered_to_their_set() {
    let mut case = deleted("Keep");
    assert!(!super::is_requested(&case.machines[0]));
    assert_eq!(case.machines[0].metadata.labels.as_ref().unwrap()["clusterwright.dev/machine-set"], "a-w");
    assert_eq!((case.machines[0].is_deleting(), case.machines[1].is_deleting()), (false, true));
    case.reconcile();
    assert_eq!(case.request.metadata.finalizers, None, "the other goes its way without it");
}
