//! A Helm chart that an Addon installs: where it comes from, and with which values.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::bundle::BundlePlace;
use crate::cluster_selector::ClusterSelector;
use crate::references::LocalRef;

/// CEL: one place, and what goes with it.
const PLACE_RULE: &str = "[has(self.oci), has(self.repository), has(self.bundle)].filter(given, given).size() == 1 && has(self.name) != has(self.oci)";
const PLACE_MESSAGE: &str = "source.chart: exactly one of oci, repository with name, and bundle with name, is required: oci: oci://host/path/chart, or repository: https://host/charts and name: chart";
const BUNDLE_RULE: &str =
    "!has(self.bundle) || self.bundle.url.startsWith('https://') || (!has(self.caRef) && !has(self.credentialsRef))";
const BUNDLE_MESSAGE: &str =
    "source.chart: caRef and credentialsRef need a bundle with an https URL: a login is never sent over plain HTTP";
const PLAIN_RULE: &str =
    "has(self.digest) || !((has(self.repository) && self.repository.startsWith('http://')) || self.plainHTTP)";
const PLAIN_MESSAGE: &str =
    "source.chart.digest is required with plainHTTP and with an http:// repository: nobody else vouches for the chart";
const OCI_RULE: &str = "has(self.oci) || !self.plainHTTP";
const OCI_MESSAGE: &str = "source.chart.plainHTTP is for oci: give a repository as http://host/charts";
const RELEASE_RULE: &str = "has(self.releaseName) == has(oldSelf.releaseName) && (!has(self.releaseName) || self.releaseName == oldSelf.releaseName) && self.__namespace__ == oldSelf.__namespace__";
const RELEASE_MESSAGE: &str = "source.chart.releaseName and namespace cannot be changed: they name the release on the clusters; make another Addon";

/// A chart, and the release that it becomes on each cluster.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(PLACE_RULE).message(PLACE_MESSAGE))]
#[x_kube(validation = Rule::new(BUNDLE_RULE).message(BUNDLE_MESSAGE))]
#[x_kube(validation = Rule::new(PLAIN_RULE).message(PLAIN_MESSAGE))]
#[x_kube(validation = Rule::new(OCI_RULE).message(OCI_MESSAGE))]
#[x_kube(validation = Rule::new(RELEASE_RULE).message(RELEASE_MESSAGE))]
pub struct Chart {
    /// The chart in a registry, without its version: `oci://registry.example.com/charts/agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 512),
        regex(pattern = r"^oci://[A-Za-z0-9][-A-Za-z0-9._:\[\]]*(/[a-z0-9][-a-z0-9._]*)+$")
    )]
    pub oci: Option<String>,
    /// URL of a chart repository, which has an `index.yaml`: `https://charts.example.com/stable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^https?://[^\s?#@]+$"))]
    pub repository: Option<String>,
    /// An artifact bundle that has the chart: an entry of the kind `chart` with this `name` and `version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<BundlePlace>,
    /// Name of the chart in the repository or bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 250), regex(pattern = r"^[A-Za-z0-9][-A-Za-z0-9._]*$"))]
    pub name: Option<String>,
    /// The chart's version, exactly: `1.4.2`. Another one is rolled out like any edit; an earlier one is a roll-back.
    #[schemars(
        length(min = 5, max = 64),
        regex(pattern = r"^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$")
    )]
    pub version: String,
    /// SHA-256 of the chart's archive, `sha256:` and 64 hexadecimal digits: another archive is refused. Default: what
    /// the registry or repository has is believed, and of a bundle what its index says; it is shown in
    /// `status.release.digest` of each ClusterAddon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 71, max = 71), regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: Option<String>,
    /// True: the registry of `oci` is asked over HTTP without TLS; `digest` is required then. Default false.
    #[serde(default, rename = "plainHTTP")]
    pub plain_http: bool,
    /// Values; they come after those of `valuesFrom`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "values_schema")]
    pub values: Map<String, Value>,
    /// ConfigMaps and Secrets with values, at most 16; a later one comes after an earlier one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub values_from: Vec<ValuesRef>,
    /// Values of some clusters, at most 64; they come after `values`, a later entry after an earlier one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub overrides: Vec<ChartOverride>,
    /// Name of the release. Default: the Addon's. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 53), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub release_name: Option<String>,
    /// Namespace of the release on the clusters; it is made where it is not there, and stays. Default `default`. It
    /// cannot be changed.
    #[serde(default = "default_namespace")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: String,
    /// A Secret with `username` and `password` for the registry, repository or bundle; for a bundle `token` (Bearer)
    /// will do, too. Default: nobody logs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<LocalRef>,
    /// A ConfigMap with `ca.crt`, the authorities in PEM that the server's certificate may come from. Default: those
    /// of the executor's image; for a bundle those of the operator's, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_ref: Option<LocalRef>,
    /// How long Helm waits for the release's objects and for each hook, and as long again for a roll-back, in seconds,
    /// 10 to 3600. Default 300.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 10, max = 3600))]
    pub timeout_seconds: i32,
}

/// Values in a key of a ConfigMap or a Secret.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.configMapRef) != has(self.secretRef)")
    .message("exactly one of configMapRef and secretRef is required"))]
pub struct ValuesRef {
    /// A ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<LocalRef>,
    /// A Secret. Its values are masked in logs and messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalRef>,
    /// The key, whose text is a map in YAML. Default `values.yaml`.
    #[serde(default = "default_key")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub key: String,
}

/// Values of some clusters.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.clusters) != has(self.clusterSelector)")
    .message("exactly one of clusters and clusterSelector is required"))]
pub struct ChartOverride {
    /// Names of the Clusters, 1 to 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 253)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub clusters: Vec<String>,
    /// Labels of the Clusters, as in the Addon's `clusterSelector`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<ClusterSelector>,
    /// Their values.
    #[schemars(schema_with = "values_schema")]
    pub values: Map<String, Value>,
}

fn values_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "description": "Values of the chart. Maps are merged, lists and all else replace what comes before; `null` takes a default of the chart away.",
        "x-kubernetes-preserve-unknown-fields": true,
        // One owner for all: the names of nested fields would make the record of owners as deep as they are.
        "x-kubernetes-map-type": "atomic",
        "maxProperties": 256
    })
}

fn default_namespace() -> String {
    "default".to_owned()
}

fn default_key() -> String {
    "values.yaml".to_owned()
}

fn default_timeout() -> i32 {
    300
}
