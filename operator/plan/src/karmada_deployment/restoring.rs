//! Whether a plane begins with a backup or is set back to one, how far that is, and what follows for each component.
//! What is not known is not started: a status that is lost is found out again.

use std::collections::BTreeMap;

use crds::KarmadaDeployment;
use crds::cluster_deployment::RestoreFrom;
use crds::karmada_deployment::{KarmadaRestoreStep as Step, KarmadaRestoredFrom};

use super::component::Component;

/// The version that each component runs in, as `HostFacts` has it.
type Versions = BTreeMap<Component, String>;

/// What serves and admits. None of it writes to a member by itself.
const SERVING: [Component; 4] =
    [Component::Etcd, Component::ApiServer, Component::AggregatedApiServer, Component::Webhook];

/// What a plane that does not stand begins with, or one that does is set back to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Restoring<'a> {
    /// The backup of `spec.restoreFrom`, whose keys are not there yet.
    Keys(&'a RestoreFrom),
    /// The backup that was settled on, at this step.
    Under(&'a KarmadaRestoredFrom, Step),
}

/// What it begins with; none: it begins empty, or stands.
pub(super) fn restoring<'a>(object: &'a KarmadaDeployment, versions: &Versions) -> Option<Restoring<'a>> {
    match record(object) {
        Some(record) => record.step.map(|step| Restoring::Under(record, past_data(step, record, object, versions))),
        None => {
            let from = object.spec.restore_from.as_ref()?;
            // Only what was approved has ever started it.
            (!versions.contains_key(&Component::ControllerManager)).then_some(Restoring::Keys(from))
        }
    }
}

/// Data is never made anew where etcd is there, whatever the status says. Of machines an install that has failed has
/// brought it to some, and is repeated on all of them. Of a plane that is set back etcd may be the one of before.
fn past_data(step: Step, record: &KarmadaRestoredFrom, object: &KarmadaDeployment, versions: &Versions) -> Step {
    let is_new = object.spec.binary.is_none() && record.restore_ref.is_none();
    let is_there = is_new && versions.contains_key(&Component::Etcd);
    if step == Step::Data && is_there { Step::Serve } else { step }
}

/// The backup that was settled on.
pub(super) fn record(object: &KarmadaDeployment) -> Option<&KarmadaRestoredFrom> {
    object.status.as_ref()?.restored_from.as_ref()
}

/// Whether a component has yet to be started.
pub(super) fn is_later(object: &KarmadaDeployment, versions: &Versions, component: Component) -> bool {
    match restoring(object, versions) {
        None => false,
        Some(Restoring::Keys(_) | Restoring::Under(_, Step::Stop | Step::Data)) => true,
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
    object.spec.restore_from.is_some() || record(object).is_some()
}
