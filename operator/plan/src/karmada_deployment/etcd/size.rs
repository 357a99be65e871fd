//! How many Pods of etcd there are to be, and the initial cluster of a new one.

use crds::KarmadaDeployment;

use super::super::observed::HostFacts;
use super::super::restoring::record;
use super::is_held;
use super::seen::{EtcdSeen, EtcdWorkload, Membership};

/// How many Pods of etcd there are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct EtcdSize {
    /// The Pods, and the members of the initial cluster of one without data.
    pub replicas: i32,
    /// How many members there are, counting one that leaves until its volume is gone, and not one that has no vote or
    /// is not ready yet; none: etcd was never seen whole, and may have to begin.
    pub members: Option<i32>,
}

impl EtcdSize {
    /// What etcd's flag says of a member without data: only an etcd that was never whole may begin with one. So a
    /// volume that is lost is never taken for an etcd that begins.
    pub fn initial_state(self) -> &'static str {
        if self.members.is_some() { "existing" } else { "new" }
    }
}

/// With how many members it begins: of one that is restored as many as its data is made for.
pub(in super::super) fn first_members(object: &KarmadaDeployment) -> i32 {
    record(object).and_then(|record| record.etcd_members).unwrap_or_else(|| wanted(object))
}

/// How many members the spec wants.
pub(super) fn wanted(object: &KarmadaDeployment) -> i32 {
    object.spec.etcd.local().map_or(1, |local| local.replicas)
}

/// How many Pods there are to be now. A Pod is made once its member is in etcd, and goes once its member is out of it.
pub(in super::super) fn size(object: &KarmadaDeployment, facts: &HostFacts) -> EtcdSize {
    let EtcdSeen { workload, members, claims } = &facts.etcd;
    let Some(workload) = workload else { return EtcdSize { replicas: first_members(object), members: None } };
    let Some(settled) = workload.members else { return begun(object, *workload) };
    let wanted = if is_held(object, facts) { settled } else { wanted(object) };
    let of = |replicas: i32| EtcdSize { replicas, members: Some(settled) };
    let membership = match members {
        // One without the first member is not the plane's.
        Some(Ok(membership)) if membership.at(object, 0).is_some() && !membership.is_stale => membership,
        // What a member without a majority knows may be old: by that a Pod comes back, and none goes.
        Some(Ok(membership)) if membership.at(object, settled).is_some() => return of(settled + 1),
        Some(_) => return of(kept(*workload, settled, wanted)),
        None => return of(settled),
    };
    let next = membership.at(object, settled);
    let grows = next.filter(|_| wanted > settled || workload.replicas > settled);
    if let Some(member) = grows {
        let is_settled = wanted <= settled || (!member.is_learner && workload.ready > settled);
        return EtcdSize { replicas: settled + 1, members: Some(settled + i32::from(is_settled)) };
    }
    if is_gone(object, membership, settled) {
        let members =
            if claims.contains_key(&(settled - 1)) || workload.replicas >= settled { settled } else { settled - 1 };
        return EtcdSize { replicas: settled - 1, members: Some(members) };
    }
    EtcdSize { replicas: settled, members: Some(settled) }
}

/// How many Pods stay while nobody says who is a member. The Pod of a member that has a vote and does not count yet
/// must not go, since a majority may need it; one that was removed does not come back.
fn kept(workload: EtcdWorkload, settled: i32, wanted: i32) -> i32 {
    let replicas = workload.replicas;
    let is_removed = replicas == settled - 1 && replicas > 0 && wanted < settled;
    if replicas == settled + 1 || is_removed { replicas } else { settled }
}

/// Whether the last member is out of etcd.
pub(super) fn is_gone(object: &KarmadaDeployment, membership: &Membership, settled: i32) -> bool {
    settled > 1 && membership.at(object, settled - 1).is_none()
}

/// One that has begun, and was never seen whole: it begins with the members that it was made with.
fn begun(object: &KarmadaDeployment, workload: EtcdWorkload) -> EtcdSize {
    let replicas = if workload.replicas > 0 { workload.replicas } else { first_members(object) };
    let is_whole = workload.replicas > 0 && workload.ready >= workload.replicas;
    EtcdSize { replicas, members: is_whole.then_some(replicas) }
}
