//! How the components of a cluster's machines are configured: typed, under the names that the components have. An absent
//! field leaves the component's own default, or what Clusterwright sets by itself.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

mod containerd;
mod kubelet;
mod machine;

pub use containerd::{ContainerdSettings, Proxy};
pub use kubelet::{CpuManagerPolicy, EvictionThresholds, KubeletSettings, ReservedResources, TopologyManagerPolicy};
pub use machine::{MachineSettings, SysctlValue};

/// How the components of a cluster's machines are configured. An edit is rolled out to machine after machine
/// (docs/operations/change.md).
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// The kubelets of all machines; a set of machines may say otherwise in its own `kubelet`, field by field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<KubeletSettings>,
    /// containerd, on control planes and workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containerd: Option<ContainerdSettings>,
    /// The operating system of all machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineSettings>,
}
