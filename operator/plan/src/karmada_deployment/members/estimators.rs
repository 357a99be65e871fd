//! Estimators of all members: how each is, and how many are rolled at once.

use serde_json::Value;

use super::action::{Act, Place};
use super::agents::AT_ONCE;
use super::estimator::is_wanted;
use super::observed::{EstimatorDue, Member, Observed};
use crate::cluster_addon::health::{Health, health};
use crate::cluster_addon::{State, Trial};
use crate::message::count;

/// How many estimators may be rolled now. One that starts in a member that does not answer takes no place of others.
pub(super) fn may_roll(observed: &Observed<'_>) -> usize {
    let auto_join = observed.object.spec.auto_join.as_ref();
    let most = auto_join.map_or(AT_ONCE, |auto| usize::try_from(auto.max_concurrent).unwrap_or(1));
    let members = observed.seen.members.values();
    most.saturating_sub(members.filter(|member| is_starting(member)).count())
}

/// Whether this act rolls an estimator that is there.
pub(super) fn is_roll(act: &Act) -> bool {
    matches!(act, Act::Apply { place: Place::Host, object, force: true, .. } if object.kind == "Deployment")
}

/// What estimators are waited for in their step of an upgrade; none: those that can have followed, and those whose
/// members answer work or have failed to, which their members' rows say.
pub(in super::super) fn behind(observed: &Observed<'_>) -> Option<String> {
    let is_behind = |member: &&Member| {
        let follows = matches!(workload(member), Some(State::There { live, trial: Trial::Differs })
            if !is_current(live, observed.seen.estimators));
        is_wanted(observed.object, &member.target) && member.failure.is_none() && (follows || is_starting(member))
    };
    let behind: Vec<&Member> = observed.seen.members.values().filter(is_behind).collect();
    let first = behind.first()?;
    let estimators = count(behind.len(), "estimator");
    Some(format!("waiting for {estimators} to follow and to work, the first is that of {}", first.target.name))
}

/// What there is of a member's Deployment on the host.
pub(super) fn workload(member: &Member) -> Option<&State> {
    // It is the last of them.
    member.on_host.as_ref()?.last()
}

/// Whether it is on its way, in a member that answers.
fn is_starting(member: &Member) -> bool {
    let Some(State::There { live, .. }) = workload(member) else { return false };
    member.contact.seen().is_some() && matches!(health(live), Health::Progressing(_))
}

fn is_current(live: &Value, due: &EstimatorDue) -> bool {
    match due {
        EstimatorDue::Now(version) | EstimatorDue::Kept(version) => {
            live["metadata"]["annotations"][crds::names::annotation::VERSION] == version.as_str()
        }
        EstimatorDue::Later => true,
    }
}
