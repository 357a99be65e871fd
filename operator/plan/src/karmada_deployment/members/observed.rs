//! What the planner of members looks at.

use std::collections::BTreeMap;

use crds::names::label;
use crds::{Addon, Cluster, ClusterAddon, ClusterDeployment, KarmadaDeployment};
use jiff::Timestamp;
use serde_json::Value;

use super::super::contact::Contact;
use super::super::contents::Files;
use super::super::host_seen::HostSeen;
use super::super::material::Material;
use super::super::names::{is_made_for, is_taken_over};
use super::host_access::HostAccess;
use super::leaf::Certificates;
use super::target::Target;
use crate::addon::Problem;
use crate::cluster_addon::State;

/// What was observed of members, and what they are decided by beside the plane itself.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    /// What else is in the KarmadaDeployment's namespace.
    pub neighbours: &'a Neighbours<'a>,
    /// UIDs of `kube-system` of clusters that are never members.
    pub own: &'a OwnClusters,
    /// What was seen in the plane.
    pub plane: &'a Contact<PlaneSeen>,
    /// What was seen of each of `roster()`, by name.
    pub members: &'a BTreeMap<String, Member>,
    /// In which version their estimators are, by `estimators_due`.
    pub estimators: &'a EstimatorDue,
}

/// What the planner of members looks at.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// The KarmadaDeployment.
    pub object: &'a KarmadaDeployment,
    /// All other KarmadaDeployments, of every namespace.
    pub others: &'a [&'a KarmadaDeployment],
    /// What is secret: the plane's authorities go to agents, and so do Secrets with which images are pulled.
    pub material: &'a Material,
    /// What was seen on the host; `None`: it does not answer.
    pub host: Option<&'a HostSeen>,
    /// What was seen of members.
    pub seen: Seen<'a>,
    /// How their estimators are on the machines of the plane; `None`: it is in Pods.
    pub on_machines: Option<EstimatorsSeen>,
}

impl<'a> Observed<'a> {
    /// What follows from the plane for every member.
    pub(super) fn basis(&self) -> Basis<'a> {
        let &Self { object, material, host, seen, .. } = self;
        Basis { object, material, host, estimators: seen.estimators }
    }
}

/// What follows from the plane for every member.
#[derive(Clone, Copy)]
pub struct Basis<'a> {
    /// The KarmadaDeployment.
    pub object: &'a KarmadaDeployment,
    /// What is secret of it.
    pub material: &'a Material,
    /// What was seen on the host; `None`: it does not answer.
    pub host: Option<&'a HostSeen>,
    /// In which version estimators are.
    pub estimators: &'a EstimatorDue,
}

/// In which version estimators are, as the plane's upgrade has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EstimatorDue {
    /// In this one.
    Now(String),
    /// They stay as they are; one that is gone comes back in this version.
    Kept(String),
    /// They come later.
    Later,
}

/// How the estimators of members are on the machines that answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EstimatorsSeen {
    /// Whether each machine has those that are wanted now, and no others.
    pub is_settled: bool,
    /// Whether a machine that has them was looked at since.
    pub is_probed: bool,
    /// Why one does not work, by its member: `on machine m1 (Host h1): ...`.
    pub sick: BTreeMap<String, String>,
}

/// Objects of the KarmadaDeployment's namespace: all of them.
#[derive(Clone, Default)]
pub struct Neighbours<'a> {
    /// Clusters.
    pub clusters: Vec<&'a Cluster>,
    /// ClusterDeployments.
    pub deployments: Vec<&'a ClusterDeployment>,
    /// Addons.
    pub addons: Vec<&'a Addon>,
    /// ClusterAddons.
    pub cluster_addons: Vec<&'a ClusterAddon>,
}

/// UIDs of the namespace `kube-system` of clusters that are never members of the plane.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnClusters {
    /// Of the host cluster; `None`: not known yet.
    pub host: Option<String>,
    /// Of the plane itself; `None`: not known yet.
    pub plane: Option<String>,
}

