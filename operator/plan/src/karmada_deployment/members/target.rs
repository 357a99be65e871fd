//! A cluster that is a member, is to be one, or leaves.

use std::collections::BTreeMap;

use crds::KarmadaDeployment;
use crds::karmada_deployment::{KarmadaMember, KarmadaMemberStatus, SyncMode};
use crds::references::LocalRef;

use crate::addon::Problem;

/// A cluster that is a member, is to be one, or leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its name in the plane.
    pub name: String,
    /// Who carries objects to it; of one that has joined as it did.
    pub sync_mode: SyncMode,
    /// By what the operator reaches it.
    pub reached_by: ReachedBy,
    /// As `spec.members` has it; `None`: it joined by itself, or leaves.
    pub named: Option<KarmadaMember>,
    /// Whether `autoJoin` made it a member.
    pub auto_joined: bool,
    /// What is wanted of it.
    pub wish: Wish,
}

/// By what the operator reaches a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReachedBy {
    /// A Cluster of the namespace.
    Cluster(String),
    /// A Secret of the namespace, whose key `kubeconfig` has it.
    Secret(String),
    /// A Host of the namespace, on which its kubeconfig is read.
    Host(String),
}

impl ReachedBy {
    /// `Cluster/prod-a`.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Cluster(name) => format!("Cluster/{name}"),
            Self::Secret(name) => format!("Secret/{name}"),
            Self::Host(name) => format!("Host/{name}"),
        }
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once('/')?;
        match kind {
            "Cluster" => Some(Self::Cluster(name.to_owned())),
            "Secret" => Some(Self::Secret(name.to_owned())),
            "Host" => Some(Self::Host(name.to_owned())),
            _ => None,
        }
    }

    pub(super) fn cluster_ref(&self) -> Option<LocalRef> {
        match self {
            Self::Cluster(name) => Some(LocalRef::new(name)),
            Self::Secret(_) | Self::Host(_) => None,
        }
    }

    pub(super) fn host_ref(&self) -> Option<LocalRef> {
        match self {
            Self::Host(name) => Some(LocalRef::new(name)),
            Self::Cluster(_) | Self::Secret(_) => None,
        }
    }

    pub(super) fn secret_name(&self) -> Option<String> {
        match self {
            Self::Secret(name) => Some(name.clone()),
            Self::Cluster(_) | Self::Host(_) => None,
        }
    }
}

/// What is wanted of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// It is to be a member.
    Join,
    /// It may not begin to join; why. One that has begun stays.
    Wait(Problem),
    /// It leaves.
    Leave,
}

/// The members that the status knows, by name.
pub(in super::super) fn known(object: &KarmadaDeployment) -> BTreeMap<&str, &KarmadaMemberStatus> {
    let members = object.status.as_ref().map(|status| status.members.as_slice()).unwrap_or_default();
    members.iter().map(|member| (member.name.as_str(), member)).collect()
}

/// Whether something may have been made for it.
pub(super) fn has_begun(status: &KarmadaMemberStatus) -> bool {
    status.cluster_uid.is_some()
}
