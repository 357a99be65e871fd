//! What API servers encrypt before etcd stores it, and by what.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CEL: a resource that may be encrypted. Of Kubernetes' own those that hold what people write and that no component
/// writes all the time; of custom ones all, by their group, which has a dot.
const RESOURCE_RULE: &str = "self in ['secrets', 'configmaps', 'serviceaccounts', 'pods', 'podtemplates', 'persistentvolumes', 'persistentvolumeclaims', 'daemonsets.apps', 'deployments.apps', 'replicasets.apps', 'statefulsets.apps', 'controllerrevisions.apps', '*.apps', 'cronjobs.batch', 'jobs.batch', '*.batch'] || (self.matches('^([*]|[a-z][-a-z0-9]*)([.][a-z0-9][-a-z0-9]*){2,}$') && !['admissionregistration.k8s.io', 'apiextensions.k8s.io', 'apiregistration.k8s.io', 'authentication.k8s.io', 'authorization.k8s.io', 'certificates.k8s.io', 'coordination.k8s.io', 'discovery.k8s.io', 'events.k8s.io', 'flowcontrol.apiserver.k8s.io', 'internal.apiserver.k8s.io', 'networking.k8s.io', 'node.k8s.io', 'rbac.authorization.k8s.io', 'resource.k8s.io', 'scheduling.k8s.io', 'storage.k8s.io', 'storagemigration.k8s.io'].exists(g, self.endsWith('.' + g) && !self.substring(0, self.size() - g.size() - 1).contains('.')))";
const RESOURCE_MESSAGE: &str = "'encryption.resources: ' + self + ' cannot be encrypted; allowed are secrets, configmaps, serviceaccounts, pods, podtemplates, persistentvolumes, persistentvolumeclaims, the resources of apps and batch, e.g. jobs.batch or *.apps, and custom resources by their plural and group, e.g. widgets.example.com or *.example.com: take it out'";

/// A resource whose objects are encrypted, with its group behind a dot, or all of a group: `configmaps`,
/// `widgets.example.com`, `*.apps`.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("x-kubernetes-validations" = [{"rule": RESOURCE_RULE, "messageExpression": RESOURCE_MESSAGE}]))]
pub struct EncryptedResource(#[schemars(length(min = 1, max = 160))] pub String);

/// What API servers encrypt before etcd stores it, and by what. An edit reaches one control plane after the other: the
/// next API server reads what the former ones write before any writes otherwise, then everything is written anew.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("(self.provider == 'KMSv2') == has(self.kms)")
    .message("encryption.kms says which plug-in encrypts with provider KMSv2: give it with KMSv2, and leave it out with Secretbox"))]
#[x_kube(validation = Rule::new("self.provider != 'KMSv2' || !self.resources.exists(r, r.startsWith('*'))")
    .message("encryption.resources: with provider KMSv2 each resource is named, since the plug-in encrypts each of them for itself: name the resources instead of a wildcard").field_path(".resources"))]
pub struct Encryption {
    /// The resources whose objects are encrypted, 1 to 32, `secrets` among them: `configmaps`, `serviceaccounts`,
    /// `pods`, `podtemplates`, `persistentvolumes`, `persistentvolumeclaims`; `daemonsets`, `deployments`,
    /// `replicasets`, `statefulsets` and `controllerrevisions` with `.apps`, or `*.apps`; `cronjobs` and `jobs` with
    /// `.batch`, or `*.batch`; custom resources as `widgets.example.com`, or `*.example.com`. With
    /// `KMSv2` no wildcards. Default: `secrets` alone.
    #[serde(default = "default_resources")]
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    #[x_kube(validation = Rule::new("self.exists(r, r == 'secrets')")
        .message("encryption.resources: secrets are always encrypted: add secrets to the list"))]
    pub resources: Vec<EncryptedResource>,
    /// What encrypts. Default `Secretbox`.
    #[serde(default)]
    pub provider: EncryptionProvider,
    /// The plug-in of `KMSv2`, and only with that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kms: Option<KmsPlugin>,
}

fn default_resources() -> Vec<EncryptedResource> {
    vec![EncryptedResource("secrets".to_owned())]
}

impl Default for Encryption {
    fn default() -> Self {
        Self { resources: default_resources(), provider: EncryptionProvider::default(), kms: None }
    }
}

/// What encrypts.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum EncryptionProvider {
    /// The API server itself (XSalsa20 and Poly1305), with a key that is made with the cluster.
    #[default]
    Secretbox,
    /// A plug-in of yours on each control plane, by Kubernetes' KMS API v2. Its key is in no file of the cluster.
    #[serde(rename = "KMSv2")]
    KmsV2,
}

/// A KMS plug-in, which an administrator runs on each control plane.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("self.name != oldSelf.name || self.endpoint == oldSelf.endpoint")
    .message("encryption.kms.endpoint: what is in etcd is encrypted by the plug-in of this name, so its endpoint stays; give the plug-in behind another endpoint another name"))]
pub struct KmsPlugin {
    /// Its name, which stands in etcd before each value that it has encrypted: an RFC 1123 label that begins with a
    /// letter.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^([a-z]|[a-z][-a-z0-9]*[a-z0-9])$"))]
    pub name: String,
    /// Its socket on each control plane, in a directory of its own below `/run`, `/var/run`, `/var/lib`, `/opt` or
    /// `/srv`, which API servers have mounted: `unix:///run/kms/vault.sock`; at most 107 characters behind `unix://`.
    #[schemars(
        length(max = 114),
        regex(pattern = r"^unix:///(run|var/run|var/lib|opt|srv)(/[A-Za-z0-9][A-Za-z0-9._-]*){2,}$")
    )]
    pub endpoint: String,
    /// For how many seconds an API server waits for an answer of it, 1 to 60. Default 3.
    #[serde(default = "default_timeout_seconds")]
    #[schemars(range(min = 1, max = 60))]
    pub timeout_seconds: i32,
}

fn default_timeout_seconds() -> i32 {
    3
}
