//! Where a plane's images come from.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::references::LocalRef;

/// Where images come from. Their names and tags follow from the components and their versions:
/// `<karmada>/karmada-scheduler:v1.18.2`, `<kubernetes>/kube-apiserver:v1.35.2`, `<kubernetes>/etcd:3.6.6-0`.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Images {
    /// What the names of Karmada's images begin with. Default `docker.io/karmada`.
    #[serde(default = "default_karmada")]
    pub karmada: ImagePrefix,
    /// What the names of etcd's and Kubernetes' images begin with. Default `registry.k8s.io`.
    #[serde(default = "default_kubernetes")]
    pub kubernetes: ImagePrefix,
    /// When nodes pull them. Default `IfNotPresent`.
    #[serde(default)]
    pub pull_policy: ImagePullPolicy,
    /// Secrets of type `kubernetes.io/dockerconfigjson` in this object's namespace, with which nodes pull; at most 4.
    /// They are copied to the host namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4))]
    pub pull_secret_refs: Vec<LocalRef>,
}

/// A registry and a path in it, without a slash at the end: `registry.example.com:5000/karmada`.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(transparent)]
pub struct ImagePrefix(
    #[schemars(
        length(min = 1, max = 200),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-][a-z0-9]+)*)*$")
    )]
    pub String,
);

/// When a node pulls an image.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum ImagePullPolicy {
    /// When it does not have it.
    #[default]
    IfNotPresent,
    /// Whenever a container starts.
    Always,
    /// Never: nodes have it already.
    Never,
}

impl ImagePullPolicy {
    /// As a container has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IfNotPresent => "IfNotPresent",
            Self::Always => "Always",
            Self::Never => "Never",
        }
    }
}

impl Default for Images {
    fn default() -> Self {
        Self {
            karmada: default_karmada(),
            kubernetes: default_kubernetes(),
            pull_policy: ImagePullPolicy::default(),
            pull_secret_refs: Vec::new(),
        }
    }
}

fn default_karmada() -> ImagePrefix {
    ImagePrefix("docker.io/karmada".to_owned())
}

fn default_kubernetes() -> ImagePrefix {
    ImagePrefix("registry.k8s.io".to_owned())
}
