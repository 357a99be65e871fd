//! The part of etcd's members, on the machines that have one.

use crds::cluster_deployment::EtcdTopology;
use crds::configuration::EtcdSettings;
use crds::{ClusterDeployment, ObjectExt, names};
use serde_json::{Map, Value, json};

use super::{merge, versions};
use crate::components::pins::ETCD;

pub(super) fn wanted(deployment: &ClusterDeployment, set: Option<&str>) -> Option<Value> {
    let etcd = deployment.spec.configuration.as_ref()?.etcd.as_ref()?;
    has_members(deployment, set).then(|| merge::unless_empty(json!(etcd)))?
}

/// The version that the spec names.
pub(super) fn version(deployment: &ClusterDeployment, set: Option<&str>) -> Option<Value> {
    versions::wanted(deployment, &ETCD).filter(|_| has_members(deployment, set))
}

/// Whether the machines of a set have members of etcd.
fn has_members(deployment: &ClusterDeployment, set: Option<&str>) -> bool {
    let cluster = deployment.name();
    set.is_some_and(|set| match deployment.spec.etcd.topology {
        EtcdTopology::Stacked => set == names::control_plane_set(cluster),
        EtcdTopology::Dedicated => set == names::etcd_set(cluster),
        EtcdTopology::External => false,
    })
}

/// As etcd's environment.
pub(super) fn lower(deployment: &ClusterDeployment, _: Value) -> Value {
    let settings = deployment.spec.configuration.as_ref().and_then(|configuration| configuration.etcd.clone());
    let EtcdSettings { quota_backend_bytes, heartbeat_millis, election_millis, auto_compaction_hours, snapshot_count } =
        settings.unwrap_or_default();
    let text = |number: Option<i32>| number.map(|number| number.to_string());
    let variables = [
        ("ETCD_QUOTA_BACKEND_BYTES", quota_backend_bytes.map(|bytes| bytes.to_string())),
        ("ETCD_HEARTBEAT_INTERVAL", text(heartbeat_millis)),
        ("ETCD_ELECTION_TIMEOUT", text(election_millis)),
        ("ETCD_AUTO_COMPACTION_MODE", auto_compaction_hours.map(|_| "periodic".to_owned())),
        ("ETCD_AUTO_COMPACTION_RETENTION", auto_compaction_hours.map(|hours| format!("{hours}h"))),
        ("ETCD_SNAPSHOT_COUNT", text(snapshot_count)),
    ];
    let given = variables.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?))));
    Value::Object(given.collect::<Map<String, Value>>())
}
