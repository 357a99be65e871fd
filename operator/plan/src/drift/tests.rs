//! What is reported of a machine that was compared.

use crds::{ClusterDeployment, Machine, PlaybookRun, Reason};

use super::{shown, statement};

fn machine(drift: &str) -> Machine {
    serde_yaml::from_str(&format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: m1, uid: u1}}, spec: {{clusterName: a, role: worker, kubernetesVersion: 1.35.4, hostRef: {{name: h1}}}}, status: {{provisionedAt: '2026-11-21T08:00:00Z'{drift}}}}}")).unwrap()
}

fn deployment(drift: &str) -> ClusterDeployment {
    serde_yaml::from_str(&format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: a, namespace: fleet, uid: cd}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1}}, drift: {{{drift}}}}}}}")).unwrap()
}

/// A comparison of these steps that was made, and ended, at this time, with what it found on h1.
fn look(at: &str, steps: &str, phase: &str, hosts: &str) -> PlaybookRun {
    serde_yaml::from_str(&format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: 'p{at}', creationTimestamp: '2026-11-21T{at}:00Z'}}, spec: {{clusterName: a, intent: Compare, steps: [{steps}], hosts: [h1]}}, status: {{phase: {phase}, message: lost, finishedAt: '2026-11-21T{at}:00Z', hosts: [{hosts}]}}}}")).unwrap()
}

fn differs(step: &str, message: &str) -> String {
    format!("{{step: {step}, reason: ServiceOutdated, message: '{message}'}}")
}

/// Since when it differs, by which steps, when it was looked at, and why it could not be.
fn found(looks: &[PlaybookRun]) -> Option<(Option<String>, String, String, Option<String>)> {
    let seen = shown(&machine(""), &looks.iter().collect::<Vec<_>>())?;
    let clock = |at: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time| at.0.strftime("%H:%M").to_string();
    let steps = seen.steps().iter().map(crds::Step::name).collect::<Vec<_>>().join(" ");
    Some((seen.differs_since.as_ref().map(clock), steps, clock(&seen.checked_at), seen.failure))
}

#[test]
fn what_differs_is_remembered_since_it_was_first_found_and_forgotten_when_it_is_as_wanted_again() {
    let host = |differences: &str| format!("{{name: h1, differences: [{differences}]}}");
    let (both, prepare) =
        (host(&format!("{}, {}", differs("prepare", "x"), differs("node", "y"))), host(&differs("prepare", "x")));
    let well = host("");
    let lost = look("12:00", "prepare, node", "Unknown", "");
    let canceled = look("13:00", "prepare, node", "Canceled", "");
    let mut looks = vec![look("09:00", "prepare, node", "Succeeded", &both)];
    let mut check = |next: Option<PlaybookRun>, since: Option<&str>, steps: &str, at: &str, failure: Option<&str>| {
        looks.extend(next);
        let expected = (since.map(str::to_owned), steps.to_owned(), at.to_owned(), failure.map(str::to_owned));
        assert_eq!(found(&looks), Some(expected));
    };
    check(None, Some("09:00"), "prepare node", "09:00", None);
    check(Some(look("10:00", "prepare, node", "Succeeded", &prepare)), Some("09:00"), "prepare", "10:00", None);
    check(Some(lost), Some("09:00"), "prepare", "12:00", Some("lost"));
    check(Some(canceled), Some("09:00"), "prepare", "12:00", Some("lost"));
    // One of another step alone says nothing of this one.
    check(Some(look("14:00", "node", "Succeeded", &well)), Some("09:00"), "prepare", "14:00", None);
    check(Some(look("15:00", "prepare, node", "Succeeded", &well)), None, "", "15:00", None);
}

#[test]
fn what_was_found_before_the_machine_was_part_of_its_cluster_is_another_machines() {
    let of_another =
        look("07:00", "prepare", "Succeeded", &format!("{{name: h1, differences: [{}]}}", differs("prepare", "x")));
    assert_eq!(found(&[of_another]), None);
    assert_eq!(found(&[]), None);
}

#[test]
fn a_machine_says_what_differs_and_what_to_type() {
    let seen = |differences: &str, failure: &str| {
        let machine = machine(&format!(
            ", drift: {{checkedAt: '2026-11-21T09:00:00Z', differsSince: '2026-11-21T09:00:00Z', differences: [{differences}]{failure}}}"
        ));
        let drift = machine.status.clone().unwrap().drift;
        (machine, drift)
    };
    let said = |policy: &str, differences: &str, failure: &str| {
        let (machine, drift) = seen(differences, failure);
        let said = statement(Some(&deployment(policy)), &machine, drift.as_ref(), &[])?;
        Some((said.status, Reason::from_name(&said.reason).unwrap(), said.message))
    };
    let prepare = differs("prepare", "differing: vm.overcommit_memory");
    let (status, reason, message) = said("", &prepare, "").unwrap();
    assert_eq!((status, reason), (Some(true), Reason::Drifted));
    let expected = "prepare: differing: vm.overcommit_memory; to have it changed back: echo '{\"apiVersion\":\"clusterwright.dev/v1alpha1\",";
    assert!(message.starts_with(expected), "{message}");
    assert!(message.ends_with(r#""steps":["prepare"],"hosts":["h1"]}}' | kubectl -n fleet create -f -"#), "{message}");
    // However much a machine says, the command stays whole.
    let (_, _, message) = said("", &differs("prepare", &"x".repeat(512)), "").unwrap();
    assert!(message.ends_with("create -f -"), "{message}");
    let check =
        |policy: &str, differences: &str, failure: &str, status: Option<bool>, reason: Reason, message: &str| {
            assert_eq!(said(policy, differences, failure), Some((status, reason, message.to_owned())));
        };
    let repaired = "prepare: differing: vm.overcommit_memory; these steps are played again";
    check("repair: Automatic", &prepare, "", Some(true), Reason::RepairingDrift, repaired);
    let well = "it is as it is wanted, for all that is compared";
    check("", "", "", Some(false), Reason::AsWanted, well);
    let silent = "it could not be compared: Unreachable: no route";
    check("", "", ", failure: 'Unreachable: no route'", None, Reason::ComparisonFailed, silent);
    let unknown = "{step: network, unknown: true, reason: NodeNotReady, message: ''}";
    check("", unknown, "", None, Reason::ComparisonFailed, "not all could be compared: network: NodeNotReady");
    assert_eq!(said("checkEverySeconds: 0", &prepare, ""), None);
    let never = statement(Some(&deployment("")), &machine(""), None, &[]).unwrap();
    assert_eq!((never.status, never.reason.as_str()), (None, "NotCompared"));
}
