//! Claims: which Host a Machine takes from the spare pool of its namespace. Deterministic, and the same for everyone who
//! looks at the same pool: Machines choose in turn, so that two of them seldom want the same Host.

mod identities;

use std::collections::{BTreeMap, BTreeSet};

use crds::names::condition;
use crds::placement::HostSelector;
use crds::step::Role;
use crds::{Host, Machine, conditions};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

pub use identities::{Double, Identities, is_one_machine};

/// Which Hosts may be taken.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// Labels that a Host must carry.
    pub selector: Option<&'a HostSelector>,
    /// Names, in the order of preference.
    pub hosts: Option<&'a [String]>,
    /// Keys of labels over whose values machines are spread.
    pub spread_by: &'a [String],
}

impl<'a> Wish<'a> {
    /// What a Machine wishes. One that names its Host wishes that one.
    pub fn of(machine: &'a Machine) -> Self {
        Self {
            selector: machine.spec.host_selector.as_ref(),
            hosts: machine.spec.hosts.as_deref(),
            spread_by: &machine.spec.spread_by,
        }
    }

    /// Whether the Host is one of those wished for, and large enough; says nothing about whether it is free.
    pub fn matches(&self, host: &Host) -> bool {
        self.selects(host) && self.too_small(host).is_none()
    }

    /// Whether the Host has a name and the labels that are wished for.
    fn selects(&self, host: &Host) -> bool {
        let name = name_of(host);
        let named = self
            .hosts
            .is_none_or(|hosts| hosts.iter().any(|wished| wished == name));
        let labels = host.metadata.labels.as_ref();
        let labelled = self.selector.is_none_or(|selector| {
            selector
                .match_labels
                .iter()
                .all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(&value.0))
        });
        named && labelled
    }

    /// What the Host has too little of, as far as its facts are known.
    fn too_small(&self, host: &Host) -> Option<String> {
        let selector = self.selector?;
        let (cpus, memory) = (selector.min_cpus, selector.min_memory_mib);
        if cpus.is_none() && memory.is_none() {
            return None;
        }
        let Some(facts) = host.status.as_ref().and_then(|status| status.facts.as_ref()) else {
            return Some("its size is not known yet".into());
        };
        let cpus = cpus
            .filter(|least| facts.cpus < *least)
            .map(|least| format!("fewer than {least} CPUs"));
        let memory = memory
            .filter(|least| facts.memory_mib < *least)
            .map(|least| format!("less than {least} MiB of memory"));
        let lacks: Vec<String> = cpus.into_iter().chain(memory).collect();
        (!lacks.is_empty()).then(|| lacks.join(" and "))
    }
}

fn name_of(host: &Host) -> &str {
    host.metadata.name.as_deref().unwrap_or_default()
}

/// Why a Host cannot be claimed, as far as it says itself; `None` when it can. The condition `Ready` alone is not
/// believed: it may speak of the time before the last claim, or of another address.
pub fn why_not(host: &Host) -> Option<String> {
    if let Some(claim) = &host.spec.claim_ref {
        return Some(format!("held by Machine {}", claim.name));
    }
    if host.metadata.deletion_timestamp.is_some() {
        return Some("being deleted".into());
    }
    if let Some(quarantine) = &host.spec.quarantine {
        return Some(format!("quarantined: {:?}", quarantine.reason));
    }
    if host.spec.unschedulable {
        return Some("unschedulable".into());
    }
    let Some(status) = &host.status else {
        return Some("not probed yet".into());
    };
    match conditions::find(&status.conditions, condition::READY) {
        Some(ready) if is_of_the_past(ready, host) => return Some("not probed yet".into()),
        Some(ready) if ready.status == "True" => {}
        Some(ready) => return Some(format!("not Ready: {}", ready.reason)),
        None => return Some("not probed yet".into()),
    }
    if status.cleaned_epoch != Some(host.spec.claim_epoch) {
        return Some("not proved clean since its last claim".into());
    }
    None
}

/// Whether a condition was stated of an earlier spec.
fn is_of_the_past(condition: &Condition, host: &Host) -> bool {
    let generations = condition.observed_generation.zip(host.metadata.generation);
    generations.is_some_and(|(observed, now)| observed != now)
}

/// The Hosts of a namespace.
#[derive(Debug)]
pub struct Pool<'p, 'a> {
    hosts: &'p [&'a Host],
    identities: Identities<'a>,
}

impl<'p, 'a> Pool<'p, 'a> {
    /// Of all Hosts of a namespace.
    pub fn of(hosts: &'p [&'a Host]) -> Self {
        let identities = Identities::of(hosts.iter().copied());
        Self { hosts, identities }
    }

    /// Why one of these Hosts cannot be claimed; `None` when it can.
    pub fn why_not(&self, host: &'a Host) -> Option<String> {
        let double = || self.identities.double(host);
        why_not(host).or_else(|| double().map(|double| format!("not Ready: {}", double.reason())))
    }

    /// The Hosts that can be claimed.
    fn free(&self) -> Vec<&'a Host> {
        let hosts = self.hosts.iter().copied();
        hosts.filter(|host| self.why_not(host).is_none()).collect()
    }
}

