//! Events about a changed status.

use crds::Reason;
use crds::names::condition;
use crds::{Host, HostStatus, conditions};

use crate::context::Context;

/// Reports that a Host has become, or is no longer, ready; and that it shares its machine-id.
pub(super) async fn changes(ctx: &Context, host: &Host, status: &HostStatus) {
    let clones = |status: Option<&HostStatus>| {
        let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        let found = conditions::find(conditions, condition::MACHINE_ID_UNIQUE);
        found.map(|found| (found.reason.clone(), found.message.clone()))
    };
    let told = clones(host.status.as_ref());
    if let Some((reason, message)) = clones(Some(status)).filter(|now| told.as_ref() != Some(now)) {
        ctx.events.warning(host, &reason, &message).await;
    }
    let ready = |status: Option<&HostStatus>| {
        let condition = status.and_then(|status| conditions::find(&status.conditions, condition::READY));
        condition.map(|condition| (condition.status.clone(), condition.reason.clone()))
    };
    let (before, after) = (ready(host.status.as_ref()), ready(Some(status)));
    let Some((state, reason)) = after.filter(|after| before.as_ref() != Some(after)) else {
        return;
    };
    let message = status.message.as_deref().unwrap_or_default();
    match state.as_str() {
        "True" => ctx.events.normal(host, &reason, message).await,
        _ if reason == Reason::WaitingForProbe => {}
        _ => ctx.events.warning(host, &reason, message).await,
    }
}
