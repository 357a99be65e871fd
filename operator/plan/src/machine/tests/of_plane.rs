//! A machine of a Karmada control plane, beside a ClusterDeployment of the same name.

use crds::{Host, KarmadaDeployment, Machine, MachineStatus, PlaybookRun, conditions};
use jiff::Timestamp;

use crate::Plan;
use crate::claims::Shares;
use crate::departure::EtcdMembership;
use crate::formed_cluster::FormedCluster;
use crate::machine::{Action, Observed, plan};

const JOINED: &str = "provisionedAt: '2026-01-01T01:00:00Z', etcdMemberID: ff";
const DELETED: &str = ", deletionTimestamp: '2026-01-01T01:30:00Z'";
const OF_PLANE: &str = ", clusterKind: KarmadaDeployment";

fn plane(binary: &str) -> KarmadaDeployment {
    serde_yaml::from_str(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: KarmadaDeployment, metadata: {{name: k1, namespace: fleet, uid: k1-uid}}, spec: {{version: 1.18.2, mode: Binary, binary: {{controlPlane: {{replicas: 3}}, artifacts: {{url: 'https://b.example.com'}}{binary}}}, crds: {{bundle: {{url: 'https://b.example.com'}}}}}}, status: {{firstInstalledAt: '2026-01-01T00:30:00Z'}}}}"
    ))
    .unwrap()
}

fn machine(name: &str, kind: &str, metadata: &str, spec: &str, status: &str) -> Machine {
    serde_yaml::from_str(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: {name}, namespace: fleet, uid: {name}-uid, creationTimestamp: '2026-01-01T00:40:00Z', finalizers: [clusterwright.dev/release-host]{metadata}}}, spec: {{clusterName: k1{kind}, role: control-plane{spec}}}, status: {{{status}}}}}"
    ))
    .unwrap()
}

fn joined(name: &str, kind: &str, status: &str) -> Machine {
    machine(name, kind, "", &format!(", hostRef: {{name: h-{name}}}"), status)
}

fn host(name: &str, claim: &str) -> Host {
    serde_yaml::from_str(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: h-{name}}}, spec: {{address: 10.0.0.1, ssh: {{credentialsRef: {{name: key}}}}, claimEpoch: 4{claim}}}, status: {{cleanedEpoch: 4, conditions: [{{type: Ready, status: 'True', reason: Available, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}}}"
    ))
    .unwrap()
}

fn held(name: &str) -> Host {
    host(name, &format!(", claimRef: {{kind: Machine, name: {name}, uid: {name}-uid}}"))
}

fn planned(
    machine: &Machine,
    formed: Option<FormedCluster<'_>>,
    host: &Host,
    runs: &[PlaybookRun],
) -> Plan<Action, MachineStatus> {
    let others = [joined("o", OF_PLANE, JOINED), joined("p", OF_PLANE, JOINED)];
    plan(&Observed {
        now: "2026-01-01T02:00:00Z".parse::<Timestamp>().unwrap(),
        resumed_at: None,
        machine,
        formed,
        machines: &[machine, &others[0], &others[1]],
        hosts: &[host],
        share: Shares::new(&[machine], &[host]).share(machine),
        runs: &runs.iter().collect::<Vec<_>>(),
        nodes: None,
        cluster: None,
        node_answer: None,
        drain: None,
    })
}

fn said(plan: &Plan<Action, MachineStatus>, type_: &str) -> String {
    let there = conditions::find(&plan.status.conditions, type_);
    there.map(|there| format!("{} {}: {}", there.status, there.reason, there.message)).unwrap_or_default()
}

#[test]
fn it_takes_a_host_of_the_pool_once_its_plane_is_there() {
    let (object, looking, spare) = (plane(""), machine("m", OF_PLANE, "", "", ""), host("m", ""));
    let claims = |plan: &Plan<Action, MachineStatus>| {
        plan.actions.iter().any(|action| matches!(action, Action::Claim { epoch: 5, .. }))
    };
    let took = planned(&looking, Some((&object).into()), &spare, &[]);
    assert!(claims(&took), "{:?}", took.status.message);
    let alone = planned(&looking, None, &spare, &[]);
    assert!(!claims(&alone));
    assert!(alone.waits_for.unwrap().contains("there is no KarmadaDeployment k1 in this namespace"));
}

#[test]
fn it_is_ready_without_a_node_also_while_its_plane_is_not_there() {
    let (object, machine) = (plane(""), joined("m", OF_PLANE, JOINED));
    for formed in [Some((&object).into()), None] {
        let plan = planned(&machine, formed, &held("m"), &[]);
        assert_eq!((plan.status.node_name.clone(), said(&plan, "NodeReady")), (None, String::new()));
    }
    let plan = planned(&machine, Some((&object).into()), &held("m"), &[]);
    assert_eq!(said(&plan, "Ready"), "True Running: running");
}

