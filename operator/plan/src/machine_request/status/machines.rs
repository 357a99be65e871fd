//! What became of each Machine of a request. What was given back stays on the list with the reason that it had then.

use std::collections::BTreeMap;

use crds::machine_request::{RequestedMachine, RequestedMachineState};
use crds::names::condition;
use crds::{Conditions, Machine, ObjectExt, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::super::answer::is_answered;
use super::super::members::{Members, is_ready};
use super::super::observed::Observed;

/// In the order of their names. `answers`: the request is answered now.
pub(in super::super) fn machines(
    observed: &Observed<'_>,
    members: &Members<'_>,
    answers: bool,
) -> Vec<RequestedMachine> {
    let is_over = answers || is_answered(observed.request);
    let mut records: BTreeMap<&str, RequestedMachine> = BTreeMap::new();
    for record in observed.request.status.iter().flat_map(|status| &status.machines) {
        let is_given_back = record.state == RequestedMachineState::GivenBack;
        if is_given_back || (is_over && record.delivered_at.is_some()) {
            records.insert(&record.name, if is_given_back { record.clone() } else { gone(record) });
        }
    }
    for machine in members.live.iter().chain(&members.leaving).copied() {
        let record = members.record(machine.name());
        // As it was when the request was answered: what it says of its removal since is no reason.
        if record.is_none_or(|record| record.state != RequestedMachineState::GivenBack) {
            records.insert(machine.name(), seen(observed, members, machine, is_over));
        }
    }
    records.into_values().collect()
}

fn gone(record: &RequestedMachine) -> RequestedMachine {
    RequestedMachine {
        state: RequestedMachineState::Gone,
        reason: Reason::RequestedMachineDeleted.into(),
        message: "the Machine was deleted; it is not made again".into(),
        ..record.clone()
    }
}

fn seen(observed: &Observed<'_>, members: &Members<'_>, machine: &Machine, is_over: bool) -> RequestedMachine {
    let record = members.record(machine.name());
    let is_delivered = members.is_delivered(machine) && (!machine.is_deleting() || record.is_some());
    let since = record.and_then(|record| record.delivered_at.clone());
    let state = match (machine.is_deleting(), is_delivered) {
        (true, true) => RequestedMachineState::Leaving,
        (false, true) if is_ready(machine) => RequestedMachineState::Ready,
        (false, true) => RequestedMachineState::NotReady,
        (_, false) if is_over => RequestedMachineState::GivenBack,
        (true, false) => RequestedMachineState::Leaving,
        (false, false) => RequestedMachineState::Pending,
    };
    let (reason, message) = why(machine);
    RequestedMachine {
        name: machine.name().to_owned(),
        host: machine.spec.host_ref.as_ref().map(|host| host.name.clone()),
        state,
        reason,
        message,
        delivered_at: since.or_else(|| (is_delivered && !machine.is_deleting()).then_some(Time(observed.now))),
    }
}

/// By its conditions: `Deleting` of one that is deleted, `Ready` of others.
fn why(machine: &Machine) -> (String, String) {
    let type_ = if machine.is_deleting() { condition::DELETING } else { condition::READY };
    match machine.condition(type_) {
        Some(stated) => (stated.reason.clone(), stated.message.clone()),
        None if machine.is_deleting() => (Reason::Deleting.into(), "the Machine is being deleted".into()),
        None => (Reason::NotSeenYet.into(), "the Machine was not looked at yet".into()),
    }
}
