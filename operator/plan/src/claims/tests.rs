mod reference;

use crds::{Host, Machine, ObjectExt};

use super::{HostRequest, Share, Shares, offer, why_not};

fn host(name: &str, more: &str, status: &str) -> Host {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: {name}, labels: {{rack: {}, size: large}}}}, spec: {{address: {name}.example, ssh: {{credentialsRef: {{name: key}}}} {more}}}, status: {status}}}",
        &name[..2]
    );
    serde_yaml::from_str(&yaml).unwrap()
}

const READY: &str = "{cleanedEpoch: 0, conditions: [{type: Ready, status: 'True', reason: Available, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}";

fn free(name: &str) -> Host {
    host(name, "", READY)
}

fn held(name: &str, uid: &str) -> Host {
    host(name, &format!(", claimRef: {{kind: Machine, name: m, uid: {uid}}}, claimEpoch: 1"), READY)
}

fn machine(name: &str, role: &str, more: &str) -> Machine {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: {name}, uid: {name}, creationTimestamp: '2026-01-01T00:00:00Z', labels: {{clusterwright.dev/machine-set: a-w}}}}, spec: {{clusterName: a, role: {role}, kubernetesVersion: 1.35.4 {more}}}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

fn chosen<'a>(machine: &Machine, machines: &[&Machine], hosts: &'a [Host]) -> Option<&'a str> {
    let hosts: Vec<&Host> = hosts.iter().collect();
    let shares = Shares::new(machines, &hosts);
    match shares.share(machine) {
        Some(Share::Host(name)) => hosts.iter().map(|host| host.name()).find(|host| *host == name),
        Some(Share::Nothing(_)) | None => None,
    }
}

#[test]
fn only_a_clean_ready_host_of_nobody_is_free() {
    let check = |host: Host, expected: Option<&str>| assert_eq!(why_not(&host).as_deref(), expected);
    check(free("r1a"), None);
    check(held("r1a", "u"), Some("held by Machine m"));
    check(host("r1a", ", unschedulable: true", READY), Some("unschedulable"));
    check(host("r1a", "", "{}"), Some("not probed yet"));
    check(host("r1a", ", claimEpoch: 1", READY), Some("not proved clean since its last claim"));
    check(
        host("r1a", ", quarantine: {reason: JoinFailed, message: x, machine: m, since: '2026-01-01T00:00:00Z'}", READY),
        Some("quarantined: JoinFailed"),
    );
    let mut changed = host("r1a", "", &READY.replace("message: ''", "message: '', observedGeneration: 1"));
    changed.metadata.generation = Some(2);
    check(changed, Some("not probed yet"));
    let unreachable = READY.replace("'True', reason: Available", "'False', reason: Unreachable");
    check(host("r1a", "", &unreachable), Some("not Ready: Unreachable"));
}

#[test]
fn machines_choose_in_turn_and_no_two_want_the_same_host() {
    let hosts = [free("r1a"), free("r1b"), free("r1c")];
    let machines = [machine("w1", "worker", ""), machine("w0", "worker", ""), machine("c0", "control-plane", "")];
    let all: Vec<&Machine> = machines.iter().collect();
    let choices: Vec<_> = machines.iter().map(|machine| chosen(machine, &all, &hosts)).collect();
    assert_eq!(choices, [Some("r1c"), Some("r1b"), Some("r1a")], "control planes first, then by name");
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
    let selecting = machine("w0", "worker", ", hostSelector: {matchLabels: {rack: r2, size: large}}");
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
    let hosts = [free("r1a"), unfit("r1b"), unfit("r1c"), unfit("r1d"), host("r1e", "", "{}"), held("r1f", "u")];
    let hosts: Vec<&Host> = hosts.iter().collect();
    let machine = machine("w0", "worker", "");
    let offer = offer(&HostRequest::from_machine(&machine), &hosts);
    assert_eq!(offer.free, 1);
    assert_eq!(
        offer.why_unfit().unwrap(),
        "4 match and are not to be taken: not probed yet (r1e), unschedulable (r1b, r1c and 1 more)"
    );
}

#[test]
fn a_host_must_be_as_large_as_is_asked_for() {
    let sized = |name: &str, cpus: i32, memory: i64| {
        host(
            name,
            "",
            &READY.replace("{cleanedEpoch", &format!("{{facts: {{cpus: {cpus}, memoryMiB: {memory}}}, cleanedEpoch")),
        )
    };
    let hosts = [sized("r1a", 4, 16000), sized("r1b", 8, 8000), sized("r1c", 8, 16000), free("r1d")];
    let asking = |capacity: &str| machine("w0", "worker", &format!(", hostSelector: {{{capacity}}}"));
    let check = |capacity: &str, expected: Option<&str>| {
        let machine = asking(capacity);
        assert_eq!(chosen(&machine, &[&machine], &hosts), expected, "{capacity}");
    };
    check("minCPUs: 4", Some("r1a"));
    check("minCPUs: 8", Some("r1b"));
    check("minCPUs: 8, minMemoryMiB: 16000", Some("r1c"));
    check("minCPUs: 9", None);
    check("minMemoryMiB: 16001", None);
    let hosts: Vec<&Host> = hosts.iter().collect();
    let machine = asking("minCPUs: 8, minMemoryMiB: 16000");
    let offer = offer(&HostRequest::from_machine(&machine), &hosts);
    assert_eq!(offer.free, 1);
    assert_eq!(
        offer.why_unfit().unwrap(),
        "3 match and are not to be taken: fewer than 8 CPUs (r1a), its size is not known yet (r1d), less than 16000 MiB of memory (r1b)"
    );
}

