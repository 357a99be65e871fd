//! KarmadaDeployment: the Karmada control plane wanted; how far it is stands in [`KarmadaDeploymentStatus`].

mod api_server;
mod binary;
mod component;
mod etcd;
mod flags;
mod images;
mod members;
mod restore;
mod sidecars;
mod source;
mod status;
mod upgrade;

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ComponentVersion;
use crate::cluster_deployment::RestoreFrom;
use crate::configuration::flags::{GATES_MESSAGE, GATES_RULE};
use crate::lock::LockView;
use crate::references::LocalRef;

pub use api_server::{PlaneApiServer, ServiceType};
pub use binary::{PlaneBinary, PlaneEtcdMachines, PlaneMachines};
pub use component::{ComponentSettings, PodSettings, Quantity, Resources};
pub use etcd::{EtcdStorage, ExternalEtcd, LocalEtcd, PlaneEtcd};
pub use images::{ImagePullPolicy, Images};
pub use members::{
    AutoJoin, JoinRule, KarmadaMember, MOST_MEMBERS, MemberEstimator, OnDeselect, SyncMode, UnjoinPolicy,
};
pub use restore::{KarmadaMemberReport, KarmadaRestoreStep, KarmadaRestoredFrom};
pub use sidecars::{API_SERVER_CONTAINER, OWN_PATHS, OWN_VOLUMES, PodPart};
pub use source::KarmadaCrds;
pub use status::{
    KarmadaComponentStatus, KarmadaDeploymentStatus, KarmadaMemberPhase, KarmadaMemberStatus, MemberCounts,
};
pub use upgrade::{KarmadaComponentChange, KarmadaUpgradeStatus, PlaneUpgrade, UpgradeCheck, UpgradeStep};

/// CEL: a minor whose programs, webhooks and feature gates are known here.
const VERSION_RULE: &str = "self.version.matches('^1[.](17|18)[.]')";
const VERSION_MESSAGE: &str = "version: Karmada 1.17 and 1.18 are known here, e.g. 1.18.2";
/// CEL: where the plane is, for good.
const HOST_RULE: &str = "has(self.hostClusterRef) == has(oldSelf.hostClusterRef) && (!has(self.hostClusterRef) || self.hostClusterRef == oldSelf.hostClusterRef) && self.hostNamespace == oldSelf.hostNamespace && self.hostDNSDomain == oldSelf.hostDNSDomain";
const HOST_MESSAGE: &str = "hostClusterRef, hostNamespace and hostDNSDomain cannot be changed: the plane's data and its names are there; make another KarmadaDeployment";
const REACHED_RULE: &str = "!has(self.hostClusterRef) || self.apiServer.serviceType != 'ClusterIP'";
const REACHED_MESSAGE: &str = "apiServer.serviceType: with hostClusterRef it must be NodePort or LoadBalancer: a ClusterIP is reached from inside of that cluster only";
/// CEL: with what a plane begins, for good; and only where its etcd is its own.
const RESTORE_RULE: &str = "has(self.restoreFrom) == has(oldSelf.restoreFrom) && (!has(self.restoreFrom) || self.restoreFrom == oldSelf.restoreFrom)";
const RESTORE_MESSAGE: &str = "Forbidden: restoreFrom is immutable: a plane begins with a backup, or without; to set one back to a backup, make an EtcdRestore";
const RESTORE_ETCD_RULE: &str = "!has(self.restoreFrom) || !has(self.etcd.external)";
const RESTORE_ETCD_MESSAGE: &str =
    "restoreFrom is for an etcd of the plane's own: whoever runs the external etcd restores it; leave restoreFrom out";
/// CEL: a component that may be of another patch version than the rest is of its minor.
const SAME_MINOR_RULE: &str = "!has(self.scheduler.version) || ['1.17.', '1.18.'].all(m, self.scheduler.version.startsWith(m) == self.version.startsWith(m))";
const SAME_MINOR_MESSAGE: &str =
    "scheduler.version: it must be of the minor version of spec.version; leave it out to follow spec.version";

const ESTIMATOR_MINOR_RULE: &str = "!has(self.estimator) || !has(self.estimator.version) || ['1.17.', '1.18.'].all(m, self.estimator.version.startsWith(m) == self.version.startsWith(m))";
const ESTIMATOR_MINOR_MESSAGE: &str =
    "estimator.version: it must be of the minor version of spec.version; leave it out to follow spec.version";
