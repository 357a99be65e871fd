//! Claims: which Host a Machine takes from the spare pool of its namespace. Deterministic, and the same for everyone
//! who looks at the same pool.

mod allocation;
mod host_request;
mod identities;
pub mod identity;
mod narrowing;
mod pool;
mod shares;

use std::collections::HashMap;

use crds::ObjectExt;
use crds::{Host, Machine};

pub use host_request::HostRequest;
pub(crate) use identities::without_comment;
pub use identities::{Double, Identities, identity_keys, is_one_machine};
pub use narrowing::narrow;
pub use pool::{Offer, Pool, offer, why_not};
pub use shares::{Share, Shares};

/// Whether this Machine holds the Host.
pub fn holds(machine: &Machine, host: &Host) -> bool {
    let uid = machine.metadata.uid.as_deref();
    host.spec.claim_ref.as_ref().is_some_and(|claim| Some(claim.uid.as_str()) == uid)
}

/// Hosts by the UID of the Machine that holds them; of several that one Machine holds, the first.
pub(crate) fn holders<'a>(hosts: &[&'a Host]) -> HashMap<&'a str, &'a Host> {
    let mut holders = HashMap::new();
    for host in hosts.iter().copied() {
        if let Some(claim) = &host.spec.claim_ref {
            holders.entry(claim.uid.as_str()).or_insert(host);
        }
    }
    holders
}

/// Whether the Machine looks for a Host.
pub fn is_looking(machine: &Machine) -> bool {
    machine.spec.host_ref.is_none() && !machine.is_deleting()
}

/// Name of the MachineSet that a Machine is of, as its label says.
pub(crate) fn set_of(machine: &Machine) -> Option<&str> {
    let labels = machine.metadata.labels.as_ref()?;
    labels.get(crds::names::label::MACHINE_SET).map(String::as_str)
}

#[cfg(test)]
mod tests;
