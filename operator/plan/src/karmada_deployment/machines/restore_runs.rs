//! The runs by which a plane on machines is set back in its place: one lays the backup ready beside etcd's data while
//! the plane works, another one stops its services and swaps the data of all members of etcd, and a third one swaps it
//! back.

use crds::etcd_restore::StagedBackup;
use crds::karmada_deployment::KarmadaRestoredFrom;
use crds::playbook_run::{RunPhase, StepPhase};
use crds::step::{Intent, Role, Step};
use crds::{ObjectExt, PlaybookRun, Reason};
use serde_json::{Value, json};

use super::super::restoring::under_way_on_machines;
use super::on_all::Told;
use super::part_run::parts_of_run;
use super::part_wanted::{Basis, PartWanted};
use super::state::PlaneState;
use super::wanted_parts::stopped_parts;
use crate::attempts::{self, RetryDecision};
use crate::cluster_machine::ClusterMachine;
use crate::etcd_restore::id_of_uid;
use crate::install_backup::VARIABLE;
use crate::run_request::{Attempt, RunRequest, Target};

/// One of these runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum RestoreRun {
    /// It lays the backup ready.
    Stage,
    /// It has etcd go on with the backup's data.
    Restore,
    /// It has etcd go on with the data of before.
    Undo,
}

impl RestoreRun {
    const fn intent(self) -> Intent {
        match self {
            Self::Stage => Intent::Stage,
            Self::Restore | Self::Undo => Intent::Restore,
        }
    }

    /// The step that no other one of these runs has.
    const fn step(self) -> Step {
        match self {
            Self::Stage => Step::StageBackup,
            Self::Restore => Step::RestoreEtcd,
            Self::Undo => Step::UndoRestore,
        }
    }

    /// What it is called, and why it does not go on.
    pub(super) const fn told(self) -> Told {
        match self {
            Self::Stage => {
                Told { title: "laying the backup ready", doing: Reason::Restoring, failed: Reason::StagingFailed }
            }
            Self::Restore => {
                Told { title: "setting etcd back", doing: Reason::Restoring, failed: Reason::RestoreInterrupted }
            }
            Self::Undo => {
                Told { title: "going back", doing: Reason::UndoingRestore, failed: Reason::RestoreInterrupted }
            }
        }
    }

