//! Whether the Host is older than its machine: what the guard there knows by the last probe, or by its refusal of a
//! run.

use crds::conditions::{self, Statement};
use crds::names::condition;
use crds::{Host, HostStatus, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::action::Action;
use super::observed::HostObserved;
use crate::message::cut;
use crate::store::{self, Contradiction, Differs};

/// Puts the fence into the status that a run met which the guard refused.
pub(super) fn fold_refusal(observed: &HostObserved<'_>, status: &mut HostStatus) {
    let runs = observed.runs.iter().map(|run| &**run);
    let met = store::refusal(observed.host, runs).filter(|(fence, _)| Some(*fence) > status.fence);
    if let Some((fence, owner)) = met {
        (status.fence, status.fence_owner) = (Some(fence), owner);
    }
}

/// States what contradicts, while something does.
pub(super) fn state(observed: &HostObserved<'_>, status: &mut HostStatus) {
    let message = contradicts(observed.host, status);
    let Some(message) = message else {
        status.conditions.retain(|there| there.type_ != condition::STORE_IS_OLDER);
        return;
    };
    let statement = Statement::new(condition::STORE_IS_OLDER, true, Reason::MachineIsNewer, cut(message));
    let generation = observed.host.metadata.generation;
    status.conditions = conditions::state(&status.conditions, &[statement], generation, &Time(observed.now));
}

/// What contradicts, and what becomes of it.
pub(super) fn contradicts(host: &Host, status: &HostStatus) -> Option<String> {
    let message = find(host, status)?.message();
    let next = match &host.spec.claim_ref {
        Some(claim) => {
            format!("nothing is done to it: see the condition StoreIsOlder of the cluster of Machine {}", claim.name)
        }
        None => "it is not claimed before a probe finds it clean".to_owned(),
    };
    Some(format!("{message}; {next}"))
}

/// What the status that is about to be says against the Host.
fn find<'a>(host: &'a Host, status: &HostStatus) -> Option<Contradiction<'a>> {
    Contradiction::between(host, status.fence?, status.fence_owner.clone())
}

/// Nobody has the machine any more: it is free, for whoever comes with a later claim.
pub(super) fn raise(observed: &HostObserved<'_>, status: &HostStatus) -> Option<Action> {
    let host = observed.host;
    let found = find(host, status).filter(|found| found.differs == Differs::Epoch)?;
    let is_of_now = |type_: &str| {
        let stated = conditions::find(&status.conditions, type_);
        stated.is_some_and(|stated| stated.status == "True" && stated.observed_generation == host.metadata.generation)
    };
    let is_free = host.spec.claim_ref.is_none() && store::was_asked(Some(status), observed.schedule.resumed_at);
    let is_clean = is_free && is_of_now(condition::REACHABLE) && is_of_now(condition::CLEAN);
    is_clean.then(|| Action::RaiseEpoch { host: Box::new(host.clone()), epoch: found.fence.epoch })
}
