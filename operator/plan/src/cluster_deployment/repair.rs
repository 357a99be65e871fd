//! Repair: what is done about the cluster's sick machines. Looks at the scene for [`remediation`], makes the runs and
//! deletions that it decides on, and tells every decision, also not to act.

mod approval;
mod looking;
mod seen;
mod told;
mod tried;

use crds::cluster_deployment::Repair;
use crds::conditions::Statement;
use crds::names::condition;
use crds::step::Role;
use crds::{ClusterDeploymentStatus, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Step;
use super::scene::Scene;
use crate::remediation::{self, Patient, Removals};
use approval::Approval;
use told::{entry, replaced, summary, told};

/// Entries that the status takes.
const MOST_TOLD: usize = 100;
/// Reason while nothing is known of the cluster's nodes.
const LOST: &str = "ClusterUnreachable";

/// What is done about sick machines.
#[derive(Default)]
pub(super) struct Repairs {
    /// Runs to make and Machines to delete.
    pub steps: Vec<Step>,
    /// When to look again.
    pub look_again: Option<Timestamp>,
    entries: Vec<Repair>,
    statement: Option<Statement>,
    calm_since: Option<Time>,
    approval: Option<String>,
    /// Whether healthy machines may be taken away.
    pub removals: Removals,
    /// What is being done, as a clause; none: nothing.
    pub says: Option<String>,
}

/// Decides. Without the cluster's last token (`lock_known`) nothing begins, and beside a run that `changes` the control
/// plane or etcd and begins now, nothing there.
pub(super) fn of(scene: &Scene<'_>, lock_known: bool, changes: Option<&PlaybookRun>) -> Repairs {
    let recorded = scene.deployment.status.as_ref();
    let calm_since = recorded.and_then(|status| status.calm_since.clone());
    if scene.installed.is_none() {
        return Repairs::default();
    }
    let ward = seen::ward(scene, calm_since.as_ref(), lock_known, changes);
    let removals = Removals::of(&ward);
    if ward.patients.iter().all(|patient| patient.rule.is_none()) {
        return Repairs {
            removals,
            ..Repairs::default()
        };
    }
    let of_etcd = |patient: &Patient| patient.role == Role::Etcd && patient.rule.is_some();
    let cared_for = ward.patients.iter().any(of_etcd);
    // Others ask the machines while it is not known what is lost.
    let known = lock_known && ward.unreachable.is_none() && ward.etcd.is_none();
    let looking = looking::of(scene, cared_for && known);
    let round = remediation::decide(&ward);
    let begun = round.verdicts.iter().filter_map(|verdict| {
        let begin = verdict.begin.as_ref()?;
        let member = scene
            .live
            .iter()
            .find(|member| member.name() == verdict.machine)?;
        Some(tried::next(scene, member, begin))
    });
    let steps = begun.chain(looking.steps).collect();
    let replaced = replaced(scene);
    let (statement, says) = summary(scene, &ward, &round, &replaced);
    let mut entries: Vec<Repair> = round.verdicts.iter().map(entry).chain(replaced).collect();
    entries.sort_by(|a, b| (a.action.is_none(), &a.machine).cmp(&(b.action.is_none(), &b.machine)));
    entries.truncate(MOST_TOLD);
    entries.sort_by(|a, b| a.machine.cmp(&b.machine));
    for entry in &mut entries {
        entry.since = Time(scene.observed.now);
        let before = told(scene, &entry.machine);
        if let Some(before) =
            before.filter(|before| before.reason == entry.reason && before.action == entry.action)
        {
            entry.since = before.since.clone();
        }
    }
    Repairs {
        steps,
        look_again: [round.look_again, looking.at].into_iter().flatten().min(),
        entries,
        statement: Some(statement),
        calm_since: round.calm_since.map(Time),
        approval: round.too_many.then(|| Approval::of(scene).value),
        removals,
        says,
    }
}

/// Names of the runs that decide what comes next, for machines that live.
pub(super) fn needed(scene: &Scene<'_>) -> Vec<String> {
    let mut needed = tried::needed(scene);
    needed.extend(looking::needed(scene));
    needed
}

impl Repairs {
    /// Puts what was decided into the status.
    pub fn tell(&self, status: &mut ClusterDeploymentStatus, statements: &mut Vec<Statement>) {
        status.repairs = self.entries.clone();
        status.calm_since = self.calm_since.clone();
        status.repair_approval = self.approval.clone();
        match &self.statement {
            Some(statement) => statements.push(statement.clone()),
            None => status
                .conditions
                .retain(|there| there.type_ != condition::REMEDIATION),
        }
    }
}
