//! The steps of an upgrade, in their order.
//!
//! Definitions come before the programs that read them. The webhook comes before all that write what it completes:
//! controllers that were newer than their webhook have lost what members ran. While a minor changes, nothing is
//! scheduled or carried to members: members go on running what they have.

use crds::karmada_deployment::{KarmadaComponentChange, UpgradeStep as Step};

use super::super::component::Component;

/// The components that are stopped while a minor changes.
pub(super) const STOPPED: [Component; 3] = [Component::Scheduler, Component::Descheduler, Component::ControllerManager];

/// All steps, in their order.
const ORDER: [Step; 17] = [
    Step::StopControllers,
    Step::Etcd,
    Step::APIServer,
    Step::KubeControllerManager,
    Step::Definitions,
    Step::RetireWebhooks,
    Step::Webhook,
    Step::AddWebhooks,
    Step::AggregatedAPIServer,
    Step::Estimators,
    Step::Scheduler,
    Step::Descheduler,
    Step::ControllerManager,
    Step::Search,
    Step::MetricsAdapter,
    Step::Agents,
    Step::Verify,
];

/// The step at which a component changes.
pub(super) const fn step(component: Component) -> Step {
    match component {
        Component::Etcd => Step::Etcd,
        Component::ApiServer => Step::APIServer,
        Component::KubeControllerManager => Step::KubeControllerManager,
        Component::AggregatedApiServer => Step::AggregatedAPIServer,
        Component::Webhook => Step::Webhook,
        Component::Scheduler => Step::Scheduler,
        Component::ControllerManager => Step::ControllerManager,
        Component::Descheduler => Step::Descheduler,
        Component::Search => Step::Search,
        Component::MetricsAdapter => Step::MetricsAdapter,
        Component::Estimator => Step::Estimators,
    }
}

/// What an upgrade consists of.
pub(super) struct Extent<'a> {
    /// The versions that change.
    pub changes: &'a [KarmadaComponentChange],
    /// Whether a minor version of Karmada's programs does.
    pub is_minor: bool,
    /// Whether `spec.version` does.
    pub moves_plane: bool,
    /// The components that are wanted.
    pub wanted: &'a [Component],
}

/// The steps that are taken. With a minor every one of Karmada's programs has its step, also one that has the version
/// already: it was stopped, or is new.
pub(super) fn route(extent: &Extent<'_>) -> Vec<Step> {
    let changes = |component: Component| extent.changes.iter().any(|change| change.name == component.name());
    let moves = |component: &Component| changes(*component) || (extent.is_minor && component.is_of_karmada());
    let components: Vec<Step> =
        extent.wanted.iter().filter(|component| moves(component)).map(|component| step(*component)).collect();
    let is_taken = |taken: &Step| match taken {
        Step::StopControllers => extent.is_minor,
        Step::Definitions | Step::Agents => extent.moves_plane,
        Step::RetireWebhooks | Step::AddWebhooks => extent.is_minor && changes(Component::Webhook),
        Step::Verify => true,
        other => components.contains(other),
    };
    ORDER.into_iter().filter(is_taken).collect()
}
