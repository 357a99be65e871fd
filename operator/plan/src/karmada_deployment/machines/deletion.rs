//! The end of a plane's machines, once its members have left: runs are canceled, machines deleted and cleaned, those
//! with all components first, then those of a dedicated etcd. Who was left as it is stays.

use crds::commands::{self, Target};
use crds::names::annotation;
use crds::step::Intent;
use crds::{ObjectExt, PlaybookRun, Reason};

use super::act::Act;
use super::operations::reset;
use super::state::PlaneState;
use crate::Next;
use crate::addon::Problem;
use crate::attempts;
use crate::cluster_machine::{ClusterMachine, first_role_to_leave};
use crate::lock::tokens::Tokens;
use crate::message::{count, quote};
use crate::moment::clock;

/// What is to be done; none is left once no machine is.
pub(in super::super) struct Deletion {
    pub acts: Vec<Act>,
    pub next: Next,
    pub told: Problem,
}

impl Deletion {
    fn waits(reason: Reason, message: String) -> Self {
        Self { acts: Vec::new(), next: Next::OnChange, told: Problem { reason, message } }
    }
}

/// What becomes of the machines, which are cleaned or left as they are; none: they are all given back.
pub(in super::super) fn plan(state: &PlaneState<'_>, tokens: &Tokens, cleans: bool) -> Option<Deletion> {
    if state.live.is_empty() && state.leaving.is_empty() && state.active.is_empty() {
        return None;
    }
    let clean = || if cleans { clean_machines(state, tokens) } else { None };
    let found = cancel_runs(state).or_else(|| delete_machines(state)).or_else(clean);
    Some(found.unwrap_or_else(|| wait_for_machines(state)))
}

fn cancel_runs(state: &PlaneState<'_>) -> Option<Deletion> {
    let in_the_way = || state.active.iter().copied().filter(|run| run.spec.intent != Intent::Reset);
    let first = in_the_way().next()?;
    let cancel = |run: &PlaybookRun| Act::CancelRun(Box::new(run.clone()));
    let message = format!("canceling run {} ({})", first.name(), state.describe(first));
    Some(Deletion {
        acts: in_the_way().filter(|run| !run.spec.cancel).map(cancel).collect(),
        ..Deletion::waits(Reason::CancelingRuns, message)
    })
}

fn delete_machines(state: &PlaneState<'_>) -> Option<Deletion> {
    let delete = |machine: &ClusterMachine<'_>| Act::DeleteMachine(Box::new(machine.machine.clone()));
    let message = format!("deleting {}", count(state.live.len(), "machine"));
    (!state.live.is_empty()).then(|| Deletion {
        acts: state.live.iter().map(delete).collect(),
        ..Deletion::waits(Reason::DeletingMachines, message)
    })
}

/// Reset runs on the machines; none: all that can be cleaned are.
fn clean_machines(state: &PlaneState<'_>, tokens: &Tokens) -> Option<Deletion> {
    if let Some(lost) = tokens.lost() {
        let acts = lost.probe.clone().map(Act::CreateRun).into_iter().collect();
        return Some(Deletion { acts, next: lost.next, ..Deletion::waits(lost.reason, lost.message.clone()) });
    }
    let resets = reset::look(state);
    let cleaning = |acts, message| Some(Deletion { acts, ..Deletion::waits(Reason::CleaningMachines, message) });
    if let Some(run) = state.active.first() {
        return cleaning(resets.acts, state.describe(run));
    }
    if !resets.later.is_empty() {
        return clean_again(state, resets);
    }
    let role = first_role_to_leave(&state.leaving);
    let now = state.leaving.iter().filter(|machine| Some(machine.machine.spec.role) == role).count();
    let message = format!("cleaning {}", count(now, "machine"));
    (!resets.acts.is_empty()).then_some(()).and_then(|()| cleaning(resets.acts, message))
}

/// Resets that failed are tried again; a person may have such machines forgotten.
fn clean_again(state: &PlaneState<'_>, resets: reset::Resets<'_>) -> Option<Deletion> {
    let (machine, at, cause) = resets.later.iter().min_by_key(|(_, at, _)| *at)?;
    let others = match resets.later.len() {
        1 => String::new(),
        more => format!(" (and {} more)", more - 1),
    };
    let (object, mut acts) = (state.object, resets.acts);
    if is_forced(state) {
        acts.extend(resets.later.iter().filter_map(|(machine, _, _)| force(state, machine)));
    }
    let key = annotation::DELETE_CONFIRMED;
    let value = format!("{}.{FORCE}", object.generation());
    let command = commands::annotate(Target::KarmadaDeployment, &object.metadata, key, value);
    let message = format!(
        "cannot clean Host {}{others}: {}; tried again at {}; to forget such machines (their Hosts are quarantined), {command}",
        machine.host_name().unwrap_or_default(),
        quote(cause.told()),
        clock(*at),
    );
    Some(Deletion { acts, next: state.until(*at), ..Deletion::waits(Reason::ResetFailed, message) })
}

/// What follows the generation in `delete-confirmed` when what cannot be cleaned is to be let go, too.
const FORCE: &str = "force";

/// Whether a person said that what cannot be cleaned is to be let go.
fn is_forced(state: &PlaneState<'_>) -> bool {
    let said = state.object.annotation(annotation::DELETE_CONFIRMED).and_then(|value| value.split_once('.'));
    let generation = state.object.generation();
    let meant = said.and_then(|(meant, word)| meant.parse::<i64>().ok().filter(|_| word == FORCE));
    meant.is_some_and(|meant| (generation - 1..=generation).contains(&meant))
}

/// Asks that a machine be forgotten; nothing where that was asked already.
fn force(state: &PlaneState<'_>, machine: &ClusterMachine<'_>) -> Option<Act> {
    let asked = attempts::names_generation(&machine.machine.metadata, annotation::FORCE_REMOVE);
    let is_on = |run: &&PlaybookRun| run.spec.hosts.iter().any(|host| machine.host_name() == Some(host));
    let busy = state.active.iter().any(is_on);
    (!asked && !busy).then(|| Act::ForceRemoveMachine(Box::new(machine.machine.clone())))
}

fn wait_for_machines(state: &PlaneState<'_>) -> Deletion {
    let first = state.leaving.first().map(|machine| format!("{}: {}", machine.title(), machine.says()));
    let message = format!("waiting for {} to go: {}", count(state.leaving.len(), "machine"), first.unwrap_or_default());
    Deletion::waits(Reason::WaitingForMachines, message)
}
