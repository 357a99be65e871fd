//! MachineRequest: makes the Machines that a platform requests for a set of workers, answers it with what is Ready by
//! its deadline, gives the others back, and in the end all of them.

mod action;
mod answer;
mod create;
mod members;
mod observed;
mod returning;
mod status;

use crds::MachineRequestStatus;
use crds::ObjectExt;
use crds::names::finalizer;

use crate::{Next, Plan};
pub use action::Action;
pub use answer::is_answered;
use answer::{Answer, answer};
use create::{create, obstacle};
use members::Members;
pub use members::{is_requested, request_of};
pub use observed::Observed;
use status::set_status;

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Action, MachineRequestStatus> {
    let request = observed.request;
    let members = Members::new(observed);
    if request.is_deleting() {
        return returning::plan(observed, &members);
    }
    if !request.has_finalizer(finalizer::MACHINE_REQUEST) {
        // Nothing is made before it is sure to be given back.
        return Plan {
            actions: vec![Action::AddFinalizer],
            status: request.status.clone().unwrap_or_default(),
            next: Next::OnChange,
            waits_for: Some("is about to make its Machines".into()),
        };
    }
    let obstacle = obstacle(observed);
    let answer = answer(observed, &members);
    let actions = match (&answer, &obstacle) {
        (Answer::Given | Answer::Now(..), _) => members.undelivered().map(Action::give_back).collect(),
        (Answer::Open { .. }, Some(_)) => Vec::new(),
        (Answer::Open { .. }, None) => create(observed, &members),
    };
    let (status, waits_for) = set_status(observed, &members, &answer, obstacle.as_ref());
    let next = match answer {
        Answer::Open { left_seconds } => Next::after_seconds(left_seconds),
        Answer::Given | Answer::Now(..) => Next::OnChange,
    };
    Plan { actions, status, next, waits_for }
}

#[cfg(test)]
mod tests;