/// Whether this Machine holds the Host.
pub fn holds(machine: &Machine, host: &Host) -> bool {
    let uid = machine.metadata.uid.as_deref();
    host.spec
        .claim_ref
        .as_ref()
        .is_some_and(|claim| Some(claim.uid.as_str()) == uid)
}

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
        .filter(|other| turn_of(other) < turn_of(machine))
        .collect();
    looking.sort_by_key(|machine| turn_of(machine));
    let mut taken: Vec<(&Machine, &Host)> = Vec::new();
    for other in looking {
        if let Some(host) = best(other, machines, hosts, &held, &taken, &free) {
            free.retain(|candidate| name_of(candidate) != name_of(host));
            taken.push((other, host));
        }
    }
    best(machine, machines, hosts, &held, &taken, &free)
}

/// Whether the Machine looks for a Host.
pub fn is_looking(machine: &Machine) -> bool {
    machine.spec.host_ref.is_none() && machine.metadata.deletion_timestamp.is_none()
}

type Turn<'a> = (
    Role,
    bool,
    Option<&'a k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>,
    &'a str,
    &'a str,
);

fn turn_of(machine: &Machine) -> Turn<'_> {
    (
        machine.spec.role,
        machine.spec.hosts.is_none(),
        machine.metadata.creation_timestamp.as_ref(),
        machine.metadata.name.as_deref().unwrap_or_default(),
        uid_of(machine),
    )
}

fn uid_of(machine: &Machine) -> &str {
    machine.metadata.uid.as_deref().unwrap_or_default()
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

/// The best free Host for a Machine: where fewest of its set are, by each key in turn; then by the order of names given;
/// then by name.
fn best<'a>(
    machine: &Machine,
    machines: &[&Machine],
    hosts: &[&'a Host],
    held: &BTreeMap<&str, &'a Host>,
    taken: &[(&Machine, &Host)],
    free: &[&'a Host],
) -> Option<&'a Host> {
    let wish = Wish::of(machine);
    let places: Vec<&Host> = if wish.spread_by.is_empty() {
        Vec::new()
    } else {
        places_of_siblings(machine, machines, hosts, held, taken)
    };
    let rank = |host: &Host| {
        let crowd: Vec<usize> = wish
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
        let preference = wish
            .hosts
            .and_then(|hosts| hosts.iter().position(|wished| wished == name));
        (crowd, preference.unwrap_or(usize::MAX), name.to_owned())
    };
    free.iter()
        .copied()
        .filter(|host| wish.matches(host))
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

/// Name of the MachineSet that a Machine is of, as its label says.
pub(crate) fn set_of(machine: &Machine) -> Option<&str> {
    let labels = machine.metadata.labels.as_ref()?;
    labels.get(crds::names::label::MACHINE_SET).map(String::as_str)
}

fn value<'a>(host: &'a Host, key: &str) -> Option<&'a str> {
    host.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// What the pool offers to a wish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Hosts that match and can be claimed.
    pub free: usize,
    /// Hosts that match, belong to nobody, and cannot be claimed: name and why.
    pub unfit: Vec<(String, String)>,
}

impl Offer {
    /// `4 match and are not to be taken: not Ready: Unreachable (h1, h2 and 1 more), unschedulable (h4)`.
    pub fn why_unfit(&self) -> Option<String> {
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (host, why) in &self.unfit {
            by_reason.entry(why).or_default().push(host);
        }
        let reasons: Vec<String> = by_reason
            .iter()
            .map(|(why, hosts)| match hosts.as_slice() {
                [first, second, rest @ ..] if !rest.is_empty() => {
                    format!("{why} ({first}, {second} and {} more)", rest.len())
                }
                hosts => format!("{why} ({})", hosts.join(", ")),
            })
            .collect();
        let (count, reasons) = (self.unfit.len(), reasons.join(", "));
        match count {
            0 => None,
            1 => Some(format!("1 matches and is not to be taken: {reasons}")),
            _ => Some(format!("{count} match and are not to be taken: {reasons}")),
        }
    }
}

/// What the Hosts of a namespace offer to a wish.
pub fn offer(wish: &Wish<'_>, hosts: &[&Host]) -> Offer {
    Pool::of(hosts).offer(wish)
}

impl Pool<'_, '_> {
    /// What the pool offers to a wish.
    pub fn offer(&self, wish: &Wish<'_>) -> Offer {
        let mut offer = Offer::default();
        for host in self.hosts.iter().copied().filter(|host| wish.selects(host)) {
            match self.why_not(host).or_else(|| wish.too_small(host)) {
                None => offer.free += 1,
                Some(why) if host.spec.claim_ref.is_none() => {
                    offer.unfit.push((name_of(host).to_owned(), why))
                }
                Some(_) => {}
            }
        }
        offer.unfit.sort();
        offer
    }
}

#[cfg(test)]
mod tests;
