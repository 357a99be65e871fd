//! Agents of Pull members follow their plane: none is newer than it, and some at a time go on to its version.

use std::collections::BTreeSet;

use crds::KarmadaDeployment;
use crds::karmada_deployment::{SyncMode, UpgradeStep};
use serde_json::Value;

use super::action::{Act, Place};
use super::observed::{Member, Observed, Seen};
use super::target::{Target, Wish};
use crate::cluster_addon::State;
use crate::cluster_addon::health::{Health, health};
use crate::message::count;

/// The name of an agent's Deployment, and of its image.
pub(super) const AGENT: &str = "karmada-agent";
/// How many follow at once, where `spec.autoJoin` does not say.
pub(super) const AT_ONCE: usize = 5;

/// The version that agents are to have now, without `v`: that of a plane that is whole, until an upgrade of it has
/// come to them.
pub(super) fn version(object: &KarmadaDeployment) -> &str {
    let (status, wanted) = (object.status.as_ref(), object.spec.version.as_str());
    let upgrade = status.and_then(|status| status.upgrade.as_ref());
    let may_follow = upgrade.is_some_and(|upgrade| {
        upgrade.to == wanted && matches!(upgrade.step, Some(UpgradeStep::Agents | UpgradeStep::Verify))
    });
    let whole = status.and_then(|status| status.version.as_deref()).filter(|_| !may_follow);
    whole.unwrap_or(wanted)
}

/// Which members' agents may be brought to another version now.
pub(super) fn may_follow<'a>(observed: &Observed<'a>, targets: &'a [Target]) -> BTreeSet<&'a str> {
    let object = observed.object;
    let pull = targets.iter().filter(|target| is_pull(target));
    let agents: Vec<(&str, &Value)> = pull
        .filter_map(|target| Some((target.name.as_str(), agent(observed.seen.members.get(&target.name)?)?)))
        .collect();
    let at_it = agents.iter().filter(|(_, agent)| is_current(agent, object) && is_starting(agent));
    let most = object.spec.auto_join.as_ref().map_or(AT_ONCE, |auto| usize::try_from(auto.max_concurrent).unwrap_or(1));
    let free = most.saturating_sub(at_it.count());
    agents.iter().filter(|(_, agent)| !is_current(agent, object)).take(free).map(|(name, _)| *name).collect()
}

/// Whether this act brings an agent to another version than it has.
pub(super) fn is_follow_up(observed: &Observed<'_>, target: &Target, act: &Act) -> bool {
    let is_agent = matches!(act, Act::Apply { place: Place::Member, object, .. } if object.kind == "Deployment");
    let agent = observed.seen.members.get(&target.name).and_then(agent);
    is_agent && agent.is_some_and(|agent| !is_current(agent, observed.object))
}

/// What agents are waited for; none: those of all members that answer have followed, and work or have failed to, which
/// their members' rows say.
pub(in super::super) fn behind(object: &KarmadaDeployment, seen: Seen<'_>) -> Option<String> {
    let members = seen.members.values().filter(|member| is_pull(&member.target));
    let is_behind =
        |member: &&Member| agent(member).is_some_and(|agent| !is_current(agent, object) || is_starting(agent));
    let behind: Vec<&Member> = members.filter(is_behind).collect();
    let first = behind.first()?;
    let agents = count(behind.len(), "agent");
    Some(format!("waiting for {agents} of Pull members to follow and to work, the first in {}", first.target.name))
}

fn is_pull(target: &Target) -> bool {
    target.sync_mode == SyncMode::Pull && target.wish != Wish::Leave
}

/// The agent's Deployment, in a member that answers.
fn agent(member: &Member) -> Option<&Value> {
    let states = &member.contact.seen()?.states;
    states.iter().find_map(|state| match state {
        State::There { live, .. } if live["kind"] == "Deployment" && live["metadata"]["name"] == AGENT => Some(&**live),
        _ => None,
    })
}

/// Whether it is on its way. One that has failed takes no place of others.
fn is_starting(agent: &Value) -> bool {
    matches!(health(agent), Health::Progressing(_))
}

fn is_current(agent: &Value, object: &KarmadaDeployment) -> bool {
    let image = agent["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
    image.rsplit_once(':').is_some_and(|(_, tag)| tag.trim_start_matches('v') == version(object))
}
