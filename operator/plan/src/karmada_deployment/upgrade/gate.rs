//! Whether a step is done: all that may be applied by then is applied and works, and nothing that was propagated is
//! missing.

use crds::Reason;
use crds::karmada_deployment::UpgradeStep;

use super::super::component::Component;
use super::super::contact::Contact;
use super::super::members::{agents, estimators};
use super::preflight::Scene;
use super::state::Upgrade;
use super::{approval, route, text};
use crate::addon::Problem;

/// Why the step goes on; none: it is done.
pub(super) fn find(scene: &Scene<'_>, upgrade: &Upgrade, step: UpgradeStep) -> Option<Problem> {
    let open = scene.reports.iter().find_map(|report| report.waits_for());
    open.or_else(|| deeper(scene, step)).or_else(|| lost(scene, upgrade))
}

/// What Pods do not say of themselves: of what the step has brought to its version, and in the end of all.
fn deeper(scene: &Scene<'_>, step: UpgradeStep) -> Option<Problem> {
    let observed = scene.observed;
    let starting = |message: String| Problem { reason: Reason::ComponentStarting, message };
    match step {
        UpgradeStep::Agents => {
            let message = agents::behind(observed.object, observed.members)?;
            Some(Problem { reason: Reason::Upgrading, message })
        }
        UpgradeStep::Estimators => {
            let message = estimators::behind(&observed.of_members())?;
            Some(Problem { reason: Reason::Upgrading, message })
        }
        UpgradeStep::Verify => scene.silent.map(|problem| starting(problem.message.clone())),
        UpgradeStep::Webhook | UpgradeStep::AddWebhooks => {
            let refused = observed.plane.seen()?.policy_refused.as_ref()?;
            Some(starting(format!("a PropagationPolicy would be refused: {refused}")))
        }
        // Who has just been started takes a while to lead.
        _ => {
            let component = Component::ALL.into_iter().find(|component| route::step(*component) == step)?;
            let mut leaders = observed.plane.seen()?.leaders.iter();
            let leader = leaders.find(|leader| leader.name == component.name() && !leader.healthy)?;
            let why = leader.message.as_deref().unwrap_or("its leader is silent");
            Some(starting(format!("{}: {why}", leader.name)))
        }
    }
}

/// Nobody but people deletes Works during an upgrade: fewer of them may mean that members lose what they run.
fn lost(scene: &Scene<'_>, upgrade: &Upgrade) -> Option<Problem> {
    let Contact::Made(plane) = scene.observed.plane else { return None };
    let (object, record) = (scene.observed.object, &upgrade.record);
    let (before, now) = (record.works?, plane.propagated.as_ref()?.works);
    let missing = before - i64::try_from(now).unwrap_or(i64::MAX);
    let digest = approval::digest_of_loss(object, record, now);
    (missing > 0 && !approval::is_given(object, &digest)).then(|| Problem {
        reason: Reason::WorksMissing,
        message: format!(
            "{}: {before} Works when it began, {now} now: see what the plane's audit log says of Works; if they were meant to go: {}",
            text::title(record),
            approval::command(object, &digest)
        ),
    })
}
