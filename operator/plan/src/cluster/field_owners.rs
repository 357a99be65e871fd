//! Who owns the labels and annotations of a Node, and who cordoned it, as its `managedFields` say.

use std::collections::{BTreeMap, BTreeSet};

use crds::names::{NODE_DRAIN_FIELD_MANAGER, NODE_FIELD_MANAGER};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::Value;

use super::kept::{MOST_ENTRIES, short};

/// A field manager, and how it came to own a field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldOwner {
    /// Its name, e.g. `kubectl-label`.
    pub manager: String,
    /// By server-side apply: it wants the field to stay as it is. Otherwise by an update, once.
    pub applies: bool,
}

/// Owners by key.
pub type Owners = BTreeMap<String, BTreeSet<FieldOwner>>;

/// Who owns fields of a Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldOwners {
    /// Of labels, by key.
    pub labels: Owners,
    /// Of annotations, by key; only those that somebody applies.
    pub annotations: Owners,
    /// When the operator last gave it labels, annotations or taints, by the clock of the cluster's API server.
    pub written_at: Option<Timestamp>,
    /// The operator applies that it is cordoned; others may want it, too.
    pub drains: bool,
}

impl FieldOwners {
    /// As the entries of `metadata.managedFields` say.
    pub fn from_entries(entries: Vec<ManagedFieldsEntry>) -> Self {
        let mut owners = Self::default();
        for entry in entries.into_iter().take(MOST_ENTRIES) {
            let owner = FieldOwner {
                manager: short(entry.manager.unwrap_or_default()),
                applies: entry.operation.as_deref() == Some("Apply"),
            };
            if owner.manager == NODE_FIELD_MANAGER {
                let at = entry.time.map(|time| time.0);
                owners.written_at = owners.written_at.max(at);
            }
            let fields = entry.fields_v1.map(|fields| fields.0).unwrap_or_default();
            owners.drains |= owner.applies
                && owner.manager == NODE_DRAIN_FIELD_MANAGER
                && !fields["f:spec"]["f:unschedulable"].is_null();
            let metadata = &fields["f:metadata"];
            add(&mut owners.labels, &metadata["f:labels"], &owner);
            add(&mut owners.annotations, &metadata["f:annotations"], &owner);
        }
        // Others change all the time, and nobody asks whose they are.
        owners.annotations.retain(|_, owners| owners.iter().any(|owner| owner.applies));
        owners
    }
}

/// `{"f:<key>": {}, ".": {}}`
fn add(owners: &mut Owners, fields: &Value, owner: &FieldOwner) {
    let keys = fields.as_object().into_iter().flatten().filter_map(|(field, _)| field.strip_prefix("f:"));
    for key in keys.take(MOST_ENTRIES) {
        owners.entry(short(key.to_owned())).or_default().insert(owner.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::{FieldOwner, FieldOwners};
    use serde_json::json;

    #[test]
    fn managed_fields_say_who_owns_a_key_and_how() {
        let entries = json!([
            { "manager": "kubelet", "operation": "Update", "time": "2026-11-21T12:00:00Z", "fieldsType": "FieldsV1",
              "fieldsV1": { "f:metadata": { "f:labels": { ".": {}, "f:pool": {} }, "f:annotations": { "f:busy": {} } } } },
            { "manager": "clusterwright", "operation": "Apply", "time": "2026-11-21T12:00:09Z",
              "fieldsV1": { "f:metadata": { "f:labels": { "f:pool": {} }, "f:annotations": { "f:team": {} } } } },
            { "manager": "clusterwright", "operation": "Update", "time": "2026-11-21T12:00:08Z",
              "fieldsV1": { "f:spec": { "f:taints": {} } } },
            { "manager": "kubelet", "operation": "Update", "subresource": "status", "fieldsV1": null },
            { "manager": "kubectl-cordon", "operation": "Update", "fieldsV1": { "f:spec": { "f:unschedulable": {} } } },
        ]);
        let owners = FieldOwners::from_entries(serde_json::from_value(entries).unwrap());
        let owner = |manager: &str, applies| FieldOwner { manager: manager.into(), applies };
        assert_eq!(owners.labels["pool"], [owner("clusterwright", true), owner("kubelet", false)].into());
        assert_eq!(owners.annotations.keys().collect::<Vec<_>>(), ["team"], "nobody applies the other one");
        assert_eq!(owners.written_at, Some("2026-11-21T12:00:09Z".parse().unwrap()));
        assert!(!owners.drains, "a person cordoned it");
    }

    #[test]
    fn a_node_that_the_operator_cordoned_is_told_from_one_that_it_drained_once() {
        let drains = |fields: serde_json::Value| {
            let entry = json!([{ "manager": "clusterwright-drain", "operation": "Apply", "fieldsV1": fields }]);
            FieldOwners::from_entries(serde_json::from_value(entry).unwrap()).drains
        };
        assert!(drains(json!({ "f:spec": { "f:unschedulable": {} } })));
        assert!(!drains(json!({})));
    }
}
