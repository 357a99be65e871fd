//! Agents that have yet to come to a restored plane. Its Clusters say of their members what the backup has: that of a
//! Pull member is believed once its agent has renewed the member's Lease there. One that was a member before the plane
//! was set back has to come again.

use crds::karmada_deployment::{KarmadaMemberPhase, KarmadaMemberStatus, KarmadaRestoredFrom, SyncMode};
use crds::{KarmadaDeployment, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::super::restore::revision::is_written_since;
use super::super::restoring::record;
use super::agents::AGENT;
use super::cluster;
use super::context::Context;
use super::pull::AGENT_NAMESPACE;
use super::target::{Target, Wish, known};
use crate::addon::Problem;

/// After how long somebody should look at an agent that has not come, in seconds. One that restarts because it does not
/// reach its plane does so every five minutes at least.
const PATIENCE_SECONDS: i64 = 300;

/// Whether there is a Pull member of a restored plane that it has not reached yet, so that Leases are looked at.
pub fn agents_are_awaited(object: &KarmadaDeployment, targets: &[Target]) -> bool {
    let known = known(object);
    let Some(record) = record(object) else { return false };
    let has_come = |target: &Target| known.get(target.name.as_str()).is_some_and(|status| has_come(record, status));
    let may_be =
        |target: &Target| target.sync_mode == SyncMode::Pull && target.wish != Wish::Leave && !has_come(target);
    targets.iter().any(may_be)
}

/// Whether what the plane says of a member was found out by the plane itself.
pub(super) fn is_believed(context: &Context<'_>) -> bool {
    let Some(record) = of_restore(context) else { return true };
    lease(context).is_some_and(|lease| is_written_since(record, lease))
}

/// Whether all that is made for a member is there, and its agent alone is waited for.
pub(super) fn waits_for_agent(status: &KarmadaMemberStatus) -> bool {
    Reason::among(&status.reason, &[Reason::WaitingForAgent, Reason::AgentNotConnected])
}

/// What is said of a member whose agent is awaited: it was one when the backup was taken. `is_made`: whether nothing is
/// left to be applied for it. `why`: what its agent's Deployment says. None: nothing is awaited.
pub(super) fn awaited(context: &Context<'_>, is_made: bool, why: Option<String>) -> Option<Problem> {
    let was_member = lease(context).is_some() || context.cluster().is_some_and(cluster::is_ready);
    if is_believed(context) || !was_member {
        return None;
    }
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let message = format!("its agent has not come to the restored plane yet{why}");
    if !(is_made && is_late(context)) {
        let reason = if is_made { Reason::WaitingForAgent } else { Reason::JoiningMember };
        return Some(Problem { reason, message });
    }
    let endpoint = context.observed.object.status.as_ref().and_then(|status| status.endpoint.as_deref());
    let message = format!(
        "{message}; it must reach {}: see the log of Deployment {AGENT} in namespace {AGENT_NAMESPACE} of the member",
        endpoint.unwrap_or("the plane's API server")
    );
    Some(Problem { reason: Reason::AgentNotConnected, message })
}

/// The backup that the plane began with, as long as it may be all that the plane knows of this member.
fn of_restore<'a>(context: &Context<'a>) -> Option<&'a KarmadaRestoredFrom> {
    let has_come = |record: &KarmadaRestoredFrom| context.known.is_some_and(|known| has_come(record, known));
    let record = record(context.observed.object).filter(|_| context.target.sync_mode == SyncMode::Pull)?;
    (!has_come(record)).then_some(record)
}

/// Whether its agent was seen in the restored plane: it has joined; where that was before the plane was set back, it is
/// a member again since what acts was approved.
fn has_come(record: &KarmadaRestoredFrom, known: &KarmadaMemberStatus) -> bool {
    let Some(joined_at) = &known.joined_at else { return false };
    let is_since = |approved: &Time| {
        joined_at >= approved || (known.phase == KarmadaMemberPhase::Joined && known.since >= *approved)
    };
    let stays = record.restore_ref.is_none() || record.undone_at.is_some();
    stays || record.approved_at.as_ref().is_some_and(is_since)
}

/// What its agent renews, by the member's name.
fn lease<'a>(context: &Context<'a>) -> Option<&'a Value> {
    context.plane?.leases.iter().find(|lease| lease["metadata"]["name"] == context.target.name.as_str())
}

fn is_late(context: &Context<'_>) -> bool {
    let waits = context.known.filter(|known| waits_for_agent(known));
    waits.is_some_and(|known| context.observed.now.duration_since(known.since.0).as_secs() >= PATIENCE_SECONDS)
}
