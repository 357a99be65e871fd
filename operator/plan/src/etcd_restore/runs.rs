//! The runs of a restore: those there are, and the next one of each sort.

use std::collections::BTreeMap;

use crds::etcd_restore::StagedBackup;
use crds::playbook_run::{PlaybookRunSpec, RunPhase, StepPhase};
use crds::references::{LocalRef, controller_ref};
use crds::step::{Intent, Role, Step};
use crds::{ClusterDeployment, Machine, ObjectExt, PlaybookRun, Reason};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::lost::{Lost, lost};
use super::names::id_of;
use super::observed::Observed;
use super::state::Doing;
use crate::attempts::{self, backoff, next_number, owned_by};
use crate::formed_cluster::FormedCluster;
use crate::install_backup::VARIABLE;
use crate::moment::after;
use crate::owned_run::{hosts_of, owned_run};

/// The runs of a restore by what they do, each oldest first.
pub(super) struct Runs<'a> {
    pub staging: Vec<&'a PlaybookRun>,
    pub restoring: Vec<&'a PlaybookRun>,
    pub restarting: Vec<&'a PlaybookRun>,
    pub undoing: Vec<&'a PlaybookRun>,
    pub removing: Vec<&'a PlaybookRun>,
    /// The last of them, if it is gone.
    pub lost: Option<Lost>,
}

impl<'a> Runs<'a> {
    pub fn new(observed: &Observed<'a>) -> Self {
        Self {
            staging: with(observed, &Step::StageBackup),
            restoring: with(observed, &Step::RestoreEtcd),
            restarting: with(observed, &Step::RestartServices),
            undoing: with(observed, &Step::UndoRestore),
            removing: removing(observed),
            lost: observed
                .deployment
                .and_then(|deployment| lost(observed, |doing, attempt| name(observed, deployment, doing, attempt))),
        }
    }

    /// Whether a run was begun that changes what is there.
    pub fn has_begun(&self) -> bool {
        self.lost.is_some() || [&self.restoring, &self.restarting, &self.undoing].iter().any(|runs| !runs.is_empty())
    }

    /// Whether one was begun that puts the data of before back.
    pub fn has_begun_undo(&self) -> bool {
        !self.undoing.is_empty() || self.is_lost(Doing::Undoing)
    }

    /// How many attempts there were, those that are gone among them.
    pub fn tried(&self, doing: Doing) -> usize {
        let gone = self.lost.as_ref().filter(|lost| lost.doing == doing).map_or(0, |lost| lost.attempt + 1);
        next_number(self.that_do(doing)).max(gone)
    }

    /// How many of them were approved each: one whose executor never came up has touched nothing, and the next one has
    /// its approval.
    pub fn approved(&self, doing: Doing) -> usize {
        self.tried(doing).saturating_sub(self.never_started(doing))
    }

    /// When the next one begins after a last one whose executor never came up.
    pub fn begins_again(&self, doing: Doing) -> Option<Timestamp> {
        let last = self.that_do(doing).last().filter(|last| self.lost.is_none() && has_never_started(last))?;
        attempts::ended_at(last).map(|ended| after(ended, backoff(self.never_started(doing))))
    }

    fn never_started(&self, doing: Doing) -> usize {
        self.that_do(doing).iter().filter(|run| has_never_started(run)).count()
    }

    fn that_do(&self, doing: Doing) -> &[&'a PlaybookRun] {
        match doing {
            Doing::Staging => &self.staging,
            Doing::Restoring => &self.restoring,
            Doing::Restarting => &self.restarting,
            Doing::Undoing => &self.undoing,
        }
    }

    fn is_lost(&self, doing: Doing) -> bool {
        self.lost.as_ref().is_some_and(|lost| lost.doing == doing)
    }

    /// The run after which the control plane stood on the data of the backup, if it is there.
    pub fn released(&self) -> Option<&'a PlaybookRun> {
        let released = |run: &&PlaybookRun| phase_of(run, Step::ReleaseControlPlane) == Some(StepPhase::Succeeded);
        self.restoring.iter().copied().find(released)
    }

    /// Whether the control plane stood on that data: nothing is restarted before.
    pub fn is_released(&self) -> bool {
        self.released().is_some() || !self.restarting.is_empty() || self.is_lost(Doing::Restarting)
    }

    /// Whether an API server may have stood on that data. What a run did that is gone is not known.
    pub fn may_have_begun_release(&self) -> bool {
        self.restoring.len() < self.tried(Doing::Restoring) || self.has_begun_release()
    }

    fn has_begun_release(&self) -> bool {
        let begun = |run: &PlaybookRun| match phase_of(run, Step::ReleaseControlPlane) {
            Some(StepPhase::Running | StepPhase::Succeeded | StepPhase::Failed) => true,
            Some(StepPhase::Pending | StepPhase::Skipped) | None => false,
        };
        self.restoring.iter().copied().any(begun)
    }
}

/// Those that remove what it left on the machines, oldest first.
pub(super) fn removing<'a>(observed: &Observed<'a>) -> Vec<&'a PlaybookRun> {
    with(observed, &Step::RemoveOldData)
}

/// Its own with this step, oldest first.
fn with<'a>(observed: &Observed<'a>, step: &Step) -> Vec<&'a PlaybookRun> {
    owned_by(observed.runs, observed.restore.uid(), |run| run.spec.steps.contains(step))
}

fn phase_of(run: &PlaybookRun, step: Step) -> Option<StepPhase> {
    let status = run.status.as_ref()?;
    status.steps.iter().find(|told| told.name == step).map(|told| told.phase)
}

/// Whether a run ended before its executor did anything.
fn has_never_started(run: &PlaybookRun) -> bool {
    let reason = run.status.as_ref().and_then(|status| status.end_reason());
    reason.is_some_and(|reason| reason == Reason::NotStarted)
}

