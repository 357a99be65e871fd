//! The allocation: the free Hosts of a pool, given to Machines one after the other. Hosts are matched once for all
//! Machines that request the same, and counted once for all Machines of a set.

mod candidates;
mod queue;

use std::collections::{BTreeMap, HashMap};

use crds::{FormerRef, Host, Machine};

use super::host_request::HostRequest;
use super::set_of;
pub(super) use candidates::RequestKey;
use candidates::{Candidates, FreeHosts, label};
use queue::Queue;

/// Which Hosts are left, and where the Machines of each set are.
pub(super) struct Allocation<'m, 'h> {
    free: FreeHosts<'m, 'h>,
    sets: BTreeMap<SetKey<'m>, SetMembers<'m, 'h>>,
    requests: BTreeMap<RequestKey<'m>, Request<'m, 'h>>,
}

/// Name of the cluster, and of the set.
type SetKey<'m> = (FormerRef<'m>, Option<&'m str>);

/// The Hosts that match what was requested, and in which order each set takes them.
struct Request<'m, 'h> {
    candidates: Candidates<'h>,
    queues: BTreeMap<SetKey<'m>, Queue>,
}

impl<'m, 'h> Allocation<'m, 'h> {
    /// Of the Hosts that can be taken; `placed` are the Machines that hold or name one already.
    pub fn new(free: Vec<&'h Host>, placed: impl IntoIterator<Item = (&'m Machine, &'h Host)>) -> Self {
        let mut sets: BTreeMap<SetKey<'m>, SetMembers<'m, 'h>> = BTreeMap::new();
        for (machine, host) in placed {
            sets.entry(set_key(machine)).or_default().add(host);
        }
        Self { free: FreeHosts::new(free), sets, requests: BTreeMap::new() }
    }

    /// Gives a Machine the best Host that is left: where fewest of its set are, by each key in turn; then by the order
    /// of names given; then by name.
    pub fn take(&mut self, machine: &'m Machine) -> Option<&'h Host> {
        let (request, set) = (HostRequest::from_machine(machine), set_key(machine));
        let Request { candidates, queues } = self
            .requests
            .entry(RequestKey::new(request))
            .or_insert_with(|| Request { candidates: self.free.candidates(request), queues: BTreeMap::new() });
        let members = self.sets.entry(set).or_default();
        members.count_by(request.spread_by);
        let count = |key: usize, value: Option<&str>| members.count(request.spread_by.get(key), value);
        let queue = queues.entry(set).or_default();
        let host = queue.best(candidates, &self.free, count)?;
        let host = self.free.take(host)?;
        members.add(host);
        Some(host)
    }
}

fn set_key(machine: &Machine) -> SetKey<'_> {
    (machine.spec.former(), set_of(machine))
}

/// Where the Machines of a set are.
#[derive(Default)]
struct SetMembers<'m, 'h> {
    hosts: Vec<&'h Host>,
    /// How many are on Hosts with each value of a label; Hosts without it count, too.
    counts: BTreeMap<&'m str, HashMap<Option<&'h str>, usize>>,
}

impl<'m, 'h> SetMembers<'m, 'h> {
    fn add(&mut self, host: &'h Host) {
        self.hosts.push(host);
        for (key, counts) in &mut self.counts {
            *counts.entry(label(host, key)).or_default() += 1;
        }
    }

    fn count_by(&mut self, keys: &'m [String]) {
        for key in keys {
            self.counts.entry(key).or_insert_with(|| {
                let mut counts = HashMap::new();
                for host in &self.hosts {
                    *counts.entry(label(host, key)).or_default() += 1;
                }
                counts
            });
        }
    }

    fn count(&self, key: Option<&String>, value: Option<&str>) -> usize {
        let counts = key.and_then(|key| self.counts.get(key.as_str()));
        let count = counts.and_then(|counts| counts.get(&value));
        count.copied().unwrap_or_default()
    }
}
