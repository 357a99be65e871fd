//! Sets the plane back in its place, as its EtcdRestore asks for: nothing else is done with its machines meanwhile.

use crds::Reason;
use crds::karmada_deployment::KarmadaRestoreStep;

use super::super::act::Act;
use super::super::on_all::{Due, due};
use super::super::part_wanted::Basis;
use super::super::proposal::{Proposal, Round};
use super::super::restore_runs::{self, RestoreRun};
use super::super::state::PlaneState;
use crate::karmada_deployment::restoring::{is_turned, under_way_on_machines};
use crate::message::count;

pub(super) fn propose(state: &PlaneState<'_>, basis: &Basis<'_>, _: &Round) -> Proposal {
    let Some(record) = under_way_on_machines(state.object) else { return Proposal::default() };
    let holds = Proposal { holds: true, ..Proposal::default() };
    let run = match record.step {
        Some(KarmadaRestoreStep::Stage) if is_turned(record) => return holds,
        Some(KarmadaRestoreStep::Stage) => RestoreRun::Stage,
        Some(KarmadaRestoreStep::Stop | KarmadaRestoreStep::Data) if is_turned(record) => RestoreRun::Undo,
        Some(KarmadaRestoreStep::Stop | KarmadaRestoreStep::Data) => RestoreRun::Restore,
        Some(
            KarmadaRestoreStep::Serve
            | KarmadaRestoreStep::Compare
            | KarmadaRestoreStep::Release
            | KarmadaRestoreStep::Collect,
        )
        | None => return Proposal::default(),
    };
    // The next step is about to be taken.
    if restore_runs::has(state, run) || run == RestoreRun::Undo && restore_runs::is_untouched(state) {
        return holds;
    }
    let told = run.told();
    if let Some(active) = state.active.first() {
        return Proposal::under_way(told.doing, state.describe(active));
    }
    if basis.material.keys.is_none() {
        return Proposal::under_way(told.doing, "waiting for the plane's keys".to_owned());
    }
    let (machines, id) = (run.machines(state), restore_runs::id_of(record));
    match due(state, told, &machines, |machine| run.decision(state, &id, machine)) {
        Due::NotNow(proposal) => proposal,
        Due::Now { targets, number } => match run.make(state, basis, record, (&targets, number)) {
            Some(run) => {
                let message = format!("{} on {} begins", told.title, count(machines.len(), "machine"));
                Proposal::under_way(told.doing, message).and(Act::create(run))
            }
            None => Proposal::under_way(Reason::Restoring, "waiting for the files of the plane's services".to_owned()),
        },
    }
}
