//! Repair: what is done about the cluster's sick machines. Looks at the scene for [`remediation`], makes the runs and
//! deletions that it decides on, and tells every decision, also not to act.

mod approval;
mod seen;
mod told;
mod tried;

use crds::ClusterDeploymentStatus;
use crds::cluster_deployment::Repair;
use crds::conditions::Statement;
use crds::names::condition;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Step;
use super::scene::Scene;
use crate::remediation;
use approval::Approval;
use told::{entry, replaced, summary, told};

pub(super) use approval::is_for_repairs;
pub(super) use tried::needed;

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
    /// What is being done, as a clause; none: nothing.
    pub says: Option<String>,
}

/// Decides. Without the cluster's last token (`lock_known`) nothing begins.
pub(super) fn of(scene: &Scene<'_>, lock_known: bool) -> Repairs {
    let recorded = scene.deployment.status.as_ref();
    let calm_since = recorded.and_then(|status| status.calm_since.clone());
    if scene.installed.is_none() {
        return Repairs::default();
    }
    let ward = seen::ward(scene, calm_since.as_ref(), lock_known);
    if ward.patients.iter().all(|patient| patient.rule.is_none()) {
        return Repairs::default();
    }
    let round = remediation::decide(&ward);
    let begun = round.verdicts.iter().filter_map(|verdict| {
        let begin = verdict.begin.as_ref()?;
        let member = scene
            .live
            .iter()
            .find(|member| member.name() == verdict.machine)?;
        Some(tried::next(scene, member, begin))
    });
    let steps = begun.collect();
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
        look_again: round.look_again,
        entries,
        statement: Some(statement),
        calm_since: round.calm_since.map(Time),
        approval: round.too_many.then(|| Approval::of(scene).value),
        says,
    }
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