const ESTIMATOR_RULE: &str =
    "has(self.estimator) || !has(self.members) || self.members.all(m, !has(m.estimator) || !m.estimator.enabled)";
const ESTIMATOR_MESSAGE: &str = "members[].estimator.enabled: true needs spec.estimator, which says how estimators run: add it, e.g. estimator: {}, or leave the member's out";

/// What is wanted.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "clusterwright.dev",
    version = "v1alpha1",
    kind = "KarmadaDeployment",
    plural = "karmadadeployments",
    shortname = "kad",
    category = "clusterwright",
    namespaced,
    status = "KarmadaDeploymentStatus",
    derive = "PartialEq",
    doc = "A Karmada control plane, and the clusters that are its members.",
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(name = "Members", type_ = "string", json_path = ".status.memberCounts.summary"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 32")
        .message("metadata.name: an RFC 1123 label of at most 32 characters that begins with a letter: what runs on the host cluster is named after it")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(VERSION_RULE).message(VERSION_MESSAGE).field_path(".version"))]
#[x_kube(validation = Rule::new("self.mode == oldSelf.mode").message("mode cannot be changed: make another KarmadaDeployment"))]
#[x_kube(validation = Rule::new(HOST_RULE).message(HOST_MESSAGE))]
#[x_kube(validation = Rule::new(REACHED_RULE).message(REACHED_MESSAGE).field_path(".apiServer"))]
#[x_kube(validation = Rule::new(SAME_MINOR_RULE).message(SAME_MINOR_MESSAGE).field_path(".scheduler"))]
#[x_kube(validation = Rule::new(ESTIMATOR_MINOR_RULE).message(ESTIMATOR_MINOR_MESSAGE))]
#[x_kube(validation = Rule::new(ESTIMATOR_RULE).message(ESTIMATOR_MESSAGE))]
#[x_kube(validation = Rule::new(binary::MODE_RULE).message(binary::MODE_MESSAGE))]
#[x_kube(validation = Rule::new(binary::HOST_RULE).message(binary::HOST_MESSAGE))]
#[x_kube(validation = Rule::new(binary::IMAGES_RULE).message(binary::IMAGES_MESSAGE).field_path(".images"))]
#[x_kube(validation = Rule::new(binary::ETCD_LOCAL_RULE).message(binary::ETCD_LOCAL_MESSAGE).field_path(".etcd"))]
#[x_kube(validation = Rule::new(binary::ETCD_EXTERNAL_RULE).message(binary::ETCD_EXTERNAL_MESSAGE))]
#[x_kube(validation = Rule::new(binary::SERVICE_RULE).message(binary::SERVICE_MESSAGE).field_path(".apiServer"))]
#[x_kube(validation = Rule::new(sidecars::MODE_RULE).message(sidecars::MODE_MESSAGE).field_path(".apiServer"))]
#[x_kube(validation = binary::no_replicas("apiServer"))]
#[x_kube(validation = binary::no_pods("apiServer"))]
#[x_kube(validation = binary::no_replicas("kubeControllerManager"))]
#[x_kube(validation = binary::no_pods("kubeControllerManager"))]
#[x_kube(validation = binary::no_replicas("aggregatedApiServer"))]
#[x_kube(validation = binary::no_pods("aggregatedApiServer"))]
#[x_kube(validation = binary::no_replicas("controllerManager"))]
#[x_kube(validation = binary::no_pods("controllerManager"))]
#[x_kube(validation = binary::no_replicas("scheduler"))]
#[x_kube(validation = binary::no_pods("scheduler"))]
#[x_kube(validation = binary::no_replicas("webhook"))]
#[x_kube(validation = binary::no_pods("webhook"))]
#[x_kube(validation = binary::no_replicas("descheduler"))]
#[x_kube(validation = binary::no_pods("descheduler"))]
#[x_kube(validation = binary::no_replicas("estimator"))]
#[x_kube(validation = binary::no_pods("estimator"))]
#[x_kube(validation = binary::no_replicas("search"))]
#[x_kube(validation = binary::no_pods("search"))]
#[x_kube(validation = binary::no_replicas("metricsAdapter"))]
#[x_kube(validation = binary::no_pods("metricsAdapter"))]
#[x_kube(validation = Rule::new(RESTORE_RULE).message(RESTORE_MESSAGE).field_path(".restoreFrom"))]
#[x_kube(validation = Rule::new(RESTORE_ETCD_RULE).message(RESTORE_ETCD_MESSAGE).field_path(".restoreFrom"))]
pub struct KarmadaDeploymentSpec {
    /// Karmada's version, without `v`, of a minor that is known here: 1.17 or 1.18. What of Kubernetes and etcd goes
    /// with it follows, unless a component has a version of its own. Another one is an upgrade, one minor at a time:
    /// `status.upgrade` shows its steps.
    pub version: ComponentVersion,
    /// How the plane runs. Immutable. Default `Containers`.
    #[serde(default)]
    pub mode: KarmadaMode,
    /// With mode `Binary`, and required there: the machines that carry the plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary: Option<PlaneBinary>,
    /// The Cluster that carries the plane, in mode `Containers`. Immutable. Default: the metadata cluster, where the
    /// operator runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_cluster_ref: Option<LocalRef>,
    /// The namespace of the host cluster in which the plane runs, which no other plane may have. On the metadata
    /// cluster it must be there, and the operator have the rights of a host in it; elsewhere it is made if it is not
    /// there. An RFC 1123 label. Immutable. Default `karmada-system`.
    #[serde(default = "default_namespace")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    #[x_kube(validation = Rule::new("!(self in ['default', 'kube-system', 'kube-public', 'kube-node-lease'])")
        .message("hostNamespace: the namespaces of Kubernetes are not a plane's: give one of its own, e.g. karmada-system"))]
    pub host_namespace: String,
    /// The DNS domain of the host cluster, which is in the names that the plane's certificates are for. Immutable.
    /// Default `cluster.local`.
    #[serde(default = "default_dns_domain", rename = "hostDNSDomain")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub host_dns_domain: String,
    /// Where images come from.
    #[serde(default)]
    pub images: Images,
    /// Where the CustomResourceDefinitions of this version come from.
    pub crds: KarmadaCrds,
    /// Feature gates of all of Karmada's programs that have any, by name; at most 32. A component's own come first.
    /// An unknown one is reported before anything is changed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    #[x_kube(validation = Rule::new(GATES_RULE).message(GATES_MESSAGE))]
    pub feature_gates: BTreeMap<String, bool>,
    /// The plane's etcd.
    #[serde(default)]
    pub etcd: PlaneEtcd,
    /// The API server of the plane: Kubernetes' own.
    #[serde(default)]
    #[x_kube(validation = flags::owned(flags::API_SERVER))]
    pub api_server: PlaneApiServer,
    /// Kubernetes' controller manager, which collects garbage and ends namespaces in the plane.
    #[serde(default)]
    #[x_kube(validation = flags::owned(flags::KUBE_CONTROLLER_MANAGER))]
    pub kube_controller_manager: ComponentSettings,
    /// Serves the Clusters, and the way through the plane to its members.
    #[serde(default)]
    #[x_kube(validation = flags::owned(flags::AGGREGATED_API_SERVER))]
    #[x_kube(validation = flags::version_of_plane("aggregatedApiServer"))]
    pub aggregated_api_server: ComponentSettings,
    /// Karmada's controllers.
    #[serde(default)]
    #[x_kube(validation = flags::owned(flags::CONTROLLER_MANAGER))]
    #[x_kube(validation = flags::version_of_plane("controllerManager"))]
    pub controller_manager: ComponentSettings,
    /// Chooses the members that a workload runs on.
    #[serde(default)]
    #[x_kube(validation = flags::owned(flags::SCHEDULER))]
    pub scheduler: ComponentSettings,
    /// Admits and completes policies. While it does not answer, no policy can be written, and nothing is propagated.
    #[serde(default)]
    #[x_kube(validation = flags::owned(flags::WEBHOOK))]
    #[x_kube(validation = flags::version_of_plane("webhook"))]
    pub webhook: ComponentSettings,
    /// Moves replicas away from members that cannot run them, as estimators say. Absent: it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = flags::owned(flags::DESCHEDULER))]
    #[x_kube(validation = flags::version_of_plane("descheduler"))]
    #[x_kube(validation = flags::without_gates("descheduler"))]
    pub descheduler: Option<ComponentSettings>,
    /// Estimators, one for each member: they tell the scheduler and the descheduler how many replicas a member has room
    /// for, by its Nodes and Pods. `replicas` is that of each; with mode `Binary` each machine of `binary.controlPlane`
    /// has one for each member. Absent: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = flags::owned(flags::ESTIMATOR))]
    pub estimator: Option<ComponentSettings>,
    /// Answers searches over the objects of all members. Absent: it is not there; its API goes before its Pods do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = flags::owned(flags::SEARCH))]
    #[x_kube(validation = flags::version_of_plane("search"))]
    #[x_kube(validation = flags::without_gates("search"))]
    pub search: Option<ComponentSettings>,
    /// Serves the metrics of all members, for FederatedHPAs. Absent: it is not there; its APIs go before its Pods do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = flags::owned(flags::METRICS_ADAPTER))]
    #[x_kube(validation = flags::version_of_plane("metricsAdapter"))]
    #[x_kube(validation = flags::without_gates("metricsAdapter"))]
    pub metrics_adapter: Option<ComponentSettings>,
    /// How long certificates last, and when they are renewed.
    #[serde(default)]
    pub certificates: PlaneCertificates,
    /// The backup of a plane that this one begins with: its data and its keys. Only when it is made. What schedules and
    /// propagates starts once a person has approved what would become of members. Absent: it begins empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_from: Option<RestoreFrom>,
    /// What precedes an upgrade.
    #[serde(default)]
    pub upgrade: PlaneUpgrade,
    /// The members, by name; at most 256.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub members: Vec<KarmadaMember>,
    /// Clusters that become members by their labels. Absent: none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_join: Option<AutoJoin>,
    /// What becomes of what the plane runs in a member that leaves. Absent: no member leaves until it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unjoin_policy: Option<UnjoinPolicy>,
    /// What deletion does. Default `Delete`.
    #[serde(default)]
    pub deletion_policy: KarmadaDeletionPolicy,
    /// True: a deletion is refused unless the annotation `delete-confirmed` names the generation. Default false.
    #[serde(default)]
    pub deletion_protection: bool,
    /// True: nothing is applied, put back, joined or removed; what is there is still looked at. Default false.
    #[serde(default)]
    pub paused: bool,
}