/// Whether a run ended with all of its steps done.
pub(super) fn has_succeeded(run: &PlaybookRun) -> bool {
    run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Succeeded)
}

/// What lies ready, if a run has brought it.
pub(super) fn staged_by(run: &PlaybookRun) -> Option<&StagedBackup> {
    run.status.as_ref()?.staged.as_ref()
}

/// The Hosts of the members of etcd.
pub(super) fn members(observed: &Observed<'_>, deployment: &ClusterDeployment) -> Vec<String> {
    let role = deployment.spec.etcd.topology.role();
    hosts_of(observed.machines, |machine| Some(machine.spec.role) == role)
}

/// Brings the backup to the machines with members.
pub(super) fn stage(observed: &Observed<'_>, deployment: &ClusterDeployment, tried: usize) -> PlaybookRun {
    let (steps, hosts) = (vec![Step::StageBackup], members(observed, deployment));
    next(
        observed,
        deployment.into(),
        purpose(Doing::Staging),
        tried,
        json!({ "id": id_of(observed.restore) }),
        PlaybookRunSpec::new(Intent::Stage, steps, hosts),
    )
}

/// Replaces the data of all members, with no API server beside it; a later attempt goes on where the one before ended.
pub(super) fn restore(
    observed: &Observed<'_>,
    deployment: &ClusterDeployment,
    staged: &StagedBackup,
    tried: usize,
) -> PlaybookRun {
    let steps = vec![Step::HoldControlPlane, Step::RestoreEtcd, Step::ReleaseControlPlane];
    let vars = json!({
        "id": id_of(observed.restore), "sha256": staged.sha256, "cluster_id": staged.cluster_id, "nodes": nodes(observed),
    });
    let mut spec = PlaybookRunSpec::new(Intent::Restore, steps, of_etcd_and_api(observed));
    spec.resume = tried > 0;
    next(observed, deployment.into(), purpose(Doing::Restoring), tried, vars, spec)
}

/// Restarts what holds in memory what is no more, on all machines, and proves that the cluster works.
pub(super) fn restart(observed: &Observed<'_>, deployment: &ClusterDeployment, tried: usize) -> PlaybookRun {
    let steps = vec![Step::RestartServices, Step::Network, Step::PostInstall];
    let hosts = hosts_of(observed.machines, |machine| machine.spec.role != Role::Etcd);
    next(
        observed,
        deployment.into(),
        purpose(Doing::Restarting),
        tried,
        json!({ "id": id_of(observed.restore) }),
        PlaybookRunSpec::new(Intent::Restore, steps, hosts),
    )
}

/// Puts the data of before back.
pub(super) fn undo(observed: &Observed<'_>, deployment: &ClusterDeployment, tried: usize) -> PlaybookRun {
    let steps = vec![Step::HoldControlPlane, Step::UndoRestore, Step::ReleaseControlPlane];
    let mut spec = PlaybookRunSpec::new(Intent::Restore, steps, of_etcd_and_api(observed));
    spec.resume = tried > 0;
    next(observed, deployment.into(), purpose(Doing::Undoing), tried, json!({ "id": id_of(observed.restore) }), spec)
}

/// Removes what the restore left on the machines.
pub(super) fn remove(observed: &Observed<'_>, formed: FormedCluster<'_>, tried: usize) -> PlaybookRun {
    let spec = PlaybookRunSpec::new(Intent::Restore, vec![Step::RemoveOldData], of_etcd_and_api(observed));
    next(observed, formed, "remove", tried, json!({ "id": id_of(observed.restore) }), spec)
}

/// The name of the run of an attempt after the approval.
fn name(observed: &Observed<'_>, deployment: &ClusterDeployment, doing: Doing, attempt: usize) -> String {
    let spec = PlaybookRunSpec::new(Intent::Restore, Vec::new(), Vec::new());
    next(observed, deployment.into(), purpose(doing), attempt, Value::Null, spec).name().to_owned()
}

/// What the name of a run says that it is for.
fn purpose(doing: Doing) -> &'static str {
    match doing {
        Doing::Staging => "",
        Doing::Restoring => "restore",
        Doing::Restarting => "restart",
        Doing::Undoing => "undo",
    }
}

/// The next run for a purpose, after so many.
fn next(
    observed: &Observed<'_>,
    formed: FormedCluster<'_>,
    purpose: &str,
    tried: usize,
    vars: Value,
    spec: PlaybookRunSpec,
) -> PlaybookRun {
    let restore = observed.restore;
    let spec = PlaybookRunSpec {
        restore_ref: Some(LocalRef::new(restore.name())),
        timeout_seconds: restore.spec.timeout_seconds,
        vars: BTreeMap::from([(VARIABLE.to_owned(), vars)]),
        ..spec
    };
    owned_run((restore, controller_ref(restore)), Some(formed), purpose, tried, spec)
}

/// The control planes, and the machines of a dedicated etcd.
fn of_etcd_and_api(observed: &Observed<'_>) -> Vec<String> {
    hosts_of(observed.machines, |machine| machine.spec.role != Role::Worker)
}

/// Names of the Nodes that belong to a machine of the cluster, whatever becomes of it.
fn nodes<'a>(observed: &Observed<'a>) -> Vec<&'a str> {
    let node = |machine: &&'a Machine| {
        let known = machine.status.as_ref().and_then(|status| status.node_name.as_deref());
        known.or(machine.spec.host_ref.as_ref().map(|host| host.name.as_str()))
    };
    let mut names: Vec<&str> = observed.machines.iter().filter_map(node).collect();
    names.sort_unstable();
    names
}
