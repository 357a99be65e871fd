//! What is seen of an etcd in Pods.

use std::collections::BTreeMap;

use crds::KarmadaDeployment;
use crds::names::annotation;
use serde_json::Value;

use super::super::component::Component;
use super::super::names::{component_name, is_made_for};
use super::names::{CLAIMS, MOST_MEMBERS, peer_url};
use super::volume::{self, EtcdVolume};

/// What is seen of an etcd in Pods, before it is known what is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EtcdSeen {
    /// Its StatefulSet; none: it is not there.
    pub workload: Option<EtcdWorkload>,
    /// Its members, or why they cannot be read; none: nobody has asked, which is so while `members_are_asked` says no.
    pub members: Option<Result<Membership, String>>,
    /// The claims of `claims_asked` that are there, by ordinal.
    pub claims: BTreeMap<i32, Value>,
}

/// What is seen of its StatefulSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdWorkload {
    /// What the names of the claims of its volumes begin with.
    pub claims: String,
    /// Pods that there are to be.
    pub replicas: i32,
    /// Pods that are ready.
    pub ready: i32,
    /// How many members it had last, as `annotation::ETCD_MEMBERS` says; none: it was never seen whole.
    pub members: Option<i32>,
    /// What was known last of the volumes of its members, by ordinal, as `annotation::ETCD_VOLUMES` says.
    pub volumes: BTreeMap<i32, EtcdVolume>,
}

impl EtcdWorkload {
    /// That of a plane, out of all StatefulSets of the host namespace.
    pub fn find(object: &KarmadaDeployment, listed: &[Value]) -> Option<Self> {
        let name = component_name(object, Component::Etcd);
        let is_it = |live: &&Value| {
            live["kind"] == "StatefulSet" && live["metadata"]["name"] == name.as_str() && is_made_for(live, object)
        };
        let live = listed.iter().find(is_it)?;
        let number = |value: &Value| value.as_i64().and_then(|number| i32::try_from(number).ok());
        let annotations = &live["metadata"]["annotations"];
        let members = annotations[annotation::ETCD_MEMBERS].as_str();
        let claims = live["spec"]["volumeClaimTemplates"][0]["metadata"]["name"].as_str();
        Some(Self {
            claims: claims.unwrap_or(CLAIMS).to_owned(),
            replicas: number(&live["spec"]["replicas"]).unwrap_or(1),
            ready: number(&live["status"]["readyReplicas"]).unwrap_or_default(),
            members: members.and_then(|members| members.parse().ok()).filter(|members| *members > 0),
            volumes: volume::read(annotations[annotation::ETCD_VOLUMES].as_str().unwrap_or_default()),
        })
    }
}

/// The members of an etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// The members.
    pub members: Vec<EtcdMember>,
    /// ID of the one that leads; none: none does.
    pub leader: Option<String>,
    /// Whether no majority stands behind it: it is what one member knows.
    pub is_stale: bool,
}

/// A member of etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtcdMember {
    /// Its ID.
    pub id: String,
    /// Its name; empty: it has not started yet.
    pub name: String,
    /// Its URLs for the other members.
    pub peer_urls: Vec<String>,
    /// Whether it has no vote.
    pub is_learner: bool,
}

impl Membership {
    /// Whether any member of it is one of the plane's.
    pub(super) fn is_of(&self, object: &KarmadaDeployment) -> bool {
        (0..MOST_MEMBERS).any(|ordinal| self.at(object, ordinal).is_some())
    }

    /// The member with this ordinal.
    pub(super) fn at(&self, object: &KarmadaDeployment, ordinal: i32) -> Option<&EtcdMember> {
        let url = peer_url(object, ordinal);
        self.members.iter().find(|member| member.peer_urls.contains(&url))
    }
}
