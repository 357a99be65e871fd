//! Members' tokens that were made anew. Up to Karmada 1.18 programs that watch members go on with the token and the
//! authorities that they began with. They are restarted: once for many members, and seldom.

use crds::{KarmadaDeployment, Reason};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::component::Component;
use super::members::credential_changes;
use super::observed::Observed;
use crate::addon::Problem;
use crate::message::quote;
use crate::moment::clock;

/// The last minor version whose programs do not read a token again.
const KEEPS_TOKENS: (u32, u32) = (1, 18);
/// The programs that watch members.
const WATCHING: [Component; 3] = [Component::ControllerManager, Component::Search, Component::MetricsAdapter];
/// They are restarted so often at most, in seconds.
const PERIOD_SECONDS: i64 = 600;
/// So long after the last change others may follow, in seconds.
const SETTLED_SECONDS: i64 = 30;
/// So long the first change waits for others, in seconds.
const LONGEST_SECONDS: i64 = 120;

/// When they are restarted.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TokenRestart {
    /// When they were restarted last; this very moment: now.
    pub at: Option<Time>,
    /// What waits for it.
    pub problem: Option<Problem>,
}

/// When the Pods of a component were restarted last for a token.
pub(super) fn restarted_at(object: &KarmadaDeployment, component: Component) -> Option<Timestamp> {
    let at = object.status.as_ref()?.restarted_for_tokens_at.as_ref()?.0;
    (is_needed(object) && WATCHING.contains(&component)).then_some(at)
}

fn is_needed(object: &KarmadaDeployment) -> bool {
    object.spec.version.minor() <= KEEPS_TOKENS
}

/// Decides whether they are restarted now.
pub(super) fn token_restart(observed: &Observed<'_>) -> TokenRestart {
    let object = observed.object;
    let last = object.status.as_ref().and_then(|status| status.restarted_for_tokens_at.clone());
    let unchanged = TokenRestart { at: last.clone(), problem: None };
    let Some(plane) = observed.members.plane.seen().filter(|_| is_needed(object)) else { return unchanged };
    let mut changes = credential_changes(object, plane);
    changes.retain(|(_, at)| last.as_ref().is_none_or(|last| *at > last.0));
    let times = || changes.iter().map(|(_, at)| *at);
    let (Some(first), Some(newest)) = (times().min(), times().max()) else { return unchanged };
    let after = |time: Timestamp, seconds: i64| time.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(time);
    let settled = after(newest, SETTLED_SECONDS).min(after(first, LONGEST_SECONDS));
    let due = last.map_or(settled, |last| settled.max(after(last.0, PERIOD_SECONDS)));
    if due <= observed.now && !object.spec.paused {
        return TokenRestart { at: Some(Time(observed.now)), problem: None };
    }
    let names = changes.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let when = if object.spec.paused { "once spec.paused is false".to_owned() } else { format!("at {}", clock(due)) };
    let message = quote(format!(
        "credentials of members have changed ({names}): what watches members is restarted {when}, since Karmada {} does not read them again",
        object.spec.version.as_str()
    ));
    TokenRestart { problem: Some(Problem { reason: Reason::WaitingForRestart, message }), ..unchanged }
}
