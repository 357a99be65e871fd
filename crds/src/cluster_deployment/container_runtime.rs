//! The container runtime, and where it gets images.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::references::LocalRef;

/// The kinds of container runtime.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ContainerRuntimeName {
    /// containerd.
    #[default]
    Containerd,
}

/// The container runtime of every machine.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRuntime {
    /// Default `containerd`.
    #[serde(default)]
    pub name: ContainerRuntimeName,
    /// Mirrors of registries, by prefix; at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["prefix".into()]))]
    pub registry_mirrors: Vec<RegistryMirror>,
}

/// Mirrors of one registry.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("(!has(self.caRef) && !has(self.credentialsRef)) || self.endpoints.all(e, e.startsWith('https://'))")
    .message("caRef and credentialsRef need https endpoints: a login is never sent, and a server never known, over plain HTTP")
    .field_path(".endpoints"))]
#[x_kube(validation = Rule::new("!has(self.skipVerify) || !self.skipVerify || (!has(self.caRef) && !has(self.credentialsRef))")
    .message("skipVerify goes with neither caRef nor credentialsRef: without a server that is known, whoever answers gets the login")
    .field_path(".skipVerify"))]
pub struct RegistryMirror {
    /// The registry as image references name it, e.g. `registry.k8s.io` or `registry.example:5000`.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?$"))]
    pub prefix: String,
    /// Where to ask, in this order; at most 8.
    #[schemars(
        length(min = 1, max = 8),
        inner(
            length(min = 8, max = 512),
            regex(pattern = r"^https?://[A-Za-z0-9\[][-A-Za-z0-9.:\[\]]*(/[-A-Za-z0-9._~/]*)?$")
        )
    )]
    pub endpoints: Vec<String>,
    /// Believe the endpoints whoever they are, without a look at their certificates. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_verify: bool,
    /// A ConfigMap with the certificate authority of the endpoints in key `ca.crt` (PEM). Absent: those that machines
    /// trust (`configuration.machine.trustedCAs` among them). Only with https endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_ref: Option<LocalRef>,
    /// A Secret with `username` and `password`, which containerd sends to all endpoints (HTTP Basic). A registry that
    /// takes a login only in exchange for a token needs `imagePullSecrets` of the Pods instead. Only with https
    /// endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<LocalRef>,
}
