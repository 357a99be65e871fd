//! The estimators of members as the host has them: what is made there for a member is labelled with its name.

use crds::KarmadaDeployment;
use crds::names::label;
use serde_json::Value;

use super::component::Component;
use super::names::{component_name, is_made_for};
use crate::cluster_addon::health::{Health, health};

/// The flag of those that ask estimators.
const SERVICE_PREFIX_FLAG: &str = "--scheduler-estimator-service-prefix=";

/// The Deployments of estimators among objects of the host.
pub(super) fn deployments<'a>(object: &KarmadaDeployment, listed: &'a [Value]) -> impl Iterator<Item = &'a Value> {
    let is_one = |live: &&Value| live["kind"] == "Deployment" && member(live).is_some() && is_made_for(live, object);
    listed.iter().filter(is_one)
}

/// The member that an object was made for; none: it is the plane's own.
pub(super) fn member(live: &Value) -> Option<&str> {
    live["metadata"]["labels"][label::KARMADA_MEMBER].as_str()
}

/// Whether a component asks estimators as its Deployment has it, or has Pods left that do.
pub(super) fn are_asked(object: &KarmadaDeployment, listed: &[Value]) -> bool {
    let asks = |component: Component| {
        let name = component_name(object, component);
        let is_it = |live: &&Value| live["kind"] == "Deployment" && live["metadata"]["name"] == *name;
        listed.iter().find(is_it).is_some_and(|live| {
            let command = live["spec"]["template"]["spec"]["containers"][0]["command"].as_array();
            let is_flag = |flag: &Value| flag.as_str().is_some_and(|flag| flag.starts_with(SERVICE_PREFIX_FLAG));
            command.into_iter().flatten().any(is_flag) || matches!(health(live), Health::Progressing(_))
        })
    };
    [Component::Scheduler, Component::Descheduler].into_iter().any(asks)
}
