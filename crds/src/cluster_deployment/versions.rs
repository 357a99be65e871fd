//! Versions of components that go before those of the artifact bundle's table.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::ComponentVersion;

/// Versions of components that go before those that the artifact bundle has for the Kubernetes version. The bundle must
/// have them. An edit is rolled out by itself, or with the upgrade that is under way; one that is taken back brings the
/// version of the bundle's table again.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// Version of containerd without `v`, e.g. `2.2.1`. Absent: that of the bundle's table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containerd: Option<ComponentVersion>,
    /// Version of runc without `v`, e.g. `1.4.0`. Absent: that of the bundle's table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runc: Option<ComponentVersion>,
    /// Version of the CNI plugins without `v`, e.g. `1.9.0`. Absent: that of the bundle's table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cni_plugins: Option<ComponentVersion>,
    /// Version of etcd without `v`, e.g. `3.6.16`; not with `etcd.topology: External`. At most one minor above that of
    /// the members, and never below their minor; an older patch is allowed. Absent: that of the bundle's table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<ComponentVersion>,
    /// Version of CoreDNS without `v`, e.g. `1.14.7`. Absent: that of the bundle's table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coredns: Option<ComponentVersion>,
}
