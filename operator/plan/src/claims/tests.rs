use crds::{Host, Machine};

use super::{Wish, choose, offer, why_not};

fn host(name: &str, more: &str, status: &str) -> Host {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: {name}, labels: {{rack: {}, size: large}}}}, spec: {{address: 10.0.0.1, ssh: {{credentialsRef: {{name: key}}}} {more}}}, status: {status}}}",
        &name[..2]
    );
    serde_yaml::from_str(&yaml).unwrap()
}

const READY: &str = "{cleanedEpoch: 0, conditions: [{type: Ready, status: 'True', reason: Available, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}";

fn free(name: &str) -> Host {
    host(name, "", READY)
}

fn held(name: &str, uid: &str) -> Host {
    host(
        name,
        &format!(", claimRef: {{kind: Machine, name: m, uid: {uid}}}, claimEpoch: 1"),
        READY,
    )
}

fn machine(name: &str, role: &str, more: &str) -> Machine {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: {name}, uid: {name}, creationTimestamp: '2026-01-01T00:00:00Z', labels: {{clusterwright.dev/machine-set: a-w}}}}, spec: {{clusterName: a, role: {role}, kubernetesVersion: 1.35.4 {more}}}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

fn chosen<'a>(machine: &Machine, machines: &[&Machine], hosts: &'a [Host]) -> Option<&'a str> {
    let hosts: Vec<&Host> = hosts.iter().collect();
    choose(machine, machines, &hosts).and_then(|host| host.metadata.name.as_deref())
}

#[test]
fn only_a_clean_ready_host_of_nobody_is_free() {
    let check = |host: Host, expected: Option<&str>| assert_eq!(why_not(&host).as_deref(), expected);
    check(free("r1a"), None);
    check(held("r1a", "u"), Some("held by Machine m"));
    check(host("r1a", ", unschedulable: true", READY), Some("unschedulable"));
    check(host("r1a", "", "{}"), Some("not probed yet"));
    check(
        host("r1a", ", claimEpoch: 1", READY),
        Some("not proved clean since its last claim"),
    );
    let unreachable = READY.replace("'True', reason: Available", "'False', reason: Unreachable");
    check(host("r1a", "", &unreachable), Some("not Ready: Unreachable"));
}

#[test]
fn machines_choose_in_turn_and_no_two_want_the_same_host() {
    let hosts = [free("r1a"), free("r1b"), free("r1c")];
    let machines = [
        machine("w1", "worker", ""),
        machine("w0", "worker", ""),
        machine("c0", "control-plane", ""),
    ];
    let all: Vec<&Machine> = machines.iter().collect();
    let choices: Vec<_> = machines
        .iter()
        .map(|machine| chosen(machine, &all, &hosts))
        .collect();
    assert_eq!(
        choices,
        [Some("r1c"), Some("r1b"), Some("r1a")],
        "control planes first, then by name"
    );
    let late = machine("w2", "worker", "");
    let all: Vec<&Machine> = machines.iter().chain([&late]).collect();
    assert_eq!(chosen(&late, &all, &hosts), None);
}

#[test]
fn machines_are_spread_over_racks() {
    let hosts = [held("r1a", "w0"), free("r1b"), free("r2a"), free("r2b")];
    let spread = ", spreadBy: [rack]";
    let machines = [
        machine("w0", "worker", ", hostRef: {name: r1a}"),
        machine("w1", "worker", spread),
        machine("w2", "worker", spread),
    ];
    let all: Vec<&Machine> = machines.iter().collect();
    assert_eq!(chosen(&machines[1], &all, &hosts), Some("r2a"));
    assert_eq!(chosen(&machines[2], &all, &hosts), Some("r1b"));
}

#[test]
fn names_are_taken_in_their_order_and_labels_are_asked_for() {
    let hosts = [free("r1a"), free("r1b"), free("r2a")];
    let named = machine("w0", "worker", ", hosts: [r2a, r1b]");
    assert_eq!(chosen(&named, &[&named], &hosts), Some("r2a"));
    let selecting = machine(
        "w0",
        "worker",
        ", hostSelector: {matchLabels: {rack: r2, size: large}}",
    );
    assert_eq!(chosen(&selecting, &[&selecting], &hosts), Some("r2a"));
    let wrong = machine("w0", "worker", ", hostSelector: {matchLabels: {rack: r9}}");
    assert_eq!(chosen(&wrong, &[&wrong], &hosts), None);
}

#[test]
fn a_host_that_a_machine_names_is_left_to_it() {
    let hosts = [free("r1a"), free("r1b")];
    let naming = machine("z", "worker", ", hostRef: {name: r1a}");
    let looking = machine("w0", "worker", "");
    assert_eq!(chosen(&looking, &[&looking, &naming], &hosts), Some("r1b"));
}

#[test]
fn what_does_not_fit_is_told_by_reason() {
    let unfit = |name: &str| host(name, ", unschedulable: true", READY);
    let hosts = [
        free("r1a"),
        unfit("r1b"),
        unfit("r1c"),
        unfit("r1d"),
        host("r1e", "", "{}"),
        held("r1f", "u"),
    ];
    let hosts: Vec<&Host> = hosts.iter().collect();
    let machine = machine("w0", "worker", "");
    let offer = offer(&Wish::of(&machine), &hosts);
    assert_eq!(offer.free, 1);
    assert_eq!(
        offer.why_unfit().unwrap(),
        "4 match and are not to be taken: not probed yet (r1e), unschedulable (r1b, r1c and 1 more)"
    );
}
