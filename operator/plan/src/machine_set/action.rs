//! What is done about a MachineSet.

use std::collections::BTreeMap;

use crds::node_metadata::{AnnotationValue, LabelValue, Taint};
use crds::{HostPool, KubernetesVersion, Machine};

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make this HostPool, once.
    CreateHostPool(Box<HostPool>),
    /// Make this Machine, once.
    CreateMachine(Box<Machine>),
    /// Give this Machine the metadata that it has here, which makes it the set's own, if nobody has written it since.
    Adopt(Box<Machine>),
    /// Write on the Machine why its Host is not to be claimed again, if nobody has written it since it was read.
    QuarantineHost {
        /// The Machine.
        machine: Box<Machine>,
        /// Its Host.
        host: String,
        /// Reason and message, as JSON.
        quarantine: String,
    },
    /// Delete this very Machine.
    DeleteMachine(Box<Machine>),
    /// Wish these labels, annotations and taints of the Node of a Machine, as the set's template has them.
    SetNodeMetadata {
        /// The Machine, as it was read.
        machine: Box<Machine>,
        /// Labels.
        labels: BTreeMap<String, LabelValue>,
        /// Annotations.
        annotations: BTreeMap<String, AnnotationValue>,
        /// Taints.
        taints: Vec<Taint>,
    },
    /// Wish this version of a Machine that nothing of another version is on.
    SetVersion {
        /// The Machine.
        machine: Box<Machine>,
        /// The version.
        version: KubernetesVersion,
    },
}
