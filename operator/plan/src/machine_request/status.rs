//! What a MachineRequest shows: its Machines one by one, and how it was answered.

mod machines;

use crds::conditions::{self, Statement};
use crds::kstatus::Standing;
use crds::machine_request::{RequestAnswer, RequestedMachine, RequestedMachineState};
use crds::names::condition;
use crds::{MachineRequestStatus, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::answer::{Answer, deadline};
use super::create::Obstacle;
use super::members::{Members, is_ready};
use super::observed::Observed;
use crate::message::{count, cut};
use crate::moment::day_and_clock;
pub(super) use machines::machines;

pub(super) fn set_status(
    observed: &Observed<'_>,
    members: &Members<'_>,
    answer: &Answer,
    obstacle: Option<&Obstacle>,
) -> (MachineRequestStatus, Option<String>) {
    let request = observed.request;
    let old = request.status.clone().unwrap_or_default();
    let wanted = request.spec.wanted();
    let machines = machines(observed, members, matches!(answer, Answer::Now(_)));
    let ready = members.live.iter().filter(|machine| is_ready(machine)).count();
    let shown = Shown { wanted, ready, machines: &machines, by: day_and_clock(deadline(request, observed.now)) };
    let given = match answer {
        Answer::Now(_) if members.delivered().count() >= wanted => Some(RequestAnswer::Fulfilled),
        Answer::Now(_) if members.delivered().next().is_some() => Some(RequestAnswer::PartiallyFulfilled),
        Answer::Now(_) => Some(RequestAnswer::Failed),
        Answer::Given | Answer::Open { .. } => old.answer,
    };
    let (ready, mut statements) = match (answer, given) {
        (Answer::Now(reason), Some(given)) => shown.answered(given, *reason, obstacle),
        (Answer::Given, Some(given)) => shown.later(given, &old.conditions),
        _ => shown.open(obstacle),
    };
    let mut old_conditions = old.conditions.clone();
    let is_ready = ready.status == Some(true);
    // Once it is answered, nobody makes what it lacks.
    let is_stalled = match given {
        Some(RequestAnswer::Fulfilled) => shown.first(RequestedMachineState::Gone).is_some(),
        Some(_) => true,
        None => obstacle.is_some_and(|obstacle| obstacle.reason.is_warning()),
    };
    let standing = Standing::new(is_ready, is_stalled);
    standing.report(&ready, &mut old_conditions, &mut statements);
    let message = ready.message.clone();
    let now = Time(observed.now);
    let status = MachineRequestStatus {
        observed_generation: request.metadata.generation,
        message: Some(message.clone()),
        summary: Some(format!("{}/{wanted}", shown.ready)),
        deadline: Some(Time(deadline(request, observed.now))),
        answered_at: old.answered_at.clone().or(given.is_some().then(|| now.clone())),
        answer: given,
        conditions: conditions::state(&old_conditions, &statements, request.metadata.generation, &now),
        machines,
    };
    (status, (!is_ready && given.is_none()).then_some(message))
}

/// What there is to say.
struct Shown<'a> {
    wanted: usize,
    ready: usize,
    machines: &'a [RequestedMachine],
    /// The time until which it is open.
    by: String,
}

impl Shown<'_> {
    /// Its Machines are waited for.
    fn open(&self, obstacle: Option<&Obstacle>) -> (Statement, Vec<Statement>) {
        let progress = format!("{} of {} Ready", self.ready, self.wanted);
        let (reason, message) = match obstacle {
            Some(obstacle) => (obstacle.reason, format!("{progress}; {}", obstacle.message)),
            None => (
                Reason::WaitingForRequestedMachines,
                match self.first(RequestedMachineState::Pending) {
                    Some(pending) => format!("{progress}; {pending}"),
                    None => format!("{progress}; makes {} more", self.wanted.saturating_sub(self.ready)),
                },
            ),
        };
        let message = cut(format!("{message}; answered by {}", self.by));
        let state = |type_| Statement::new(type_, false, reason, message.clone());
        (state(condition::READY), vec![state(condition::READY), state(condition::FULFILLED)])
    }

    /// It is answered now.
    fn answered(
        &self,
        given: RequestAnswer,
        reason: Reason,
        obstacle: Option<&Obstacle>,
    ) -> (Statement, Vec<Statement>) {
        let delivered = self.machines.iter().filter(|machine| machine.delivered_at.is_some()).count();
        let when = match reason {
            Reason::RequestCanceled => "when it was canceled",
            Reason::ClusterDeleting => "when its cluster was deleted",
            _ => "by its deadline",
        };
        let given_back = self.machines.iter().filter(|machine| machine.state == RequestedMachineState::GivenBack);
        let message = match (given, self.first(RequestedMachineState::GivenBack), obstacle) {
            (RequestAnswer::Fulfilled, ..) => format!("{} delivered", count(self.wanted, "machine")),
            (_, Some(first), _) => format!(
                "{delivered} of {} Ready {when}; {} given back: {first}",
                self.wanted,
                count(given_back.count(), "Machine")
            ),
            (_, None, Some(obstacle)) => format!("{delivered} of {} Ready {when}: {}", self.wanted, obstacle.message),
            (_, None, None) => format!("{delivered} of {} Ready {when}", self.wanted),
        };
        let is_fulfilled = given == RequestAnswer::Fulfilled;
        let state = |type_, status: bool| Statement::new(type_, status, reason, cut(message.clone()));
        let mut statements = vec![state(condition::READY, is_fulfilled), state(condition::FULFILLED, is_fulfilled)];
        match given {
            RequestAnswer::Fulfilled => {}
            RequestAnswer::PartiallyFulfilled => statements.push(state(condition::PARTIALLY_FULFILLED, true)),
            RequestAnswer::Failed => statements.push(state(condition::FAILED, true)),
        }
        (state(condition::READY, is_fulfilled), statements)
    }

    /// It was answered before: only `Ready` follows its Machines.
    fn later(&self, given: RequestAnswer, old: &[Condition]) -> (Statement, Vec<Statement>) {
        let answered = conditions::find(old, condition::FULFILLED);
        let stands = |there: &Condition| {
            let message = match there.message.as_str() {
                "" => "answered".to_owned(),
                message => message.to_owned(),
            };
            Statement::new(condition::READY, there.status == "True", there.reason.clone(), message)
        };
        let not_ready = [RequestedMachineState::NotReady, RequestedMachineState::Leaving, RequestedMachineState::Gone];
        let first = not_ready.into_iter().find_map(|state| self.first(state));
        let ready = match (given, first) {
            (RequestAnswer::Fulfilled, Some(first)) => Statement::new(
                condition::READY,
                false,
                Reason::MachinesNotReady,
                cut(format!("{} of {} Ready; {first}", self.ready, self.wanted)),
            ),
            _ => answered.map_or_else(
                || Statement::new(condition::READY, given == RequestAnswer::Fulfilled, Reason::AllReady, "answered"),
                stands,
            ),
        };
        (ready.clone(), vec![ready])
    }

    /// The first Machine in this state, with its reason.
    fn first(&self, state: RequestedMachineState) -> Option<String> {
        let machine = self.machines.iter().find(|machine| machine.state == state)?;
        Some(format!("{} ({}): {}", machine.name, machine.reason, machine.message))
    }
}
