//! What forms a cluster of machines: objects of more than one kind do, and two of different kinds may have one name.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kinds of objects that form a cluster of machines.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
pub enum ClusterKind {
    /// A cluster of Kubernetes.
    #[default]
    ClusterDeployment,
    /// A Karmada control plane with `mode: Binary`.
    KarmadaDeployment,
}

impl ClusterKind {
    /// As `kind` of an object has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClusterDeployment => "ClusterDeployment",
            Self::KarmadaDeployment => "KarmadaDeployment",
        }
    }

    /// Whether it is the kind that is meant where none is named.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The object that forms a cluster, in the namespace of the object that refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FormerRef<'a> {
    /// Its kind.
    pub kind: ClusterKind,
    /// Its name.
    pub name: &'a str,
}

impl<'a> FormerRef<'a> {
    /// The ClusterDeployment of this name.
    pub const fn cluster(name: &'a str) -> Self {
        Self { kind: ClusterKind::ClusterDeployment, name }
    }

    /// The KarmadaDeployment of this name.
    pub const fn plane(name: &'a str) -> Self {
        Self { kind: ClusterKind::KarmadaDeployment, name }
    }

    /// Its name, if it is a ClusterDeployment.
    pub fn deployment(self) -> Option<&'a str> {
        (self.kind == ClusterKind::ClusterDeployment).then_some(self.name)
    }

    /// Its name, if it is a KarmadaDeployment.
    pub fn karmada_deployment(self) -> Option<&'a str> {
        (self.kind == ClusterKind::KarmadaDeployment).then_some(self.name)
    }
}

/// `ClusterDeployment paris`.
impl fmt::Display for FormerRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::{ClusterKind, FormerRef};
    use crate::{Machine, MachineSet, PlaybookRun};

    fn read<T: serde::de::DeserializeOwned>(kind: &str, spec: &str) -> T {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: {kind}, metadata: {{name: a}}, spec: {{{spec}}}}}"
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    #[test]
    fn where_no_kind_is_named_a_cluster_deployment_is_meant_and_none_is_written() {
        let machine: Machine = read("Machine", "clusterName: k1, role: control-plane");
        assert_eq!(machine.spec.former(), FormerRef::cluster("k1"));
        assert!(serde_json::to_value(&machine.spec).unwrap().get("clusterKind").is_none());
        let set: MachineSet = read("MachineSet", "clusterName: k1, clusterKind: KarmadaDeployment, role: etcd");
        assert_eq!(set.spec.former(), FormerRef::plane("k1"));
        assert_eq!(serde_json::to_value(&set.spec).unwrap()["clusterKind"], ClusterKind::KarmadaDeployment.as_str());
        let run = "clusterName: k1, clusterKind: KarmadaDeployment, intent: Custom, steps: [prepare], hosts: [h1]";
        let run: PlaybookRun = read("PlaybookRun", run);
        let former = run.spec.former().unwrap();
        assert_eq!((former.to_string().as_str(), former.deployment()), ("KarmadaDeployment k1", None));
        assert_eq!(former.karmada_deployment(), Some("k1"));
        let probe: PlaybookRun = read("PlaybookRun", "intent: Probe, steps: [probe-host], hosts: [h1]");
        assert_eq!(probe.spec.former(), None);
    }
}
