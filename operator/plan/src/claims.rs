//! Claims: which Host a Machine takes from the spare pool of its namespace. Deterministic, and the same for everyone
//! who looks at the same pool.

mod choice;
mod host_request;
mod identities;
pub mod identity;
mod pool;

use crds::ObjectExt;
use crds::{Host, Machine};

pub use choice::choose;
pub use host_request::HostRequest;
pub(crate) use identities::without_comment;
pub use identities::{Double, Identities, is_one_machine};
pub use pool::{Offer, Pool, offer, why_not};

/// Whether this Machine holds the Host.
pub fn holds(machine: &Machine, host: &Host) -> bool {
    let uid = machine.metadata.uid.as_deref();
    host.spec
        .claim_ref
        .as_ref()
        .is_some_and(|claim| Some(claim.uid.as_str()) == uid)
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

fn name_of(host: &Host) -> &str {
    host.name()
}

#[cfg(test)]
mod tests;
