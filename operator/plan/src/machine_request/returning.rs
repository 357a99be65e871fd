//! The end of a request: its Machines are given back, or those that it delivered are left to their set.

use crds::conditions::{self, Statement};
use crds::kstatus::Standing;
use crds::machine_request::OnDelete;
use crds::names::{condition, finalizer};
use crds::{Machine, MachineRequestStatus, ObjectExt, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::action::Action;
use super::members::{Members, is_ready};
use super::observed::Observed;
use super::status::machines;
use crate::message::{count, cut};
use crate::{Next, Plan};

pub(super) fn plan(observed: &Observed<'_>, members: &Members<'_>) -> Plan<Action, MachineRequestStatus> {
    let request = observed.request;
    let keeps = request.spec.on_delete == OnDelete::Keep;
    // Those that leave a cluster whose request keeps the others go their way without it.
    let waits = if keeps { members.live.len() } else { members.live.len() + members.leaving.len() };
    let old = request.status.clone().unwrap_or_default();
    if waits == 0 {
        let holds = request.has_finalizer(finalizer::MACHINE_REQUEST);
        let actions = holds.then_some(Action::RemoveFinalizer).into_iter().collect();
        return Plan { actions, status: old, next: Next::OnChange, waits_for: None };
    }
    let end = |machine: &&Machine| match keeps && members.is_delivered(machine) {
        true => Action::LeaveToSet(Box::new((*machine).clone())),
        false => Action::give_back(machine),
    };
    let actions = members.live.iter().map(end).collect();
    let message = message(members, waits);
    let deleting = Statement::new(condition::DELETING, true, Reason::ReturningMachines, message.clone());
    let ready = Statement::new(condition::READY, false, Reason::Deleting, message.clone());
    let mut old_conditions = old.conditions.clone();
    let mut statements = vec![ready.clone()];
    Standing::Reconciling.report(&ready, &mut old_conditions, &mut statements);
    statements.push(deleting);
    let generation = request.metadata.generation;
    let ready = members.live.iter().filter(|machine| is_ready(machine)).count();
    let status = MachineRequestStatus {
        observed_generation: generation,
        message: Some(message.clone()),
        summary: Some(format!("{ready}/{}", request.spec.wanted())),
        machines: machines(observed, members, true),
        conditions: conditions::state(&old_conditions, &statements, generation, &Time(observed.now)),
        ..old
    };
    Plan { actions, status, next: Next::OnChange, waits_for: Some(message) }
}

fn message(members: &Members<'_>, waits: usize) -> String {
    let first = members.leaving.first().map(|machine| {
        let status = machine.status.as_ref();
        let says = status.and_then(|status| status.message.as_deref()).unwrap_or("not looked at yet");
        format!(": {}: {says}", machine.name())
    });
    cut(format!("waits for {} to be given back{}", count(waits, "Machine"), first.unwrap_or_default()))
}
