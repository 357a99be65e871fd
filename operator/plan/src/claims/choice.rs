//! The choice: which free Host a Machine takes. Machines choose in turn, so that two of them seldom want the same one.

use std::collections::{BTreeMap, BTreeSet};

use crds::ObjectExt;
use crds::step::Role;
use crds::{Host, Machine};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::host_request::HostRequest;
use super::pool::Pool;
use super::{is_looking, name_of, set_of};

/// The Host that a Machine may take now: all Machines of the namespace that look for one choose in turn, control planes
/// first, then in the order of their age. `None` when none is left for it.
pub fn choose<'a>(machine: &Machine, machines: &[&Machine], hosts: &[&'a Host]) -> Option<&'a Host> {
    let held = held_by_machines(hosts);
    let mut free = Pool::of(hosts).free();
    // A Host that a Machine names is that Machine's before it is claimed.
    let named: BTreeSet<&str> = machines
        .iter()
        .filter(|other| other.metadata.uid != machine.metadata.uid && !held.contains_key(uid_of(other)))
        .filter_map(|other| other.spec.host_ref.as_ref().map(|host| host.name.as_str()))
        .collect();
    free.retain(|host| !named.contains(name_of(host)));
    let mut looking: Vec<&Machine> = machines
        .iter()
        .copied()
        .filter(|other| uid_of(other) != uid_of(machine))
        .filter(|other| is_looking(other) && !held.contains_key(uid_of(other)))
        .filter(|other| queue_position(other) < queue_position(machine))
        .collect();
    looking.sort_by_key(|machine| queue_position(machine));
    let mut taken: Vec<(&Machine, &Host)> = Vec::new();
    for other in looking {
        if let Some(host) = best(other, machines, hosts, &held, &taken, &free) {
            free.retain(|candidate| name_of(candidate) != name_of(host));
            taken.push((other, host));
        }
    }
    best(machine, machines, hosts, &held, &taken, &free)
}

type QueuePosition<'a> = (Role, bool, Option<&'a Time>, &'a str, &'a str);

fn queue_position(machine: &Machine) -> QueuePosition<'_> {
    (
        machine.spec.role,
        machine.spec.hosts.is_none(),
        machine.created_at(),
        machine.name(),
        uid_of(machine),
    )
}

fn uid_of(machine: &Machine) -> &str {
    machine.uid()
}

/// Hosts by the UID of the Machine that holds them.
fn held_by_machines<'a>(hosts: &[&'a Host]) -> BTreeMap<&'a str, &'a Host> {
    let claim = |host: &'a Host| {
        host.spec
            .claim_ref
            .as_ref()
            .map(|claim| (claim.uid.as_str(), host))
    };
    hosts.iter().copied().filter_map(claim).collect()
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
    let host_request = HostRequest::of(machine);
    let places: Vec<&Host> = if host_request.spread_by.is_empty() {
        Vec::new()
    } else {
        places_of_siblings(machine, machines, hosts, held, taken)
    };
    let rank = |host: &Host| {
        let crowd: Vec<usize> = host_request
            .spread_by
            .iter()
            .map(|key| {
                places
                    .iter()
                    .filter(|place| value(place, key) == value(host, key))
                    .count()
            })
            .collect();
        let name = name_of(host);
        let preference = host_request
            .hosts
            .and_then(|hosts| hosts.iter().position(|wished| wished == name));
        (crowd, preference.unwrap_or(usize::MAX), name.to_owned())
    };
    free.iter()
        .copied()
        .filter(|host| host_request.matches(host))
        .min_by_key(|host| rank(host))
}

fn places_of_siblings<'a>(
    machine: &Machine,
    machines: &[&Machine],
    hosts: &[&'a Host],
    held: &BTreeMap<&str, &'a Host>,
    taken: &[(&Machine, &'a Host)],
) -> Vec<&'a Host> {
    let of_set = |other: &Machine| {
        other.spec.cluster_name == machine.spec.cluster_name && set_of(other) == set_of(machine)
    };
    let settled = machines.iter().filter(|other| of_set(other)).filter_map(|other| {
        let named = other.spec.host_ref.as_ref();
        let named = named.and_then(|named| hosts.iter().find(|host| name_of(host) == named.name));
        held.get(uid_of(other)).copied().or(named.copied())
    });
    let promised = taken
        .iter()
        .filter(|(other, _)| of_set(other))
        .map(|(_, host)| *host);
    settled.chain(promised).collect()
}

fn value<'a>(host: &'a Host, key: &str) -> Option<&'a str> {
    host.metadata.labels.as_ref()?.get(key).map(String::as_str)
}