    /// The machines that it works on: those with members of etcd, and, where services stop, all of them.
    pub(super) fn machines<'a>(self, state: &PlaneState<'a>) -> Vec<ClusterMachine<'a>> {
        let mut machines = state.etcd_machines();
        let is_there = |machine: &ClusterMachine<'_>| machines.iter().any(|one| one.uid() == machine.uid());
        let others: Vec<ClusterMachine<'a>> =
            state.working(Role::ControlPlane).filter(|machine| self != Self::Stage && !is_there(machine)).collect();
        machines.extend(others);
        machines
    }

    /// Whether the next attempt is due on this machine.
    pub(super) fn decision(self, state: &PlaneState<'_>, id: &str, machine: &ClusterMachine<'_>) -> RetryDecision {
        let tried = attempts::tried(&self.made(state, id), &[self.intent()], machine.uid());
        let policy = state.terms.limited(state.terms.asked_retries(machine.machine));
        attempts::retry_decision(&tried, &policy, state.now)
    }

    /// Those of this restore that there are.
    fn made<'a>(self, state: &PlaneState<'a>, id: &str) -> Vec<&'a PlaybookRun> {
        let is_one = |run: &&PlaybookRun| {
            run.spec.intent == self.intent() && run.spec.steps.contains(&self.step()) && id_in(run) == Some(id)
        };
        state.own_runs().filter(is_one).collect()
    }

    /// One that went well, and that nothing has undone.
    fn done<'a>(self, state: &PlaneState<'a>, id: &str) -> Option<&'a PlaybookRun> {
        let is_done =
            |run: &&PlaybookRun| run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Succeeded);
        let ended = |run: &&PlaybookRun| (attempts::ended_at(run), run.status.as_ref().map(|status| status.token));
        let last = |runs: Vec<&'a PlaybookRun>| runs.into_iter().filter(is_done).max_by_key(ended);
        let own = last(self.made(state, id))?;
        let undone = self.undoes().and_then(|other| last(other.made(state, id)));
        Some(own).filter(|own| undone.is_none_or(|undone| ended(&undone) < ended(own)))
    }

    /// The run that this one undoes.
    const fn undoes(self) -> Option<Self> {
        match self {
            Self::Stage => None,
            Self::Restore => Some(Self::Undo),
            Self::Undo => Some(Self::Restore),
        }
    }

    /// The run; none: it is not known what it needs.
    pub(super) fn make(
        self,
        state: &PlaneState<'_>,
        basis: &Basis<'_>,
        record: &KarmadaRestoredFrom,
        (targets, number): (&[Target<'_>], i32),
    ) -> Option<PlaybookRun> {
        let id = id_of(record);
        let mut vars = state.etcd_variables(&state.etcd_machines().iter().map(|one| one.machine).collect::<Vec<_>>());
        let stopping = if self == Self::Stage { Vec::new() } else { stopped_parts(state, basis)? };
        let stopping: Vec<&PartWanted> = stopping.iter().collect();
        let (parts, of_parts) = parts_of_run(&stopping, targets);
        vars.extend(of_parts);
        vars.insert(VARIABLE.to_owned(), self.variable(&id, record)?);
        let steps = match self {
            Self::Stage => vec![self.step()],
            Self::Restore | Self::Undo => vec![Step::KarmadaService, self.step()],
        };
        let name_of = Some(vec![self.step().name().to_owned(), id]);
        let mut run = state.request(RunRequest {
            name_of,
            vars,
            parts,
            ..RunRequest::new(self.intent(), steps, targets, Attempt::from_start(number))
        });
        run.spec.restore_ref = record.restore_ref.clone();
        let uid = record.restore_uid.as_deref();
        if let Some(restore) = state.restores.iter().find(|restore| Some(restore.uid()) == uid) {
            run.spec.timeout_seconds = restore.spec.timeout_seconds;
        }
        Some(run)
    }

    /// What its steps must know; none: nothing lies ready.
    fn variable(self, id: &str, record: &KarmadaRestoredFrom) -> Option<Value> {
        Some(match self {
            Self::Stage | Self::Undo => json!({ "id": id }),
            Self::Restore => {
                let staged = record.staged.as_ref()?;
                json!({ "id": id, "sha256": staged.sha256, "cluster_id": staged.cluster_id })
            }
        })
    }
}

/// Names the directories of the restore on the machines.
pub(super) fn id_of(record: &KarmadaRestoredFrom) -> String {
    id_of_uid(record.restore_uid.as_deref().unwrap_or_default())
}

fn id_in(run: &PlaybookRun) -> Option<&str> {
    run.spec.vars.get(VARIABLE)?["id"].as_str()
}

/// Whether a run is one of the restore that is under way, by which it is known how far that is.
pub(super) fn is_needed(state: &PlaneState<'_>, run: &PlaybookRun) -> bool {
    under_way_on_machines(state.object).is_some_and(|record| id_in(run) == Some(id_of(record).as_str()))
}

/// Whether there is nothing to swap back: no run of the restore that is under way has come to etcd, and none is at
/// work.
pub(super) fn is_untouched(state: &PlaneState<'_>) -> bool {
    let Some(record) = under_way_on_machines(state.object) else { return true };
    let has_come_to_it = |run: &PlaybookRun| {
        let steps = run.status.iter().flat_map(|status| &status.steps);
        let phase = steps.filter(|step| step.name == Step::RestoreEtcd).map(|step| step.phase).next();
        match phase {
            Some(StepPhase::Running | StepPhase::Succeeded | StepPhase::Failed) => true,
            Some(StepPhase::Pending | StepPhase::Skipped) | None => false,
        }
    };
    let runs = RestoreRun::Restore.made(state, &id_of(record));
    !runs.into_iter().any(|run| !attempts::is_over(run) || has_come_to_it(run))
}

/// Whether such a run of the restore that is under way went well.
pub(super) fn has(state: &PlaneState<'_>, run: RestoreRun) -> bool {
    under_way_on_machines(state.object).is_some_and(|record| run.done(state, &id_of(record)).is_some())
}

/// What lies ready on the machines for the restore that is under way.
pub(super) fn staged(state: &PlaneState<'_>) -> Option<StagedBackup> {
    let record = under_way_on_machines(state.object)?;
    RestoreRun::Stage.done(state, &id_of(record))?.status.as_ref()?.staged.clone()
}
