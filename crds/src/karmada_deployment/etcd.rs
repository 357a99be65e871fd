//! A plane's etcd: on the host cluster, or one that others run.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::component::{PodSettings, Quantity};
use super::flags;
use crate::ComponentVersion;
use crate::cluster_deployment::{ENDPOINTS_RULE, ETCD_PREFIX};
use crate::configuration::flags::{FlagValue, NAMES_MESSAGE, NAMES_RULE};
use crate::references::LocalRef;

/// CEL: the one or the other, for good; what data it is in does not move by itself.
const KIND_RULE: &str = "!(has(self.local) && has(self.external))";
const KIND_MESSAGE: &str = "etcd.local and etcd.external exclude each other: the plane has one etcd";
const SAME_RULE: &str =
    "has(self.external) == has(oldSelf.external) && (!has(self.external) || self.external == oldSelf.external)";
const SAME_MESSAGE: &str = "etcd.external cannot be added, changed or removed: the plane's data is in the etcd that it was made with; make another KarmadaDeployment";
const STORAGE_RULE: &str = "(has(self.local) ? self.local.storage.size : '8Gi') == (has(oldSelf.local) ? oldSelf.local.storage.size : '8Gi') && (has(self.local) && has(self.local.storage.className) ? self.local.storage.className : '') == (has(oldSelf.local) && has(oldSelf.local.storage.className) ? oldSelf.local.storage.className : '')";
const STORAGE_MESSAGE: &str =
    "etcd.local.storage cannot be changed: a StatefulSet keeps the volumes that it was made with";

/// The plane's etcd.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(KIND_RULE).message(KIND_MESSAGE))]
#[x_kube(validation = Rule::new(SAME_RULE).message(SAME_MESSAGE).field_path(".external"))]
#[x_kube(validation = Rule::new(STORAGE_RULE).message(STORAGE_MESSAGE).field_path(".local"))]
pub struct PlaneEtcd {
    /// One that runs on the host cluster. Default, without `external`: one member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = flags::owned(flags::ETCD))]
    pub local: Option<LocalEtcd>,
    /// One that others run. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalEtcd>,
}

/// An etcd on the host cluster: a StatefulSet whose members are on volumes.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalEtcd {
    /// How many members: 1, 3 or 5. A change adds or removes one after the other; the volume of one that is removed is
    /// deleted. Default 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 5))]
    #[x_kube(validation = Rule::new("self % 2 == 1").message("etcd.local.replicas must be 1, 3 or 5, since etcd needs a majority"))]
    pub replicas: i32,
    /// etcd's version: the tag of its image, e.g. `3.6.6-0`. Default: what goes with `spec.version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<ComponentVersion>,
    /// The volume of each member. Immutable.
    #[serde(default)]
    pub storage: EtcdStorage,
    /// Further flags, name to value; at most 32. None that the plane depends on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    #[x_kube(validation = Rule::new(NAMES_RULE).message(NAMES_MESSAGE))]
    pub extra_args: BTreeMap<String, FlagValue>,
    /// What its Pods are given.
    #[serde(flatten)]
    pub pod: PodSettings,
}

/// The volume of a member. It stays when the KarmadaDeployment is deleted.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdStorage {
    /// Its StorageClass. Default: the host cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub class_name: Option<String>,
    /// Its size. Default `8Gi`.
    #[serde(default = "default_size")]
    pub size: Quantity,
}

/// An etcd that others run, and look after.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalEtcd {
    /// Client URLs of its members, `https://HOST:PORT` with an IPv4 address or a DNS name, 1 to 9.
    #[schemars(length(min = 1, max = 9), inner(length(min = 11, max = 270)))]
    #[x_kube(
        merge_strategy = ListMerge::Set,
        validation = Rule::new(ENDPOINTS_RULE)
            .message("etcd.external.endpoints are URLs of the form https://HOST:PORT, with an IPv4 address or a DNS name and a port of 1 to 65535, e.g. https://10.0.0.5:2379")
    )]
    pub endpoints: Vec<String>,
    /// A Secret of type `kubernetes.io/tls` with one key more. `ca.crt`: the authorities that the members' certificates
    /// come from; `tls.crt` and `tls.key`: the client certificate of the plane and its private key.
    pub secret_ref: LocalRef,
    /// Below which keys the plane's data is; another plane on the same etcd needs another prefix. Default `/registry`.
    #[serde(default = "default_prefix")]
    #[schemars(length(min = 2, max = 128), regex(pattern = r"^(/[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?)+$"))]
    pub prefix: String,
}

impl PlaneEtcd {
    /// The one on the host cluster, with what holds by default; none: it is external.
    pub fn local(&self) -> Option<LocalEtcd> {
        match &self.external {
            Some(_) => None,
            None => Some(self.local.clone().unwrap_or_default()),
        }
    }
}

impl Default for LocalEtcd {
    fn default() -> Self {
        Self {
            replicas: one(),
            version: None,
            storage: EtcdStorage::default(),
            extra_args: BTreeMap::new(),
            pod: PodSettings::default(),
        }
    }
}

impl Default for EtcdStorage {
    fn default() -> Self {
        Self { class_name: None, size: default_size() }
    }
}

fn one() -> i32 {
    1
}

fn default_size() -> Quantity {
    Quantity("8Gi".to_owned())
}

fn default_prefix() -> String {
    ETCD_PREFIX.to_owned()
}
