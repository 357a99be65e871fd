//! The volume of a member of etcd.

use crds::karmada_deployment::EtcdStorage;
use serde_json::{Value, json};

/// The spec of its PersistentVolumeClaim.
pub(super) fn claim(storage: &EtcdStorage) -> Value {
    let mut claim = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": storage.size } },
    });
    if let Some(class) = &storage.class_name {
        claim["storageClassName"] = json!(class);
    }
    claim
}
