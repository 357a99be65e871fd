//! The choice: which free Host a Machine takes. Machines choose in turn, so that two of them seldom want the same one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crds::ObjectExt;
use crds::step::Role;
use crds::{Host, Machine};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::allocation::Allocation;
use super::is_looking;
use super::pool::Pool;

/// The Host that a Machine may take now: all Machines of the namespace that look for one choose in turn, control planes
/// first, then in the order of their age. `None` when none is left for it.
pub fn choose<'m, 'h>(machine: &'m Machine, machines: &[&'m Machine], hosts: &[&'h Host]) -> Option<&'h Host> {
    let Contenders { held, free, earlier } = Contenders::find(machine, machines, hosts);
    let mut allocation = Allocation::new(free, placed(machines, hosts, &held));
    for other in earlier {
        allocation.take(other);
    }
    allocation.take(machine)
}

/// What a Machine chooses among, and who chooses before it.
pub(super) struct Contenders<'m, 'h> {
    /// Hosts by the UID of the Machine that holds them.
    pub held: BTreeMap<&'h str, &'h Host>,
    /// Hosts that nobody holds, and that no other Machine names.
    pub free: Vec<&'h Host>,
    /// The others that look for a Host, in the order in which they choose.
    pub earlier: Vec<&'m Machine>,
}

impl<'m, 'h> Contenders<'m, 'h> {
    pub fn find(machine: &Machine, machines: &[&'m Machine], hosts: &[&'h Host]) -> Self {
        let claim = |host: &'h Host| host.spec.claim_ref.as_ref().map(|claim| (claim.uid.as_str(), host));
        let held: BTreeMap<&str, &Host> = hosts.iter().copied().filter_map(claim).collect();
        let mut free = Pool::new(hosts).free();
        // A Host that a Machine names is that Machine's before it is claimed.
        let named: BTreeSet<&str> = machines
            .iter()
            .filter(|other| other.metadata.uid != machine.metadata.uid && !held.contains_key(other.uid()))
            .filter_map(|other| other.spec.host_ref.as_ref().map(|host| host.name.as_str()))
            .collect();
        free.retain(|host| !named.contains(host.name()));
        let mut earlier: Vec<&Machine> = machines
            .iter()
            .copied()
            .filter(|other| other.uid() != machine.uid())
            .filter(|other| is_looking(other) && !held.contains_key(other.uid()))
            .filter(|other| queue_position(other) < queue_position(machine))
            .collect();
        earlier.sort_by_key(|machine| queue_position(machine));
        Self { held, free, earlier }
    }
}

type QueuePosition<'a> = (Role, bool, Option<&'a Time>, &'a str, &'a str);

fn queue_position(machine: &Machine) -> QueuePosition<'_> {
    (machine.spec.role, machine.spec.hosts.is_none(), machine.created_at(), machine.name(), machine.uid())
}

/// Machines that hold a Host or name one, with that Host.
fn placed<'m, 'h>(
    machines: &[&'m Machine],
    hosts: &[&'h Host],
    held: &BTreeMap<&str, &'h Host>,
) -> impl Iterator<Item = (&'m Machine, &'h Host)> {
    let by_name: HashMap<&str, &Host> = hosts.iter().map(|host| (host.name(), *host)).collect();
    machines.iter().copied().filter_map(move |machine| {
        let named = machine.spec.host_ref.as_ref();
        let named = named.and_then(|named| by_name.get(named.name.as_str()));
        let host = held.get(machine.uid()).or(named)?;
        Some((machine, *host))
    })
}
