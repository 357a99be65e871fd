//! With which volumes the members of an etcd in Pods work: so a member whose volume is new is known from one that does
//! not work for another reason. Which it was is an annotation of the StatefulSet.

use std::collections::BTreeMap;

use crds::KarmadaDeployment;
use serde_json::Value;

use super::super::observed::HostFacts;
use super::names::MOST_MEMBERS;
use super::seen::{EtcdSeen, Membership};
use super::volume::{EtcdVolume, written};

/// What the annotation says from now on of the volumes of the first so many members; none: nothing is known.
pub(in super::super) fn told_volumes(object: &KarmadaDeployment, facts: &HostFacts, members: i32) -> Option<String> {
    let known = |ordinal| Some((ordinal, volume(object, &facts.etcd, ordinal)?));
    let volumes: BTreeMap<i32, EtcdVolume> = (0..members).filter_map(known).collect();
    (!volumes.is_empty()).then(|| written(&volumes))
}

fn volume(object: &KarmadaDeployment, seen: &EtcdSeen, ordinal: i32) -> Option<EtcdVolume> {
    let workload = seen.workload.as_ref()?;
    let recorded = workload.volumes.get(&ordinal);
    let Some(claim) = seen.claims.get(&ordinal).and_then(claim_uid) else { return recorded.cloned() };
    let own = || Some(EtcdVolume::Of(claim.to_owned()));
    let Some(recorded) = recorded else { return own() };
    if workload.ready >= workload.replicas && workload.replicas > ordinal {
        return own();
    }
    let membership = match &seen.members {
        Some(Ok(membership)) if !membership.is_stale => membership,
        _ => return Some(recorded.clone()),
    };
    let member = membership.at(object, ordinal);
    match recorded {
        EtcdVolume::Of(uid) if uid == claim => own(),
        EtcdVolume::Of(_) => Some(EtcdVolume::Lost(member.map(|member| member.id.clone()).unwrap_or_default())),
        // Another member has begun with the new one.
        EtcdVolume::Lost(id) if member.is_some_and(|member| member.id != *id && !member.name.is_empty()) => own(),
        EtcdVolume::Lost(_) => Some(recorded.clone()),
    }
}

/// The UID of a claim that stays.
pub(super) fn claim_uid(claim: &Value) -> Option<&str> {
    let metadata = &claim["metadata"];
    metadata["uid"].as_str().filter(|_| metadata["deletionTimestamp"].is_null())
}

impl Membership {
    /// The ordinals of a new member and all others, while one of them has yet to begin; empty: none has.
    pub(super) fn with_newcomer(&self, object: &KarmadaDeployment) -> Vec<i32> {
        let ordinals = (0..MOST_MEMBERS).filter_map(|ordinal| Some((ordinal, self.at(object, ordinal)?)));
        let begins = ordinals.clone().any(|(_, member)| member.is_learner && member.name.is_empty());
        ordinals.filter(|_| begins).map(|(ordinal, _)| ordinal).collect()
    }
}
