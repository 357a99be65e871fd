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

/// Whether an EtcdRestore sets a plane on machines back by this record: it has no volumes.
pub(crate) fn is_in_place_on_machines(record: &KarmadaRestoredFrom) -> bool {
    record.restore_ref.is_some() && record.claims.is_none()
}

/// Whether a plane that is set back is on its way back to the data of before.
pub(super) fn is_turned(record: &KarmadaRestoredFrom) -> bool {
    record.undo_began_at.is_some()
}

/// The record by which a plane on machines is being set back; none: it is not.
pub(super) fn under_way_on_machines(object: &KarmadaDeployment) -> Option<&KarmadaRestoredFrom> {
    record(object).filter(|record| record.step.is_some() && is_in_place_on_machines(record))
}

/// Whether a component has yet to be started.
pub(super) fn is_later(object: &KarmadaDeployment, versions: &Versions, component: Component) -> bool {
    match restoring(object, versions) {
        None | Some(Restoring::Under(_, Step::Stage)) => false,
        Some(Restoring::Keys(_) | Restoring::Under(_, Step::Stop | Step::Data)) => true,
        Some(Restoring::Under(_, Step::Serve | Step::Compare)) => !SERVING.contains(&component),
        Some(Restoring::Under(_, Step::Release)) => component == Component::KubeControllerManager,
        Some(Restoring::Under(_, Step::Collect)) => false,
    }
}

/// Whether the API server admits administrators only: what it serves has not been approved, and an agent that
/// reached it would carry that to its member.
pub(super) fn is_closed(object: &KarmadaDeployment) -> bool {
    let step = record(object).and_then(|record| record.step);
    step.is_some_and(|step| step != Step::Stage && step <= Step::Compare)
}

/// What tells a plane that was set back in its place, or went back, from the one before; none: it was not, or lets
/// nobody in yet.
pub(super) fn set_back_as(object: &KarmadaDeployment) -> Option<&str> {
    let record = record(object).filter(|record| record.step != Some(Step::Stage) && !is_closed(object))?;
    record.claims.as_deref().or(record.restore_uid.as_deref())
}

/// Whether objects are there that a restore makes on the host and removes again.
pub(super) fn is_wanted(object: &KarmadaDeployment) -> bool {
    object.spec.restore_from.is_some() || record(object).is_some()
}
