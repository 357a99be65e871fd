//! The versions that run.

use std::collections::BTreeMap;

use crds::karmada_deployment::KarmadaComponentChange;
use crds::names::annotation;
use crds::{KarmadaDeployment, ObjectExt};
use serde_json::Value;

use super::super::component::Component;
use super::super::estimators;
use super::super::names::{component_name, is_made_for};
use super::super::release::Release;

/// The versions of a plane's workloads, without `v`, out of all Deployments and StatefulSets of the host namespace: as
/// they were applied, whatever somebody has written into their images since. Of estimators the newest: one that is late
/// holds nothing up.
pub fn running_versions(object: &KarmadaDeployment, listed: &[Value]) -> BTreeMap<Component, String> {
    let version = |component: Component| {
        let kind = if component == Component::Etcd { "StatefulSet" } else { "Deployment" };
        let name = component_name(object, component);
        let is_it = |live: &&Value| live["kind"] == kind && live["metadata"]["name"] == name.as_str();
        let live = listed.iter().filter(|live| is_made_for(live, object)).find(is_it)?;
        Some((component, applied_version(live)?))
    };
    let estimators = estimators::deployments(object, listed).filter_map(applied_version);
    let newest =
        estimators.max_by_key(|version| version.split('.').map(str::parse).collect::<Result<Vec<u32>, _>>().ok());
    let newest = newest.map(|version| (Component::Estimator, version));
    Component::ALL.into_iter().filter_map(version).chain(newest).collect()
}

/// The version that a workload was applied in.
fn applied_version(live: &Value) -> Option<String> {
    let applied = live["metadata"]["annotations"][annotation::VERSION].as_str().map(str::to_owned);
    applied.or_else(|| image_version(live))
}

/// The version in the name of a workload's image, without `v`.
pub(in super::super) fn image_version(live: &Value) -> Option<String> {
    let image = live["spec"]["template"]["spec"]["containers"][0]["image"].as_str()?;
    let (_, tag) = image.rsplit_once(':')?;
    Some(tag.trim_start_matches('v').to_owned())
}

/// The components that are wanted in another version than they run in, in the order of the list of components.
pub(super) fn changes(
    object: &KarmadaDeployment,
    release: &Release,
    running: &BTreeMap<Component, String>,
) -> Vec<KarmadaComponentChange> {
    let change = |component: Component| {
        component.replicas(&object.spec)?;
        let (from, to) = (running.get(&component)?.clone(), component.version(&object.spec, release));
        let name = component.name().to_owned();
        (from != to).then_some(KarmadaComponentChange { name, from, to })
    };
    Component::every().filter_map(change).collect()
}

/// Whether a plane was made before: the last of the components that every plane has runs, or it was whole once.
pub(super) fn was_made(object: &KarmadaDeployment, running: &BTreeMap<Component, String>) -> bool {
    let status = object.status.as_ref();
    let is_known = status.is_some_and(|status| status.version.is_some() || status.upgrade.is_some());
    !object.is_deleting() && (is_known || running.contains_key(&Component::ControllerManager))
}
