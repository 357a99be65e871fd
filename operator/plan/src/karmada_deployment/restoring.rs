//! Whether a plane begins with a backup, how far that is, and what follows for each component. What is not known is not
//! started: a status that is lost is found out again.

use crds::KarmadaDeployment;
use crds::cluster_deployment::RestoreFrom;
use crds::karmada_deployment::{KarmadaRestoreStep as Step, KarmadaRestoredFrom};

use super::component::Component;
use super::observed::HostFacts;

/// What serves and admits. None of it writes to a member by itself.
const SERVING: [Component; 4] =
    [Component::Etcd, Component::ApiServer, Component::AggregatedApiServer, Component::Webhook];

/// What a plane that does not stand begins with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Restoring<'a> {
    /// The backup of `spec.restoreFrom`, whose keys are not there yet.
    Keys(&'a RestoreFrom),
    /// The backup that was settled on, at this step.
    Under(&'a KarmadaRestoredFrom, Step),
}

/// What it begins with; none: it begins empty, or stands.
pub(super) fn restoring<'a>(object: &'a KarmadaDeployment, facts: &HostFacts) -> Option<Restoring<'a>> {
    let from = object.spec.restore_from.as_ref()?;
    match record(object) {
        Some(record) => record.step.map(|step| Restoring::Under(record, past_data(step, facts))),
        // Only what was approved has ever started it.
        None => (!facts.versions.contains_key(&Component::ControllerManager)).then_some(Restoring::Keys(from)),
    }
}

/// Data is never made anew where etcd is there, whatever the status says.
fn past_data(step: Step, facts: &HostFacts) -> Step {
    if step == Step::Data && facts.versions.contains_key(&Component::Etcd) { Step::Serve } else { step }
}

/// The backup that was settled on.
pub(super) fn record(object: &KarmadaDeployment) -> Option<&KarmadaRestoredFrom> {
    object.status.as_ref()?.restored_from.as_ref()
}

/// Whether a component has yet to be started.
pub(super) fn is_later(object: &KarmadaDeployment, facts: &HostFacts, component: Component) -> bool {
    match restoring(object, facts) {
        None => false,
        Some(Restoring::Keys(_) | Restoring::Under(_, Step::Data)) => true,
        Some(Restoring::Under(_, Step::Serve | Step::Compare)) => !SERVING.contains(&component),
        Some(Restoring::Under(_, Step::Release)) => component == Component::KubeControllerManager,
        Some(Restoring::Under(_, Step::Collect)) => false,
    }
}

/// Whether the API server admits administrators only: what it serves has not been approved, and an agent that
/// reached it would carry that to its member.
pub(super) fn is_closed(object: &KarmadaDeployment) -> bool {
    record(object).and_then(|record| record.step).is_some_and(|step| step <= Step::Compare)
}

/// Whether objects are there that a restore makes on the host and removes again.
pub(super) fn is_wanted(object: &KarmadaDeployment) -> bool {
    object.spec.restore_from.is_some()
}
