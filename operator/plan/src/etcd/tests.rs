use super::{Health, look, member_id};
use crds::{Machine, PlaybookRun};
use jiff::Timestamp;

const NOW: &str = "2026-11-21T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn machine() -> Machine {
    serde_yaml::from_str("{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {name: m1, uid: u1}, spec: {clusterName: a, role: etcd, kubernetesVersion: 1.35.4, hostRef: {name: e1}}, status: {provisionedAt: '2026-11-21T08:00:00Z'}}").unwrap()
}

/// A probe that was made, and ended, at this time, with these results.
fn probe(at: &str, hosts: &str) -> PlaybookRun {
    serde_yaml::from_str(&format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: 'p{at}', creationTimestamp: '2026-11-21T{at}:00Z'}}, spec: {{clusterName: a, intent: Probe, steps: [probe-etcd], hosts: [e1, e2, e3]}}, status: {{phase: Succeeded, finishedAt: '2026-11-21T{at}:00Z', hosts: [{hosts}]}}}}")).unwrap()
}

fn check(probes: &[(&str, &str)], expected: &str) {
    let probes: Vec<PlaybookRun> = probes.iter().map(|(at, hosts)| probe(at, hosts)).collect();
    let found = match look(&machine(), &probes.iter().collect::<Vec<_>>(), now()).health {
        Health::Well => "well".to_owned(),
        Health::Sick(what) => what,
        Health::Unknown => "unknown".to_owned(),
    };
    assert_eq!(found, expected, "{probes:?}");
}

const SILENT: &str = "{name: e1, unreachable: true}";
const OTHERS_WELL: &str = "{name: e2, etcd: {well: true, wellPeers: [e3], sickPeers: [e1]}}, {name: e3, etcd: {well: true, wellPeers: [e2], sickPeers: [e1]}}";

#[test]
fn a_member_is_judged_by_its_own_word_and_by_that_of_well_members_where_it_has_none() {
    check(&[], "unknown");
    check(&[("11:55", "{name: e1, etcd: {well: true}}")], "well");
    check(
        &[("11:55", &format!("{{name: e1, etcd: {{well: false, message: connection refused}}}}, {OTHERS_WELL}"))],
        "its member of etcd is not well, and that of e2 is: connection refused",
    );
    check(
        &[("11:55", &format!("{SILENT}, {OTHERS_WELL}"))],
        "its member of etcd does not answer to that of e2, and SSH does not reach it",
    );
}

#[test]
fn a_machine_that_ssh_does_not_reach_is_well_while_another_member_finds_its_own_well() {
    check(&[("11:55", &format!("{SILENT}, {{name: e2, etcd: {{well: true, wellPeers: [e1]}}}}"))], "well");
}

#[test]
fn an_etcd_none_of_whose_members_is_well_is_no_trouble_of_one() {
    let leaderless = "{name: e1, etcd: {well: false}}, {name: e2, etcd: {well: false, sickPeers: [e1, e3]}}";
    check(&[("11:55", leaderless)], "unknown");
    check(&[("11:55", SILENT)], "unknown");
    check(&[("11:55", "{name: e2, etcd: {well: false, sickPeers: [e1]}}")], "unknown");
}

#[test]
fn the_last_word_counts_for_half_an_hour_and_only_in_the_machines_own_time() {
    let sick = format!("{SILENT}, {OTHERS_WELL}");
    let well = "{name: e1, etcd: {well: true}}";
    check(&[("11:40", &sick), ("11:50", well)], "well");
    check(&[("11:50", well), ("11:55", SILENT)], "well");
    check(&[("11:30", well)], "unknown");
    check(&[("07:59", well)], "unknown");
}

#[test]
fn a_member_has_the_id_that_its_machine_told_last() {
    let of = |runs: &[PlaybookRun]| member_id(&machine(), "e1", &runs.iter().collect::<Vec<_>>()).map(|(_, id)| id);
    let told = |at: &str, id: &str| probe(at, &format!("{{name: e1, etcd: {{memberID: {id}}}}}"));
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[told("11:00", "a1"), told("10:00", "b2")]).as_deref(), Some("a1"));
    assert_eq!(of(&[told("07:00", "a1")]), None, "that was another machine's");
    let mut joined = told("07:00", "c3");
    joined.metadata.annotations =
        Some([(crds::names::annotation::MACHINES.to_owned(), r#"{"e1": {"uid": "u1"}}"#.to_owned())].into());
    assert_eq!(of(std::slice::from_ref(&joined)).as_deref(), Some("c3"));
    let other = joined.metadata.annotations.as_mut().unwrap();
    other.insert(crds::names::annotation::MACHINES.to_owned(), r#"{"e1": {"uid": "u0"}}"#.to_owned());
    assert_eq!(of(&[joined]), None, "it was told of another Machine");
}
