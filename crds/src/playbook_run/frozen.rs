//! What a run was frozen with: where its inputs are, and digests of the settings in them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::KubernetesVersion;

/// The frozen inputs of a run.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrozenInputs {
    /// `sha256:<hex>` of the model's text.
    #[schemars(length(max = 80))]
    pub digest: String,
    /// The immutable ConfigMap with the model.
    #[schemars(length(max = 253))]
    pub config_map: String,
    /// The immutable Secret with keys and credentials.
    #[schemars(length(max = 253))]
    pub secret: String,
}

/// Digests of the settings in the frozen inputs that can be edited later.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrozenSettings {
    /// Of `controlPlane.certSANs`.
    #[serde(rename = "certSANs")]
    #[schemars(length(max = 32))]
    pub cert_sans: String,
    /// Of `containerRuntime.registryMirrors`.
    #[schemars(length(max = 32))]
    pub registry_mirrors: String,
    /// Deprecated: nothing reads it, and it is empty in new runs. Executors and operators of before `spec.addons`
    /// became Addons cannot decode a run without it.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub addon_manifests: String,
    /// Of the ConfigMap of `networking.plugin.manifestsRef`.
    #[schemars(length(max = 32))]
    pub network_manifests: String,
    /// Of `etcd.endpoints`, in the order of the alphabet; where etcd is external.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub etcd_endpoints: Option<String>,
    /// Of the certificates in the Secret of `etcd.secretRef`; where etcd is external.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub etcd_client: Option<String>,
    /// The Kubernetes version, as it is. Absent: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<KubernetesVersion>,
    /// Of each part of `spec.configuration` that is configured, e.g. `kubelet`; where a set of machines has another
    /// than all others, also `kubelet/<MachineSet>`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    pub configuration: BTreeMap<String, String>,
    /// Of each authority and key of the cluster, as it was then, e.g. `ca`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub authorities: BTreeMap<String, String>,
}
