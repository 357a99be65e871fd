//! The spare Hosts that replacements come from, as far as they are nobody's yet.

use std::collections::BTreeMap;

use crds::ObjectExt;
use crds::Reason;
use crds::{Host, Machine, MachineSet};

use crate::claims::{self, HostRequest};
use crate::machine_request::is_requested;

/// Spare Hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spares {
    /// Those that can be claimed.
    pub free: usize,
    /// Those that Machines wait for, there or about to be made.
    pub awaited: usize,
}

impl Spares {
    /// The pool as the Machines of one cluster find it.
    pub fn count(hosts: &[&Host], machines: &[&Machine], sets: &[&MachineSet]) -> Self {
        let live = || machines.iter().filter(|machine| !machine.is_deleting());
        let holders = claims::holders(hosts);
        let looking = live().filter(|machine| !holders.contains_key(machine.uid())).count();
        let mut by_set: BTreeMap<&str, usize> = BTreeMap::new();
        for machine in live() {
            if let Some(set) = claims::set_of(machine).filter(|_| !is_requested(machine)) {
                *by_set.entry(set).or_default() += 1;
            }
        }
        let anything = HostRequest { selector: None, hosts: None, spread_by: &[] };
        let lacking = sets.iter().map(|set| {
            let has = by_set.get(set.name());
            let wanted = set.spec.count();
            wanted.saturating_sub(has.copied().unwrap_or_default())
        });
        Self { free: claims::offer(&anything, hosts).free, awaited: looking + lacking.sum::<usize>() }
    }

    /// Why no Host can be had for one more Machine; `fitting` of the free ones would do for it.
    pub(super) fn refuses(&self, fitting: usize, keep: usize) -> Option<(Reason, String)> {
        let left = self.free.saturating_sub(self.awaited);
        if fitting <= self.awaited {
            let message = match (fitting, self.awaited) {
                (0, _) => format!("no spare Host would do in its place ({} free)", self.free),
                (fitting, awaited) => format!(
                    "{} would do in its place, and {} for them already",
                    crate::message::count(fitting, "spare Host"),
                    match awaited {
                        1 => "1 machine waits".to_owned(),
                        more => format!("{more} machines wait"),
                    }
                ),
            };
            return Some((Reason::NoSpareHost, message));
        }
        (left <= keep).then(|| {
            let message = format!("{left} spare Hosts are left, and keepSpareHosts is {keep}");
            (Reason::SpareHostsReserved, message)
        })
    }
}
