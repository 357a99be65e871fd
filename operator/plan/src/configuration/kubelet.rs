//! The kubelet's part: what the cluster says, and over it what the machine's set says.

use crds::configuration::KubeletSettings;
use crds::{ClusterDeployment, ObjectExt, names};
use serde_json::{Map, Value, json};

use super::merge;

/// The most Pods of a kubelet to which nobody says anything else.
const MAX_PODS: i64 = 110;
/// What only Pods have that come later.
const POLICIES: [&str; 2] = ["cpuManagerPolicy", "topologyManagerPolicy"];

/// All that Pods outlive.
pub(super) fn wanted(deployment: &ClusterDeployment, set: Option<&str>) -> Option<Value> {
    let mut fields = merged(deployment, set);
    fields.retain(|name, _| name != "maxPods" && !POLICIES.contains(&name.as_str()));
    merge::unless_empty(Value::Object(fields))
}

pub(super) fn max_pods(deployment: &ClusterDeployment, set: Option<&str>) -> Option<Value> {
    merged(deployment, set).remove("maxPods")
}

pub(super) fn lower_max_pods(_: &ClusterDeployment, max_pods: Value) -> Value {
    json!({ "maxPods": max_pods })
}

/// A kubelet that starts refuses the Pods that are too many.
pub(super) fn has_fewer_pods(has: Option<&str>, wanted: Option<&str>) -> bool {
    let [has, wanted] = [has, wanted].map(|number| number.and_then(|number| number.parse().ok()).unwrap_or(MAX_PODS));
    wanted < has
}

pub(super) fn policies(deployment: &ClusterDeployment, set: Option<&str>) -> Option<Value> {
    let mut fields = merged(deployment, set);
    fields.retain(|name, _| POLICIES.contains(&name.as_str()));
    merge::unless_empty(Value::Object(fields))
}

/// What the cluster says, and over it what the set says.
fn merged(deployment: &ClusterDeployment, set: Option<&str>) -> Map<String, Value> {
    let of_cluster = deployment.spec.configuration.as_ref().and_then(|configuration| configuration.kubelet.as_ref());
    let mut wanted = json!(of_cluster.cloned().unwrap_or_default());
    if let Some(of_set) = set.and_then(|set| of_set(deployment, set)) {
        // How many images are pulled at once is said with whether they are: both are the set's, or the cluster's.
        if of_set.serialize_image_pulls.is_some()
            && let Some(wanted) = wanted.as_object_mut()
        {
            wanted.remove("maxParallelImagePulls");
        }
        merge::over(&mut wanted, json!(of_set));
    }
    if let Value::Object(fields) = wanted { fields } else { Map::new() }
}

/// What the MachineSet of this name says.
fn of_set<'a>(deployment: &'a ClusterDeployment, set: &str) -> Option<&'a KubeletSettings> {
    if set == names::control_plane_set(deployment.name()) {
        return deployment.spec.control_plane.kubelet.as_ref();
    }
    deployment.workers_of(set)?.kubelet.as_ref()
}

/// As KubeletConfiguration has it.
pub(super) fn lower(_: &ClusterDeployment, wanted: Value) -> Value {
    let Value::Object(fields) = wanted else { return wanted };
    let mut lowered: Map<String, Value> =
        fields.into_iter().map(|(name, value)| in_kubelets_words(name, value)).collect();
    if lowered.contains_key("evictionHard") {
        // A threshold that is given otherwise takes the defaults of all others along.
        lowered.insert("mergeDefaultEvictionSettings".into(), json!(true));
    }
    Value::Object(lowered)
}

/// A number of seconds is a duration there.
fn in_kubelets_words(name: String, value: Value) -> (String, Value) {
    match name.strip_suffix("Seconds") {
        Some(duration) => (duration.to_owned(), json!(format!("{value}s"))),
        None => (name, value),
    }
}
