//! Cluster: what is seen of a cluster through its API.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::references::LocalRef;

/// A cluster that can be reached through its API: built here, or imported.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "clusterwright.dev",
    version = "v1alpha1",
    kind = "Cluster",
    plural = "clusters",
    shortname = "cl",
    category = "clusterwright",
    namespaced,
    status = "ClusterStatus",
    derive = "PartialEq",
    doc = "What is seen of a cluster through its API: one that was built here, or an imported one.",
    printcolumn(name = "Endpoint", type_ = "string", json_path = ".status.endpoint"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(name = "Nodes", type_ = "string", json_path = ".status.nodes.summary"),
    printcolumn(
        name = "Reachable",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Reachable\")].status"
    ),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// Secret whose key `kubeconfig` reaches the cluster: no `exec`, no `auth-provider`, no insecure TLS.
    pub kubeconfig_ref: LocalRef,
}

/// Nodes seen.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeCounts {
    /// Nodes there are.
    pub total: i32,
    /// Nodes that are Ready.
    pub ready: i32,
    /// `ready/total`, for the column.
    #[schemars(length(max = 32))]
    pub summary: String,
}

/// Health of one component.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentHealth {
    /// `kube-apiserver`, `etcd`, `kube-controller-manager`, `kube-scheduler`, `coredns`; where there is one,
    /// `kube-proxy`.
    #[schemars(length(max = 63))]
    pub name: String,
    /// Whether it works.
    pub healthy: bool,
    /// Why not, or how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub message: Option<String>,
}

/// A certificate's end.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateExpiry {
    /// E.g. `apiserver`, `kubernetes-ca`, `admin-kubeconfig`.
    #[schemars(length(max = 63))]
    pub name: String,
    /// When it ends; of several machines' the first that does.
    pub expires_at: Time,
    /// Name of the Machine that has it. Absent: it is in the kubeconfig of `spec.kubeconfigRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub machine: Option<String>,
    /// Common name of its issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub issuer: Option<String>,
}

/// What is seen of the cluster.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One sentence: what is wrong, or that all is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// Server of the kubeconfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 300))]
    pub endpoint: Option<String>,
    /// Version of the API server, without `v`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub version: Option<String>,
    /// UID of its `kube-system` namespace: the cluster's identity.
    #[serde(default, rename = "clusterUID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub cluster_uid: Option<String>,
    /// Nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeCounts>,
    /// Components.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub components: Vec<ComponentHealth>,
    /// Certificates: those of the kubeconfig, and of each name that of the machine on which it ends first. All of a
    /// machine stand in the status of its Machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub certificates: Vec<CertificateExpiry>,
    /// Size of etcd's database as the API server sees it, in bytes; looked at every ten minutes, and written when it
    /// has changed by 16 MiB. Absent: the API server does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_size_bytes: Option<i64>,
    /// When contact was lost; absent while it is reachable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable_since: Option<Time>,
    /// `Ready`, `Reachable`, `ControlPlaneHealthy`, `NodesHealthy`, `CertificatesValid`; `Deleting` while it is deleted
    /// and waits to leave a Karmada control plane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
