//! When the members of an etcd are defragmented, of a cluster or of a Karmada control plane on machines: by a schedule,
//! when a person asks for it, and where the quota is used up.

mod cause;
mod refusal;
mod wish;

use crds::Reason;
use crds::cluster_deployment::EtcdStatus;
use crds::conditions::Statement;
use crds::names::condition;
use serde_json::{Value, json};

use crate::cluster_machine::ClusterMachine;
use crate::departure::EtcdMembership;
use crate::message::cut;
use crate::moment::day_and_clock;

pub(crate) use cause::{Cause, Due, due};
pub(crate) use refusal::refused;
pub(crate) use wish::Wish;

/// Runs that are kept, the newest.
pub(crate) const KEEP: usize = 8;
/// The variable of its runs.
pub(crate) const VARIABLE: &str = "etcd_defragmentation";

impl Wish<'_> {
    /// From when on a member is defragmented. What a person asks for is done on every member.
    pub fn thresholds(&self, cause: &Cause) -> Value {
        let (percent, reclaim) = match (cause, self.schedule) {
            (Cause::Scheduled(_), Some(schedule)) => (schedule.min_fragmentation_percent, schedule.min_reclaim_mib),
            _ => (0, 0),
        };
        json!({ "min_fragmentation_percent": percent, "min_reclaim_mib": reclaim, "free_space": true })
    }

    /// How the last one went; none: there was none, and none is scheduled.
    pub fn last(&self, status: &EtcdStatus) -> Option<Statement> {
        match &status.defragmentation {
            Some(last) if last.succeeded => {
                let at = day_and_clock(last.finished_at.0);
                Some(stated(true, Reason::Defragmented, format!("run {} went well, at {at}", last.run)))
            }
            Some(last) => {
                let said = last.message.as_deref().unwrap_or("it did not say why");
                let message =
                    format!("run {}: {said}; correct it, and to have another one: {}", last.run, self.command());
                Some(stated(false, Reason::DefragmentationFailed, message))
            }
            None => {
                self.schedule?;
                let message = "scheduled, and none was due yet".to_owned();
                Some(stated(true, Reason::DefragmentationScheduled, message))
            }
        }
    }
}

/// What is said of it.
pub(crate) fn stated(status: bool, reason: Reason, message: String) -> Statement {
    Statement::new(condition::ETCD_DEFRAGMENTED, status, reason, cut(message))
}

/// The machine whose run does it: another one at each attempt, of those that are Ready, if any is.
pub(crate) fn executor_of(mut machines: Vec<ClusterMachine<'_>>, number: i32) -> Option<ClusterMachine<'_>> {
    if machines.iter().any(ClusterMachine::is_ready) {
        machines.retain(ClusterMachine::is_ready);
    }
    let index = usize::try_from(number).unwrap_or_default();
    machines.get(index % machines.len().max(1)).copied()
}

/// A machine that is not a healthy member, or will not be one much longer; `live`: the machines that stay.
pub(crate) fn member_in_the_way(membership: &EtcdMembership<'_>, live: &[ClusterMachine<'_>]) -> Option<String> {
    let role = membership.etcd_role()?;
    if let Some(leaving) = membership.leaving().find(|machine| membership.is_of_etcd(machine)) {
        return Some(format!("Machine {} leaves", leaving.metadata.name.as_deref().unwrap_or_default()));
    }
    if let Some(forgotten) = membership.forgotten_members().first() {
        return Some(format!("the member of {}, which was removed by force, is still in etcd", forgotten.host));
    }
    let sick = live.iter().find(|machine| machine.machine.spec.role == role && !machine.is_ready());
    sick.map(|machine| format!("{} is not Ready: {}", machine.title(), machine.says()))
}