/// The row "two clusters claim one Machine/IP/VIP".
#[test]
fn one_machine_under_two_names_is_claimed_once_row_43() {
    let mut twin = free("r1b");
    twin.spec.address = "r1a.example".into();
    let hosts = [held("r1a", "other"), twin];
    let looking = machine("w0", "worker", "");
    assert_eq!(chosen(&looking, &[&looking], &hosts), None);
    let hosts: Vec<&Host> = hosts.iter().collect();
    assert_eq!(
        offer(&HostRequest::from_machine(&looking), &hosts).why_unfit().unwrap(),
        "1 matches and is not to be taken: not Ready: SameAddress (r1b)"
    );
}

mod arbitrary {
    use std::collections::BTreeMap;

    use super::{Host, Machine, chosen, free, held, host, machine};
    use crds::references::ClaimRef;
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, prop_oneof, proptest};
    use proptest::strategy::Just;

    const SICK: &str = "{conditions: [{type: Ready, status: 'False', reason: Unreachable, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}";

    fn a_host() -> impl Strategy<Value = fn(&str) -> Host> {
        prop_oneof![
            5 => Just(free as fn(&str) -> Host),
            1 => Just((|name| held(name, "someone")) as fn(&str) -> Host),
            1 => Just((|name| host(name, "", SICK)) as fn(&str) -> Host),
            1 => Just((|name| host(name, ", unschedulable: true", super::READY)) as fn(&str) -> Host),
        ]
    }

    fn a_wish() -> impl Strategy<Value = &'static str> {
        prop_oneof![
            Just(""),
            Just(", spreadBy: [rack]"),
            Just(", hosts: [r0c, r1a]"),
            Just(", hostSelector: {matchLabels: {rack: r1}}"),
            Just(", hostRef: {name: r0b}"),
        ]
    }

    proptest! {
        /// Machines of two clusters look at the pool, each at a moment of its own, and claim what they chose if nobody
        /// has written that Host since. One claim a Host, one Host a Machine, none that is not free; and whoever is
        /// left without has none that is free and matches.
        #[test]
        fn whoever_races_each_host_has_one_owner_and_each_machine_one_host(
            makers in vec(a_host(), 0..8),
            wishes in vec((a_wish(), any::<bool>()), 0..8),
            turns in vec((0usize..8, any::<bool>()), 0..40),
        ) {
            let name = |number: usize| format!("r{}{}", number % 3, ["a", "b", "c"][number / 3]);
            let mut hosts: Vec<Host> = makers.iter().enumerate().map(|(number, make)| make(&name(number))).collect();
            let mut machines: Vec<Machine> = wishes.iter().enumerate().map(|(number, (host_request, second))| {
                let mut machine = machine(&format!("w{number}"), "worker", host_request);
                if *second {
                    machine.spec.cluster_name = "b".into();
                }
                machine
            }).collect();
            let before = hosts.clone();
            let mut stale = hosts.clone();
            let rounds = (0..wishes.len()).flat_map(|number| [(number, true), (number, true)]);
            let rounds: Vec<(usize, bool)> = turns.into_iter().chain(rounds.clone()).chain(rounds).collect();
            for (number, looks_now) in rounds {
                let Some(machine) = machines.get(number).cloned() else { continue };
                if looks_now {
                    stale = hosts.clone();
                }
                let all: Vec<&Machine> = machines.iter().collect();
                let uid = machine.metadata.uid.clone().unwrap();
                let mine = |host: &&Host| host.spec.claim_ref.as_ref().is_some_and(|claim| claim.uid == uid);
                if hosts.iter().any(|host| mine(&host)) || !super::super::is_looking(&machine) {
                    continue;
                }
                let Some(choice) = chosen(&machine, &all, &stale) else { continue };
                let choice = stale.iter().find(|host| host.metadata.name.as_deref() == Some(choice)).unwrap().clone();
                assert_eq!(super::why_not(&choice), None);
                let live = hosts.iter_mut().find(|host| host.metadata.name == choice.metadata.name).unwrap();
                // The API server refuses a write of what has been written since.
                if live.spec.claim_ref != choice.spec.claim_ref {
                    continue;
                }
                live.spec.claim_ref = Some(ClaimRef { kind: "Machine".into(), name: uid.clone(), uid });
                live.spec.claim_epoch += 1;
                machines[number].spec.host_ref = Some(crds::references::LocalRef::new(choice.metadata.name.unwrap()));
            }
            let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for (host, was) in hosts.iter().zip(&before) {
                let Some(claim) = &host.spec.claim_ref else { continue };
                if was.spec.claim_ref.is_none() {
                    assert_eq!(super::why_not(was), None, "only a free Host is claimed");
                    owners.entry(claim.uid.clone()).or_default().push(host.metadata.name.clone().unwrap());
                } else {
                    assert_eq!(Some(claim), was.spec.claim_ref.as_ref(), "nobody's claim is taken over");
                }
            }
            assert!(owners.values().all(|hosts| hosts.len() == 1), "{owners:?}");
            let all: Vec<&Machine> = machines.iter().collect();
            for machine in all.iter().filter(|machine| machine.spec.host_ref.is_none()) {
                assert_eq!(chosen(machine, &all, &hosts), None, "{machine:?}");
            }
        }
    }
}