/// How a plane runs.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum KarmadaMode {
    /// As Pods of a host cluster.
    #[default]
    Containers,
    /// As services of systemd on machines of its own, which `spec.binary` says.
    Binary,
}

impl KarmadaDeployment {
    /// The lock of its machines; nobody holds it where there is no status.
    pub fn lock(&self) -> LockView<'_> {
        let operations = self.status.as_ref().map(|status| status.operations.as_slice()).unwrap_or_default();
        LockView { operations, paused: self.spec.paused }
    }
}

/// What the deletion of a KarmadaDeployment does.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum KarmadaDeletionPolicy {
    /// The members leave, then all that was made on the host cluster is deleted, but for etcd's volumes; machines are
    /// reset, and their Hosts given back.
    #[default]
    Delete,
    /// The plane and its members stay as they are; nobody manages them any more.
    Detach,
}

/// How long the leaf certificates of a plane last, when they are renewed, and whose authorities sign them. Authorities
/// that are made last ten years, and no leaf outlasts its authority.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.renewBeforeDays) || self.renewBeforeDays < self.validityDays")
    .message("certificates.renewBeforeDays must be less than certificates.validityDays: a certificate that was made just now is not renewed"))]
pub struct PlaneCertificates {
    /// How many days a certificate lasts from the day on which it is made, 1 to 1825. It holds for those that are made
    /// from now on. Default 365.
    #[serde(default = "default_validity_days")]
    #[schemars(range(min = 1, max = 1825))]
    pub validity_days: i32,
    /// A certificate with so many days left, or less, is renewed: 1 to 1824, and less than `validityDays`. Absent: once
    /// a third of `validityDays` is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1824))]
    pub renew_before_days: Option<i32>,
    /// Name of a Secret with authorities of your own, e.g. that your company's PKI has issued: `ca.crt` with `ca.key`
    /// (the API server and its clients, Karmada's servers), `etcd-ca.crt` with `etcd-ca.key`, `front-proxy-ca.crt` with
    /// `front-proxy-ca.key`; each pair as in `certificates.caRef` of a ClusterDeployment. It holds nothing else. Those
    /// that it lacks are made. Another pair there is the wish to have that authority rotated to it. Absent: all are
    /// made; a plane keeps what it has when the reference is taken away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_ref: Option<LocalRef>,
}

impl Default for PlaneCertificates {
    fn default() -> Self {
        Self { validity_days: default_validity_days(), renew_before_days: None, ca_ref: None }
    }
}

fn default_validity_days() -> i32 {
    365
}

fn default_namespace() -> String {
    "karmada-system".to_owned()
}

fn default_dns_domain() -> String {
    "cluster.local".to_owned()
}
