//! One Host: what the last probe found, whose it is, and when it is looked at again.

mod action;
mod clones;
pub mod identity;
mod observed;
mod probes;
mod quarantine;
mod result;
mod schedule;
mod store;
mod view;

use crds::HostStatus;

use crate::{Next, Plan};

pub use action::Action;
pub use observed::HostObserved;
pub use probes::{MOST_HOSTS, due_soon, is_probe, looks_at_pool, under_way};
pub use schedule::ProbeSchedule;
pub use view::is_double;

/// Decides.
pub fn host(observed: &HostObserved<'_>) -> Plan<Action, HostStatus> {
    let mut status = observed.host.status.clone().unwrap_or_default();
    result::fold(observed, &mut status);
    store::fold_refusal(observed, &mut status);
    store::state(observed, &mut status);
    identity::state(observed, &mut status);
    clones::state(observed, &mut status);
    view::show(observed, &mut status);
    let told = observed.host.status.as_ref() == Some(&status);
    // What a probe found is written before the next one is made.
    let (mut actions, next) = if told || !result::is_new(observed) {
        probes::next(observed, &status)
    } else {
        (Vec::new(), Next::after_seconds(1))
    };
    actions.extend(quarantine::actions(observed, &status));
    actions.extend(store::raise(observed, &status));
    let identity = identity::to_write(observed.host, &status);
    actions.extend(identity.map(|identity| Action::SetIdentity { host: Box::new(observed.host.clone()), identity }));
    let is_well = crds::conditions::is_true(&status.conditions, crds::names::condition::READY);
    let waits_for = if is_well { None } else { status.message.clone() };
    Plan { actions, status, next, waits_for }
}

#[cfg(test)]
mod tests;
