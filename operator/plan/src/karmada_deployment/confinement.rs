//! What Pods and containers of a plane may do: as little as the Pod Security Standard `restricted` leaves.

use serde_json::{Value, json};

/// The user of all programs, which no image has a name for.
const USER: i64 = 65532;

/// What all Pods of a plane may, and as whom.
pub(super) fn security() -> Value {
    json!({
        "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
        "seccompProfile": { "type": "RuntimeDefault" },
    })
}

/// What a container may that needs nothing.
pub(super) fn confined() -> Value {
    json!({
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": { "drop": ["ALL"] },
    })
}
