//! HostPool: the Hosts that match a selector, in numbers. The operator makes one for each selector that a MachineSet or
//! a MachineRequest has, and lets it go when none has it any more; others are whoever made them.

mod automatic;
mod class;
mod selector;

use crds::conditions::{self, Statement};
use crds::names::{condition, label};
use crds::{Host, HostPool, HostPoolStatus, MachineRequest, MachineSet, ObjectExt, Reason};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::claims::HostRequest;
use crate::message::{count, cut};
use crate::{Next, Plan};
pub use automatic::{automatic_pool, pool_name, selector_of_request, selector_of_set};
pub use class::{Class, class};

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// The pool.
    pub pool: &'a HostPool,
    /// Hosts of the namespace.
    pub hosts: &'a [&'a Host],
    /// MachineSets of the namespace.
    pub sets: &'a [&'a MachineSet],
    /// MachineRequests of the namespace.
    pub requests: &'a [&'a MachineRequest],
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Delete it: the operator made it, and nobody asks for its selector any more.
    Delete,
}

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Action, HostPoolStatus> {
    let pool = observed.pool;
    if is_automatic(pool) && !pool.is_deleting() && !is_asked_for(observed) {
        let status = pool.status.clone().unwrap_or_default();
        return Plan { actions: vec![Action::Delete], status, next: Next::OnChange, waits_for: None };
    }
    Plan { actions: Vec::new(), status: status(observed), next: Next::OnChange, waits_for: None }
}

/// Whether the operator made it.
pub fn is_automatic(pool: &HostPool) -> bool {
    let labels = pool.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.get(label::AUTOMATIC).is_some_and(|value| value == "true"))
}

/// By its name, which follows from the selector: one that was edited since is nobody's.
fn is_asked_for(observed: &Observed<'_>) -> bool {
    let its = &observed.pool.spec.host_selector;
    let of_sets = observed.sets.iter().filter_map(|set| selector_of_set(set));
    let of_requests = observed.requests.iter().filter_map(|request| selector_of_request(request, observed.sets));
    pool_name(its) == observed.pool.name() && of_sets.chain(of_requests).any(|selector| selector == *its)
}

/// Whether the pool counts the Host.
pub fn counts(pool: &HostPool, host: &Host) -> bool {
    HostRequest { selector: Some(&pool.spec.host_selector), hosts: None, spread_by: &[] }.matches(host)
}

fn status(observed: &Observed<'_>) -> HostPoolStatus {
    let pool = observed.pool;
    let mut status = HostPoolStatus {
        observed_generation: pool.metadata.generation,
        selector: Some(cut(selector::words(&pool.spec.host_selector))),
        ..HostPoolStatus::default()
    };
    let mut why: Vec<(String, String)> = Vec::new();
    for host in observed.hosts.iter().filter(|host| counts(pool, host)) {
        status.hosts += 1;
        let class = class(host);
        let counter = match &class {
            Class::Available => &mut status.available,
            Class::Claimed => &mut status.claimed,
            Class::Cleaning => &mut status.cleaning,
            Class::Quarantined => &mut status.quarantined,
            Class::Unreachable => &mut status.unreachable,
            Class::Other(_) => &mut status.other,
        };
        *counter += 1;
        if let Class::Other(reason) = class {
            why.push((host.name().to_owned(), reason));
        }
    }
    let stated = stated(&status, why);
    let old = pool.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    status.message = Some(stated.message.clone());
    status.conditions = conditions::state(old, &[stated], pool.metadata.generation, &Time(observed.now));
    status
}

fn stated(status: &HostPoolStatus, mut why: Vec<(String, String)>) -> Statement {
    why.sort();
    let number = |number: i32| usize::try_from(number).unwrap_or_default();
    let free = format!("{} of {} free", status.available, count(number(status.hosts), "Host"));
    let message = match why.first() {
        Some((host, reason)) => {
            format!("{free}; {} for another reason than the columns say: {host} is {reason}", count(why.len(), "Host"))
        }
        None => free,
    };
    let reason = if status.available > 0 { Reason::HostsFree } else { Reason::NoHostFree };
    Statement::new(condition::HOSTS_AVAILABLE, status.available > 0, reason, cut(message))
}

#[cfg(test)]
mod tests;
