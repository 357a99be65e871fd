//! Labels, annotations and taints that a Machine wants on its Node, compared with what the Node has, and what must be
//! written. Keys that others put there are left alone: whose a key is, the Node itself says.

mod fields;
mod taints;
mod wanted;

use crds::Machine;
use crds::names::annotation;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::cluster::NodeSeen;
use fields::Fields;
use taints::{Taints, remembered};
use wanted::Wanted;

pub use taints::registered;

/// Somebody who keeps changing what is put back is not answered more often than that.
const WRITE_INTERVAL: SignedDuration = SignedDuration::from_secs(10);

/// What has to be written to a Node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeWrite {
    /// The Node.
    pub node: String,
    /// A merge patch with the taints and what is to be removed, for this very version of the Node; none: nothing.
    pub merge: Option<Value>,
    /// The labels and annotations to be applied; none: they are there.
    pub apply: Option<Value>,
}

/// How a Node differs from what its Machine wants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// What is not as wanted, and will be: `label pool`.
    pub differs: Vec<String>,
    /// What another field manager applies with another value: `label pool (field manager nfd)`.
    pub conflicts: Vec<String>,
    /// What has to be written.
    pub write: Option<NodeWrite>,
}

/// Compares the Node of a Machine with what the Machine wants.
pub fn compare(machine: &Machine, node: &NodeSeen) -> Comparison {
    let wanted = Wanted::new(machine);
    let labels = Fields::compare(&fields::LABELS, &wanted.labels, &node.labels, &node.owners.labels);
    let annotations =
        Fields::compare(&fields::ANNOTATIONS, &wanted.annotations, &node.annotations, &node.owners.annotations);
    let registered = machine.status.as_ref().map(|status| status.registered_taints.as_slice()).unwrap_or_default();
    let taints = Taints::compare(&wanted.taints, node, registered);
    let write = NodeWrite {
        node: node.name.clone(),
        merge: merge(node, &labels, &taints),
        apply: (labels.is_changed || annotations.is_changed).then(|| {
            json!({
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": node.name,
                    "uid": node.uid,
                    "labels": labels.apply,
                    "annotations": annotations.apply,
                },
            })
        }),
    };
    let nothing = write.merge.is_none() && write.apply.is_none();
    Comparison {
        differs: [labels.differs, annotations.differs, taints.differs].concat(),
        conflicts: [labels.conflicts, annotations.conflicts].concat(),
        write: (!nothing).then_some(write),
    }
}

/// How long a Node is left alone because it was written a moment ago; none: it may be written now.
pub fn wait(node: &NodeSeen, now: Timestamp) -> Option<SignedDuration> {
    let since = now.duration_since(node.owners.written_at?);
    // A clock that is ahead of ours says nothing.
    (!since.is_negative() && since < WRITE_INTERVAL).then(|| WRITE_INTERVAL - since)
}

/// Keys that the kubelet registered the Node with do not go when they are not applied any more, and taints are one
/// list: another's must not be lost in between.
fn merge(node: &NodeSeen, labels: &Fields, taints: &Taints) -> Option<Value> {
    if labels.remove.is_empty() && !taints.is_changed {
        return None;
    }
    let mut patch = json!({ "metadata": { "uid": node.uid, "resourceVersion": node.resource_version } });
    for key in &labels.remove {
        patch["metadata"]["labels"][key] = Value::Null;
    }
    if taints.is_changed {
        patch["metadata"]["annotations"] = json!({ annotation::TAINTS_FROM_MACHINE: remembered(&taints.remember) });
        patch["spec"] = json!({ "taints": taints.list });
    }
    Some(patch)
}

#[cfg(test)]
mod tests;
