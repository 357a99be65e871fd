//! The pool of a namespace shared out: which Host each Machine that looks for one may take. It is made once for all who
//! look at the same pool. Machines choose in turn, so that two of them seldom want the same Host.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crds::ObjectExt;
use crds::step::Role;
use crds::{Host, Machine};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::allocation::{Allocation, RequestKey};
use super::host_request::HostRequest;
use super::is_looking;
use super::pool::{Offer, Pool};

/// What each Machine of a namespace that looks for a Host may take.
#[derive(Debug, Default)]
pub struct Shares {
    /// By the Machine's UID: the Host's name, or the place of what it is offered instead.
    by_machine: HashMap<String, Result<String, usize>>,
    /// What the pool offers to those that are left without.
    offers: Vec<Offer>,
}

/// What one Machine may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Share<'a> {
    /// The Host of this name.
    Host(&'a str),
    /// Nothing is left for it; what the pool offers to what it requests.
    Nothing(&'a Offer),
}

impl Shares {
    /// All Machines of a namespace that look for a Host choose in turn, control planes first, then in the order of
    /// their age.
    pub fn new(machines: &[&Machine], hosts: &[&Host]) -> Self {
        let pool = Pool::new(hosts);
        let Claimants { held, free, queue } = Claimants::find(machines, hosts, &pool);
        let mut allocation = Allocation::new(free, placed(machines, hosts, &held));
        let mut shares = Self::default();
        // Those that request the same are offered the same: it is looked for once.
        let mut requests: BTreeMap<RequestKey<'_>, usize> = BTreeMap::new();
        for machine in queue {
            let share = allocation.take(machine).map(|host| host.name().to_owned());
            let share = share.ok_or_else(|| {
                let request = HostRequest::from_machine(machine);
                *requests.entry(RequestKey::new(request)).or_insert_with(|| {
                    shares.offers.push(pool.offer(&request));
                    shares.offers.len() - 1
                })
            });
            shares.by_machine.insert(machine.uid().to_owned(), share);
        }
        shares
    }

    /// What a Machine may take; `None` where it did not look for a Host.
    pub fn share(&self, machine: &Machine) -> Option<Share<'_>> {
        match self.by_machine.get(machine.uid())? {
            Ok(host) => Some(Share::Host(host)),
            Err(offer) => self.offers.get(*offer).map(Share::Nothing),
        }
    }
}

/// Who chooses, and among what.
pub(super) struct Claimants<'m, 'h> {
    /// Hosts by the UID of the Machine that holds them.
    pub held: BTreeMap<&'h str, &'h Host>,
    /// Hosts that nobody holds, and that no Machine names.
    pub free: Vec<&'h Host>,
    /// The Machines that look for a Host, in the order in which they choose.
    pub queue: Vec<&'m Machine>,
}

impl<'m, 'h> Claimants<'m, 'h> {
    pub fn find(machines: &[&'m Machine], hosts: &[&'h Host], pool: &Pool<'_, 'h>) -> Self {
        let claim = |host: &'h Host| host.spec.claim_ref.as_ref().map(|claim| (claim.uid.as_str(), host));
        let held: BTreeMap<&str, &Host> = hosts.iter().copied().filter_map(claim).collect();
        let mut free = pool.free();
        // A Host that a Machine names is that Machine's before it is claimed.
        let without = || machines.iter().copied().filter(|machine| !held.contains_key(machine.uid()));
        let named = without().filter_map(|machine| machine.spec.host_ref.as_ref().map(|host| host.name.as_str()));
        let named: BTreeSet<&str> = named.collect();
        free.retain(|host| !named.contains(host.name()));
        let mut queue: Vec<&Machine> = without().filter(|machine| is_looking(machine)).collect();
        queue.sort_by_key(|machine| queue_position(machine));
        Self { held, free, queue }
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