/// What was seen in the plane of all members.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlaneSeen {
    /// Every Cluster (`cluster.karmada.io/v1alpha1`) there is, whoever made it. `apiVersion` and `kind` are set.
    pub clusters: Vec<Value>,
    /// All objects of `cleaning::KINDS_OF_PLANE` with the label `names::selector`, of every namespace. `apiVersion` and
    /// `kind` are set.
    pub listed: Vec<Value>,
    /// How many Works there are for each member (in its namespace `karmada-es-<name>`); 0 may be left out.
    pub works: BTreeMap<String, usize>,
    /// All Leases of the namespace `karmada-cluster`, where `agents_are_awaited`.
    pub leases: Vec<Value>,
}

impl PlaneSeen {
    /// The Cluster of this name, whoever made it.
    pub(super) fn cluster(&self, name: &str) -> Option<&Value> {
        self.clusters.iter().find(|cluster| cluster["metadata"]["name"] == name)
    }

    /// The Cluster of a member, if it was made here, or for the plane whose backup this one began with.
    pub(super) fn own_cluster(&self, object: &KarmadaDeployment, name: &str) -> Option<&Value> {
        self.cluster(name).filter(|cluster| is_taken_over(cluster, object))
    }

    /// The Secret of a Push member with its credentials, if it was made here.
    pub(super) fn secret(&self, object: &KarmadaDeployment, target: &Target) -> Option<&Value> {
        let is_it = |live: &&Value| live["kind"] == "Secret" && live["metadata"]["name"] == *target.name;
        self.made_for(object, &target.name).into_iter().find(is_it)
    }

    /// What was made here for a member, but for its Cluster.
    pub(super) fn made_for(&self, object: &KarmadaDeployment, name: &str) -> Vec<&Value> {
        self.listed.iter().filter(|live| is_made_for(live, object) && is_of(live, name)).collect()
    }
}

/// Whether an object was made for the member of this name.
pub(super) fn is_of(live: &Value, name: &str) -> bool {
    live["metadata"]["labels"][label::KARMADA_MEMBER] == name
}

/// What was seen of a member.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// As `roster()` has it, from what was seen at the same time.
    pub target: Target,
    /// What was seen in it. A client is made from the kubeconfig of `target.reached_by`: of a Cluster that of
    /// `spec.kubeconfigRef`, of a Host that of the Secret `member_kubeconfig_secret`.
    pub contact: Contact<MemberSeen>,
    /// Why there is nothing to reach it with: the Cluster or the Secret is not there, or the kubeconfig is refused.
    pub kubeconfig: Option<Problem>,
    /// What there is of a kubeconfig that is read on a Host, where it is, or was, reached by one; `None`: nobody has
    /// looked.
    pub host_access: Option<HostAccess>,
    /// How each object of `wanted()` is whose place is the plane, in their order, as a dry run says.
    pub in_plane: Vec<State>,
    /// How each object of `wanted()` is whose place is the host, in their order, as a dry run says; `None`: the host
    /// does not answer.
    pub on_host: Option<Vec<State>>,
    /// Its certificates.
    pub certificates: Certificates,
    /// Why the last act for it failed, in this pass; what was to follow was not done. `None`: none has.
    pub failure: Option<String>,
}

/// What was seen in a member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemberSeen {
    /// What it is, and how Karmada is to reach it.
    pub facts: Facts,
    /// How each object of `wanted()` is whose place is the member, in their order, as a dry run says.
    pub states: Vec<State>,
    /// All objects of `cleaning::KINDS_OF_MEMBER` with the label `names::selector`, of every namespace. `apiVersion`
    /// and `kind` are set.
    pub listed: Vec<Value>,
    /// The ClusterRole and the ClusterRoleBinding `karmada-impersonator`, which Karmada makes in Push members, as far
    /// as they are there.
    pub impersonation: Vec<Value>,
}

/// What a member is, and how Karmada is to reach it. Read before `wanted()` is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// UID of its namespace `kube-system`.
    pub uid: String,
    /// The server of the kubeconfig: `https://host:port`.
    pub server: String,
    /// `token` and `impersonator` are those of the Secrets `push::token_secret` and `push::IMPERSONATOR` in the member,
    /// once its token controller has filled them; `ca` the authorities of the kubeconfig. Of Pull members only `ca`.
    /// `estimator` is the token of the Secret `estimator::ACCOUNT`, of both.
    pub files: Files,
    /// What `GET /readyz` with that token and these authorities was answered; `None`: there is no token yet.
    pub token_accepted: Option<Result<(), String>>,
}

impl Member {
    pub(super) fn seen(&self) -> Option<&MemberSeen> {
        self.contact.seen()
    }
}
