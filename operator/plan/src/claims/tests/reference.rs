//! The allocation chooses what the simple rule chooses.

use std::collections::BTreeMap;

use crds::{Host, Machine, ObjectExt};
use proptest::collection::vec;
use proptest::prelude::{Strategy, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Just;

use crate::claims::host_request::HostRequest;
use crate::claims::shares::Claimants;
use crate::claims::{Pool, Share, Shares, set_of};

/// Hosts of a pool.
const MOST: usize = 24;

fn object<K: serde::de::DeserializeOwned>(kind: &str, metadata: &str, spec: &str, status: &str) -> K {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: {kind}, metadata: {{{metadata}}},
          spec: {{{spec}}}, status: {status}}}"
    );
    serde_yaml::from_str(&yaml).unwrap_or_else(|error| panic!("{error}: {yaml}"))
}

fn one_of(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    (0..words.len()).prop_map(|word| words[word])
}

fn a_host() -> impl Strategy<Value = Host> {
    let labels = (
        one_of(&["", "zone: z1, ", "zone: z2, "]),
        one_of(&["", "rack: r1, ", "rack: r2, ", "rack: r3, "]),
        one_of(&["size: large", "size: small"]),
    );
    let spec = prop_oneof![
        6 => Just(String::new()),
        1 => Just(", unschedulable: true".to_owned()),
        1 => Just(", claimEpoch: 1".to_owned()),
        2 => (0usize..12).prop_map(|machine| format!(", claimRef: {{kind: Machine, name: m, uid: m{machine}}}")),
    ];
    (labels, spec, 1..3).prop_map(|((zone, rack, size), spec, cpus)| {
        object(
            "Host",
            &format!("labels: {{{zone}{rack}{size}}}"),
            &format!("address: nowhere, ssh: {{credentialsRef: {{name: key}}}}{spec}"),
            &format!(
                "{{cleanedEpoch: 0, facts: {{cpus: {cpus}, memoryMiB: 8000}},
                 conditions: [{{type: Ready, status: 'True', reason: Available, message: '',
                                lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}"
            ),
        )
    })
}

/// Their order is not that of their names, and the last is the machine of the first.
fn name_hosts(hosts: &mut [Host]) {
    for (number, host) in hosts.iter_mut().enumerate() {
        host.metadata.name = Some(format!("h{:02}", (number * 7) % MOST));
        host.spec.address = format!("10.0.0.{}", number % (MOST - 2));
    }
}

fn a_machine() -> impl Strategy<Value = Machine> {
    let whose = (
        one_of(&["a", "b"]),
        one_of(&["", ", labels: {clusterwright.dev/machine-set: s1}", ", labels: {clusterwright.dev/machine-set: s2}"]),
        one_of(&["control-plane", "worker", "worker"]),
    );
    let request = (
        one_of(&["", ", spreadBy: [rack]", ", spreadBy: [rack]", ", spreadBy: [zone, rack]", ", spreadBy: [nowhere]"]),
        one_of(&[
            "",
            "",
            ", hosts: [h07, h02, h99, h02, h14, h01]",
            ", hostSelector: {matchLabels: {size: large}}",
            ", hostSelector: {matchLabels: {size: large, zone: z1}}",
            ", hostSelector: {matchLabels: {size: huge}}",
            ", hostSelector: {matchExpressions: [{key: rack, operator: NotIn, values: [r1]}]}",
            ", hostSelector: {matchExpressions: [{key: rack, operator: In, values: [r1]}]}",
            ", hostSelector: {minCPUs: 1}",
            ", hostSelector: {minCPUs: 2}",
        ]),
    );
    let names = prop_oneof![
        4 => Just(String::new()),
        1 => (0usize..12).prop_map(|host| format!(", hostRef: {{name: h{host:02}}}")),
    ];
    let deleting = prop_oneof![9 => Just(""), 1 => Just(", deletionTimestamp: '2026-01-05T00:00:00Z'")];
    (whose, request, names, deleting, 1..4).prop_map(|((cluster, set, role), (spread, hosts), names, deleting, day)| {
        object(
            "Machine",
            &format!("creationTimestamp: '2026-01-0{day}T00:00:00Z'{set}{deleting}"),
            &format!("clusterName: {cluster}, role: {role}, kubernetesVersion: 1.35.4{spread}{hosts}{names}"),
            "{}",
        )
    })
}

proptest! {
    #[test]
    fn every_machine_of_any_pool_chooses_as_by_the_simple_rule(
        mut hosts in vec(a_host(), 0..MOST),
        mut machines in vec(a_machine(), 1..MOST),
    ) {
        name_hosts(&mut hosts);
        for (number, machine) in machines.iter_mut().enumerate() {
            (machine.metadata.name, machine.metadata.uid) = (Some(format!("m{number}")), Some(format!("m{number}")));
        }
        let hosts: Vec<&Host> = hosts.iter().collect();
        let all: Vec<&Machine> = machines.iter().collect();
        let (shares, simple) = (Shares::new(&all, &hosts), simple_shares(&all, &hosts));
        for machine in &all {
            let expected = simple.get(machine.uid()).copied();
            let got = shares.share(machine).map(|share| match share {
                Share::Host(host) => Some(host),
                Share::Nothing(_) => None,
            });
            prop_assert_eq!(got, expected);
        }
    }
}

/// The choices by the rule as it is written: each in turn takes the best Host, by looking at all of them.
fn simple_shares<'a>(machines: &[&'a Machine], hosts: &[&'a Host]) -> BTreeMap<&'a str, Option<&'a str>> {
    let Claimants { held, mut free, queue } = Claimants::find(machines, hosts, &Pool::new(hosts));
    let mut taken: Vec<(&Machine, &Host)> = Vec::new();
    let mut shares = BTreeMap::new();
    for machine in queue {
        let host = best(machine, machines, hosts, &held, &taken, &free);
        if let Some(host) = host {
            free.retain(|candidate| candidate.name() != host.name());
            taken.push((machine, host));
        }
        shares.insert(machine.uid(), host.map(ObjectExt::name));
    }
    shares
}

/// The best free Host for a Machine: where fewest of its set are, by each key in turn; then by the order of names
/// given; then by name.
fn best<'a>(
    machine: &Machine,
    machines: &[&Machine],
    hosts: &[&'a Host],
    held: &BTreeMap<&str, &'a Host>,
    taken: &[(&Machine, &Host)],
    free: &[&'a Host],
) -> Option<&'a Host> {
    let host_request = HostRequest::from_machine(machine);
    let places: Vec<&Host> = if host_request.spread_by.is_empty() {
        Vec::new()
    } else {
        places_of_siblings(machine, machines, hosts, held, taken)
    };
    let rank = |host: &Host| {
        let crowd: Vec<usize> = host_request
            .spread_by
            .iter()
            .map(|key| places.iter().filter(|place| value(place, key) == value(host, key)).count())
            .collect();
        let name = host.name();
        let preference = host_request.hosts.and_then(|hosts| hosts.iter().position(|wished| wished == name));
        (crowd, preference.unwrap_or(usize::MAX), name.to_owned())
    };
    free.iter().copied().filter(|host| host_request.matches(host)).min_by_key(|host| rank(host))
}

fn places_of_siblings<'a>(
    machine: &Machine,
    machines: &[&Machine],
    hosts: &[&'a Host],
    held: &BTreeMap<&str, &'a Host>,
    taken: &[(&Machine, &'a Host)],
) -> Vec<&'a Host> {
    let of_set =
        |other: &Machine| other.spec.cluster_name == machine.spec.cluster_name && set_of(other) == set_of(machine);
    let settled = machines.iter().filter(|other| of_set(other)).filter_map(|other| {
        let named = other.spec.host_ref.as_ref();
        let named = named.and_then(|named| hosts.iter().find(|host| host.name() == named.name));
        held.get(other.uid()).copied().or(named.copied())
    });
    let promised = taken.iter().filter(|(other, _)| of_set(other)).map(|(_, host)| *host);
    settled.chain(promised).collect()
}

fn value<'a>(host: &'a Host, key: &str) -> Option<&'a str> {
    host.metadata.labels.as_ref()?.get(key).map(String::as_str)
}
