//! What an Addon applies. Exactly one kind of source is given.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::bundle::BundleManifests;
use super::chart::Chart;
use crate::references::LocalRef;

/// CEL: one kind of source, and the same for good.
const KIND_RULE: &str = "has(self.manifests) != has(self.chart)";
const KIND_MESSAGE: &str = "exactly one of source.manifests and source.chart is required";
const SAME_RULE: &str = "has(self.chart) == has(oldSelf.chart)";
const SAME_MESSAGE: &str =
    "source cannot become another kind: delete the Addon, and make one anew with the other kind of source";

/// Where what is applied comes from.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(KIND_RULE).message(KIND_MESSAGE))]
#[x_kube(validation = Rule::new(SAME_RULE).message(SAME_MESSAGE))]
pub struct AddonSource {
    /// Manifests in ConfigMaps and Secrets of the namespace, or in an artifact bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifests: Option<Manifests>,
    /// A Helm chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<Chart>,
}

/// Manifests: YAML or JSON documents, several in a key being separated by `---`.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Manifests {
    /// ConfigMaps, Secrets and entries of bundles, 1 to 16, in the order in which they are applied; the keys of each in
    /// alphabetical order. CustomResourceDefinitions and Namespaces come before all else.
    #[schemars(length(min = 1, max = 16))]
    pub from: Vec<ManifestsRef>,
    /// True: each key is a template of minijinja (Jinja2's syntax) that may name the cluster's facts
    /// (docs/operations/addons.md); a name that nothing defines is an error. Default false.
    #[serde(default)]
    pub template: bool,
}

/// A ConfigMap, a Secret, or an entry of a bundle.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.configMapRef), has(self.secretRef), has(self.bundle)].filter(given, given).size() == 1")
    .message("exactly one of configMapRef, secretRef and bundle is required"))]
pub struct ManifestsRef {
    /// A ConfigMap; all keys of its `data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<LocalRef>,
    /// A Secret; all keys of its `data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalRef>,
    /// An entry of an artifact bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<BundleManifests>,
}
