//! The status of a restore.

use crds::conditions::{self, Statement};
use crds::etcd_restore::RestorePhase;
use crds::kstatus::Standing;
use crds::names::condition;
use crds::playbook_run::{RunPhase, end};
use crds::references::LocalRef;
use crds::{EtcdRestoreStatus, ObjectExt, PlaybookRun, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::observed::Observed;
use super::runs::{self, Runs};
use super::safety::{Safety, safety};
use super::state::{Doing, State};
use crate::attempts::said;
use crate::message::cut;
use crate::moment::{clock, day_and_clock};

/// The status in this state.
pub(super) fn status(observed: &Observed<'_>, runs: &Runs<'_>, state: &State<'_>) -> EtcdRestoreStatus {
    let old = observed.restore.status.clone().unwrap_or_default();
    let told = Told::new(observed, runs, state);
    let message = cut(told.message);
    let ended = told.phase.end();
    let waits_for_a_person = [RestorePhase::AwaitingApproval, RestorePhase::Interrupted].contains(&told.phase);
    let conditions = conditions(observed, &told.phase, (told.reason, &message), waits_for_a_person);
    let now = Time(observed.now);
    let started = |run: &&PlaybookRun| run.status.as_ref()?.started_at.clone();
    EtcdRestoreStatus {
        observed_generation: observed.restore.metadata.generation,
        phase: Some(told.phase),
        message: Some(message),
        run_ref: told.run.map(|run| LocalRef::new(run.name())).or(old.run_ref),
        plane_backup: None,
        staged: runs.staging.iter().find_map(|run| runs::staged_by(run)).cloned().or(old.staged),
        safety_backup: taken_before(observed, runs).or(old.safety_backup),
        began_at: old.began_at.or(runs.restoring.first().and_then(started)),
        finished_at: old.finished_at.or(ended.map(|_| now.clone())),
        old_data_removed_at: old.old_data_removed_at,
        conditions,
    }
}

/// What the conditions say in this phase, for this reason.
pub(super) fn conditions(
    observed: &Observed<'_>,
    phase: &RestorePhase,
    (reason, message): (String, &str),
    waits_for_a_person: bool,
) -> Vec<Condition> {
    let old = observed.restore.status.as_ref().map(|status| status.conditions.clone());
    let (mut conditions, ended) = (old.unwrap_or_default(), phase.end());
    let mut statements = match ended {
        Some(phase) => end(phase, &reason, message),
        None => vec![Statement::new(condition::COMPLETE, false, reason, message.to_owned())],
    };
    let failed = ended == Some(RunPhase::Failed);
    if let Some(why) = statements.first().cloned() {
        let standing = Standing::new(ended == Some(RunPhase::Succeeded), waits_for_a_person || failed);
        standing.report(&why, &mut conditions, &mut statements);
    }
    let generation = observed.restore.metadata.generation;
    conditions::state(&conditions, &statements, generation, &Time(observed.now))
}

/// The backup of what was there, if it was begun before the control plane was stopped.
fn taken_before(observed: &Observed<'_>, runs: &Runs<'_>) -> Option<LocalRef> {
    let Safety::Taken(backup) = safety(observed) else { return None };
    let begun = &backup.status.as_ref()?.backup.as_ref()?.started_at;
    let stopped = runs.restoring.first().and_then(|run| run.status.as_ref()?.started_at.clone());
    stopped.is_none_or(|stopped| *begun <= stopped).then(|| LocalRef::new(backup.name()))
}

/// What is said of a state.
struct Told<'a> {
    phase: RestorePhase,
    reason: String,
    message: String,
    run: Option<&'a PlaybookRun>,
}

impl<'a> Told<'a> {
    fn new(observed: &Observed<'_>, runs: &Runs<'_>, state: &'a State<'a>) -> Self {
        let told = |phase, reason: &dyn ToString, message: String, run| Self {
            phase,
            reason: reason.to_string(),
            message,
            run,
        };
        match state {
            State::Waits(reason, message) => told(RestorePhase::Pending, reason, message.clone(), None),
            State::BacksUp(_, message) => told(RestorePhase::BackingUp, &Reason::BackingUp, message.clone(), None),
            State::Begins(run, doing) => {
                told(doing.phase(), &doing.reason(), format!("run {} begins", run.name()), Some(run))
            }
            State::Runs(run, doing) => {
                told(doing.phase(), &doing.reason(), format!("run {}: {}", run.name(), said(run)), Some(run))
            }
            State::Retries(run, at, doing) => {
                let message = format!("run {} failed: {}; tried again at {}", run.name(), said(run), clock(*at));
                told(doing.phase(), &doing.reason(), message, Some(run))
            }
            State::AwaitsApproval(message) => {
                told(RestorePhase::AwaitingApproval, &Reason::WaitingForApproval, message.clone(), None)
            }
            State::Interrupted(run, message) => {
                told(RestorePhase::Interrupted, &Reason::RestoreInterrupted, message.clone(), *run)
            }
            State::Restored(run, problem) => {
                told(RestorePhase::Succeeded, &Reason::Restored, restored(observed, runs, problem.as_deref()), *run)
            }
            State::Undone(run) => {
                let message = "the cluster has the data again that it had before".to_owned();
                told(RestorePhase::Undone, &Reason::RestoreUndone, message, Some(run))
            }
            State::GivenUp(reason, message) => told(RestorePhase::Failed, reason, message.clone(), None),
        }
    }
}

impl Doing {
    fn phase(self) -> RestorePhase {
        match self {
            Self::Staging => RestorePhase::Staging,
            Self::Restoring => RestorePhase::Restoring,
            Self::Restarting => RestorePhase::Restarting,
            Self::Undoing => RestorePhase::Undoing,
        }
    }

    fn reason(self) -> Reason {
        match self {
            Self::Staging => Reason::Staging,
            Self::Restoring => Reason::Restoring,
            Self::Restarting => Reason::RestartingServices,
            Self::Undoing => Reason::UndoingRestore,
        }
    }
}

/// What the cluster has now, and what is left to be done by a person.
fn restored(observed: &Observed<'_>, runs: &Runs<'_>, problem: Option<&str>) -> String {
    let staged = runs.staging.iter().find_map(|run| runs::staged_by(run));
    let mut said = staged.map_or_else(
        || "restored".to_owned(),
        |staged| {
            let at = day_and_clock(staged.taken_at.0);
            format!("restored to backup {} of {at}, revision {}", staged.backup, staged.revision)
        },
    );
    match problem {
        Some(problem) => said.push_str(&format!(
            "; not all machines were restarted over it (restart kubelet and containerd there): {problem}"
        )),
        None => {
            let kept = observed.restore.spec.keep_old_data_seconds;
            said.push_str(&format!("; the data of before stays on the machines for {kept} s"));
        }
    }
    let status = observed.restore.status.as_ref();
    let known = status.and_then(|status| status.safety_backup.clone());
    said.push_str(&way_back(observed, taken_before(observed, runs).or(known)));
    said
}

/// What is said at the end of the backup of what was there.
pub(super) fn way_back(observed: &Observed<'_>, taken: Option<LocalRef>) -> String {
    match (taken, safety(observed)) {
        (Some(taken), _) => format!(
            "; EtcdBackup {} has what was there: to return to it, make an EtcdRestore with source.backupRef {}",
            taken.name, taken.name
        ),
        (None, Safety::Missing(Some(why))) => format!("; no backup was made of what was there: {why}"),
        (None, _) => String::new(),
    }
}
