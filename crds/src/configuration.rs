//! How the components of a cluster's machines are configured: typed, under the names that the components have. An
//! absent field leaves the component's own default, or what Clusterwright sets by itself.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

mod api_server;
mod containerd;
mod controller_manager;
mod etcd;
pub(crate) mod flags;
mod kube_proxy;
mod kubelet;
mod machine;
mod proxy;
mod scheduler;

pub use api_server::{AdmissionPlugins, ApiServerSettings, AuditSettings};
pub use containerd::{ContainerdSettings, Runtime};
pub use controller_manager::ControllerManagerSettings;
pub use etcd::EtcdSettings;
pub use flags::FlagValue;
pub(crate) use kube_proxy::{
    FROM_NONE_MESSAGE, FROM_NONE_RULE, PLUGIN_MESSAGE, PLUGIN_RULE, TO_NONE_MESSAGE, TO_NONE_RULE,
};
pub use kube_proxy::{KubeProxyMode, KubeProxySettings};
pub use kubelet::{CpuManagerPolicy, EvictionThresholds, KubeletSettings, ReservedResources, TopologyManagerPolicy};
pub use machine::{JournalSettings, MachineSettings, SysctlValue};
pub use proxy::Proxy;
pub use scheduler::SchedulerSettings;

/// How the components of a cluster's machines are configured. An edit is rolled out to machine after machine
/// (docs/operations/change.md).
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// The kubelets of all machines; a set of machines may say otherwise in its own `kubelet`, field by field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<KubeletSettings>,
    /// The API servers of all control planes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_server: Option<ApiServerSettings>,
    /// The controller-managers of all control planes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_manager: Option<ControllerManagerSettings>,
    /// The schedulers of all control planes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerSettings>,
    /// The members of etcd; not with `etcd.topology: External`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdSettings>,
    /// containerd, on control planes and workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containerd: Option<ContainerdSettings>,
    /// kube-proxy, on control planes and workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_proxy: Option<KubeProxySettings>,
    /// The operating system of all machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineSettings>,
}
