//! A plane that is set back stops: first what acts, so that nothing of it sees the API server go; then what serves, so
//! that nothing is written beside the backup's data; etcd last. Estimators stay: they answer, and ask members alone.

use crds::KarmadaDeployment;
use serde_json::Value;

use super::super::action::Action;
use super::super::component::Component;
use super::super::contact::Contact;
use super::super::estimators;
use super::super::names::{component_name, is_made_for};
use super::super::observed::Observed;
use super::super::place::{Place, object_of};
use super::super::pod::is_of;
use super::super::removal::{WORKLOADS, delete};
use super::gate::restoring;
use crate::addon::Problem;
use crate::message::count;

/// What serves beside etcd.
const SERVES: [Component; 3] = [Component::ApiServer, Component::AggregatedApiServer, Component::Webhook];

/// What is still to stop, and what is deleted for that; none: nothing of the plane runs.
pub(super) fn stop(observed: &Observed<'_>) -> Option<(Problem, Vec<Action>)> {
    let Contact::Made(host) = observed.host else {
        return Some((restoring("looking at the host".to_owned()), Vec::new()));
    };
    let acts = |component: &Component| *component != Component::Etcd && !SERVES.contains(component);
    let waves: [(&str, Vec<Component>); 3] = [
        ("what acts", Component::ALL.into_iter().filter(acts).collect()),
        ("what serves", SERVES.to_vec()),
        ("etcd", vec![Component::Etcd]),
    ];
    waves.into_iter().find_map(|(what, components)| {
        let is_one =
            |live: &&Value| components.iter().any(|component| is_workload_of(live, observed.object, *component));
        let workloads: Vec<&Value> = host.listed.iter().filter(is_one).collect();
        let is_pod = |pod: &&Value| components.iter().any(|component| is_of(pod, observed.object, *component));
        let pods: Vec<&Value> = host.pods.iter().filter(is_pod).collect();
        let last = pods.last().or(workloads.last()).map(|live| object_of(live).name)?;
        let left = match pods.len() {
            0 => String::new(),
            left => format!(", {} left to end", count(left, "Pod")),
        };
        let actions = workloads.into_iter().filter_map(|live| delete(Place::Host, live)).collect();
        Some((restoring(format!("stopping {what}: {last}{left}")), actions))
    })
}

/// Whether it runs the Pods of a component.
fn is_workload_of(live: &Value, object: &KarmadaDeployment, component: Component) -> bool {
    let runs_pods = WORKLOADS.iter().any(|(_, _, kind)| live["kind"] == *kind);
    let is_own = is_made_for(live, object) && estimators::member(live).is_none();
    runs_pods && is_own && live["metadata"]["name"] == component_name(object, component)
}
