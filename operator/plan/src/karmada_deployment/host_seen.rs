//! What was seen on the host cluster.

use serde_json::Value;

use crate::cluster_addon::State;

/// What was seen on the host cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostSeen {
    /// How each object of `wanted()` is whose place is the host, in their order, as a dry run
    /// of `KARMADA_FIELD_MANAGER` says.
    pub states: Vec<State>,
    /// All objects of `removal::kinds_of_host()` with the label `names::selector`, in the host namespace. `apiVersion`
    /// and `kind` are set.
    pub listed: Vec<Value>,
    /// All Pods with that label there.
    pub pods: Vec<Value>,
}
