//! What is said of an upgrade.

use crds::KarmadaDeployment;
use crds::karmada_deployment::{KarmadaUpgradeStatus, SyncMode, UpgradeStep};

use super::super::component::Component;
use crate::message::{count, cut};

/// `Upgrade 1.17.5 -> 1.18.2`, or `Upgrade karmada-scheduler 1.18.1 -> 1.18.2` where the plane stays as it is.
pub(super) fn title(record: &KarmadaUpgradeStatus) -> String {
    match (record.from == record.to, record.changes.as_slice()) {
        (true, [only]) => format!("Upgrade {} {} -> {}", only.name, only.from, only.to),
        (true, changes) => format!("Upgrade of {}", count(changes.len(), "component")),
        (false, _) => format!("Upgrade {} -> {}", record.from, record.to),
    }
}

/// All of it in one line.
pub(super) fn summary(object: &KarmadaDeployment, record: &KarmadaUpgradeStatus) -> String {
    let change = |change: &crds::karmada_deployment::KarmadaComponentChange| {
        format!("{} {} -> {}", change.name, change.from, change.to)
    };
    let changes: Vec<String> = record.changes.iter().map(change).collect();
    let stops = match record.steps.contains(&UpgradeStep::StopControllers) {
        true => {
            "; nothing is scheduled or propagated until karmada-scheduler and karmada-controller-manager have their new version, members go on running what they have"
        }
        false => "",
    };
    let members = object.status.as_ref().map(|status| status.members.as_slice()).unwrap_or_default();
    let pull = members.iter().filter(|member| member.sync_mode == SyncMode::Pull).count();
    let agents = match record.steps.contains(&UpgradeStep::Agents) && pull > 0 {
        true => format!("; then the agents of {}", count(pull, "member")),
        false => String::new(),
    };
    let title = title(record);
    cut(format!("{title}: one after the other {}{stops}{agents}", changes.join(", ")))
}

/// What a step is about.
pub(super) const fn step(step: UpgradeStep) -> &'static str {
    match step {
        UpgradeStep::StopControllers => {
            "stopping karmada-scheduler, karmada-descheduler and karmada-controller-manager"
        }
        UpgradeStep::Etcd => Component::Etcd.name(),
        UpgradeStep::APIServer => Component::ApiServer.name(),
        UpgradeStep::KubeControllerManager => Component::KubeControllerManager.name(),
        UpgradeStep::Definitions => "CustomResourceDefinitions",
        UpgradeStep::RetireWebhooks => "webhook configurations before karmada-webhook",
        UpgradeStep::Webhook => Component::Webhook.name(),
        UpgradeStep::AddWebhooks => "webhook configurations after karmada-webhook",
        UpgradeStep::AggregatedAPIServer => Component::AggregatedApiServer.name(),
        UpgradeStep::Estimators => "estimators of members",
        UpgradeStep::Scheduler => Component::Scheduler.name(),
        UpgradeStep::Descheduler => Component::Descheduler.name(),
        UpgradeStep::ControllerManager => Component::ControllerManager.name(),
        UpgradeStep::Search => Component::Search.name(),
        UpgradeStep::MetricsAdapter => Component::MetricsAdapter.name(),
        UpgradeStep::Agents => "agents of members",
        UpgradeStep::Verify => "the whole plane",
    }
}