#[test]
fn it_is_not_ready_while_a_part_of_its_plane_was_found_unhealthy_of_late() {
    let object = plane("");
    let applied = "applied: {token: 1, parts: {apiserver: 1.35.4-a, scheduler: 1.18.2-a, descheduler: 1.18.2-stopped}}";
    let ready_with = |parts: &str, runs: &[PlaybookRun]| {
        let machine = joined("m", OF_PLANE, &format!("{JOINED}, {applied}, parts: [{parts}]"));
        said(&planned(&machine, Some((&object).into()), &held("m"), runs), "Ready")
    };
    let ready = |parts: &str| ready_with(parts, &[]);
    let part = |name: &str, healthy: bool, at: &str| {
        format!("{{name: {name}, healthy: {healthy}, message: answers 500, lastProbeTime: '2026-01-01T{at}:00Z'}}")
    };
    let (well, sick) = (part("apiserver", true, "01:59"), part("scheduler", false, "01:58"));
    assert_eq!(ready(&well), "True Running: running");
    assert_eq!(ready(&format!("{well}, {sick}")), "False PartUnhealthy: scheduler is not healthy: answers 500");
    // What nobody has brought yet, or what was stopped, need not work.
    assert_eq!(ready(&part("webhook", false, "01:58")), "True Running: running");
    assert_eq!(ready(&part("descheduler", false, "01:58")), "True Running: running");
    // A run that has brought it since has waited until it worked.
    let brings: PlaybookRun = serde_yaml::from_str("{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {name: b, creationTimestamp: '2026-01-01T01:58:30Z', annotations: {clusterwright.dev/machines: '{\"h-m\": {\"uid\": \"m-uid\"}}'}}, spec: {clusterName: k1, clusterKind: KarmadaDeployment, hosts: [h-m], intent: Configure, steps: [karmada-service], karmada: {part: scheduler, digests: {h-m: 1.18.2-a}}}, status: {phase: Succeeded, startedAt: '2026-01-01T01:58:40Z', finishedAt: '2026-01-01T01:59:00Z', hosts: [{name: h-m, ok: 1}], steps: [{name: karmada-service, phase: Succeeded}]}}").unwrap();
    assert_eq!(ready_with(&sick, std::slice::from_ref(&brings)), "True Running: running");
    // What a run has found since goes before what is shown.
    let machine = joined("m", OF_PLANE, &format!("{JOINED}, {applied}, parts: [{sick}]"));
    let probe: PlaybookRun = serde_yaml::from_str("{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {name: r, creationTimestamp: '2026-01-01T01:59:00Z'}, spec: {clusterName: k1, clusterKind: KarmadaDeployment, hosts: [h-m], intent: Probe, steps: [probe-karmada]}, status: {phase: Succeeded, finishedAt: '2026-01-01T01:59:30Z', hosts: [{name: h-m, parts: [{name: scheduler, digest: 1.18.2-a, healthy: true}]}]}}").unwrap();
    let plan = planned(&machine, Some((&object).into()), &held("m"), &[probe]);
    let seen = &plan.status.parts[0];
    assert_eq!((seen.name.as_str(), seen.digest.as_deref(), seen.healthy), ("scheduler", Some("1.18.2-a"), true));
    assert_eq!(seen.last_probe_time.0.to_string(), "2026-01-01T01:59:30Z");
    assert_eq!(said(&plan, "Ready"), "True Running: running");
    // What was seen long ago says nothing of now.
    assert_eq!(ready(&part("scheduler", false, "01:20")), "True Running: running");
}

#[test]
fn it_leaves_without_being_drained_and_its_host_is_quarantined_as_the_plane_s() {
    let object = plane(", forceRemoveAfterSeconds: 600");
    let leaving = machine("m", OF_PLANE, DELETED, ", hostRef: {name: h-m}", JOINED);
    let plan = planned(&leaving, Some((&object).into()), &held("m"), &[]);
    let silent: PlaybookRun = serde_yaml::from_str("{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {name: r, creationTimestamp: '2026-01-01T01:40:00Z'}, spec: {clusterName: k1, clusterKind: KarmadaDeployment, hosts: [h-m], intent: Reset, steps: [reset]}, status: {phase: Failed, finishedAt: '2026-01-01T01:50:30Z', hosts: [{name: h-m, unreachable: true}]}}").unwrap();
    assert!(said(&plan, "Deleting").starts_with("True LeavingEtcd"), "{}", said(&plan, "Deleting"));
    assert!(said(&plan, "Drained").starts_with("True NothingToDrain"), "{}", said(&plan, "Drained"));
    let mut ending = FormedCluster::from(&object);
    ending.is_deleting = true;
    let plan = planned(&leaving, Some(ending), &held("m"), &[silent]);
    let Some(Action::Release { quarantine: Some(quarantine), .. }) = plan.actions.first() else {
        panic!("{:?}", plan.actions)
    };
    assert_eq!(quarantine.former(), Some(crds::FormerRef::plane("k1")));
    assert_eq!(quarantine.fence.as_ref().unwrap().cluster_uid, "k1-uid");
}

#[test]
fn machines_of_a_cluster_of_the_same_name_are_no_members_of_its_etcd() {
    let (object, ours, theirs) = (plane(""), joined("m", OF_PLANE, JOINED), joined("o", "", JOINED));
    let membership = EtcdMembership::new(&[&ours, &theirs], (&object).into(), &[]);
    let names: Vec<_> = membership.members().iter().map(|machine| machine.metadata.name.clone()).collect();
    assert_eq!(names, [Some("m".to_owned())]);
}
