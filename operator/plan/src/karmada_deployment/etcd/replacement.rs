//! A member whose volume is new. It has forgotten what it has promised to the others, so it never begins again as what
//! it was: it is removed, and added as a new member. One act at a time, and never without a majority that works.

use crds::commands;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::EtcdAct;
use super::names::{MOST_MEMBERS, claim_name, peer_url, pod_name};
use super::scaling::{Scaling, Scene, is_ready};
use super::seen::{EtcdMember, Membership};
use super::volume::EtcdVolume;
use super::volumes::claim_uid;

/// How long the Pod of a member that has lost its volume is not ready before it is removed: somebody may bring the
/// volume back.
const GRACE: SignedDuration = SignedDuration::from_mins(3);
/// How long it is not ready before it is said what may be done.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

impl Scene<'_> {
    /// Removes the first member that has lost its volume. All of them are removed before one is added: etcd adds none
    /// while a member that has a vote is away.
    pub(super) fn remove_lost(&self, membership: &Membership) -> Option<Scaling> {
        let (ordinal, member) = (0..self.settled).find_map(|ordinal| self.lost(membership, ordinal))?;
        let name = pod_name(self.object, ordinal);
        let lost = format!("member {name} has lost its volume");
        if !self.is_unready_for(ordinal, GRACE) {
            let minutes = GRACE.as_mins();
            let message = format!("{lost}: it is replaced once its Pod has not been ready for {minutes} minutes");
            return Some(self.replacing(message, Vec::new()));
        }
        let votes = |ordinal: &i32| {
            membership.at(self.object, *ordinal).is_some_and(|other| !other.is_learner && other.id != member.id)
        };
        let others: Vec<i32> = (0..MOST_MEMBERS).filter(votes).collect();
        let (all, working) = (others.len(), others.iter().filter(|other| self.is_ready(**other)).count());
        if working * 2 <= all {
            let message = format!("{lost}, and of the {all} others {working} work: it is removed once a majority does");
            return Some(self.replacing(message, Vec::new()));
        }
        if membership.leader.as_ref() == Some(&member.id) {
            return Some(self.replacing(format!("{lost}: another one is to lead before it is removed"), Vec::new()));
        }
        let act = EtcdAct::Remove { id: member.id.clone() };
        Some(self.replacing(format!("{lost}: removing it, to add it again"), vec![act]))
    }

    /// Adds a member that is not in etcd, and has nothing on its volume.
    pub(super) fn add_again(&self, membership: &Membership) -> Option<Scaling> {
        let ordinal = (0..self.settled).find(|ordinal| membership.at(self.object, *ordinal).is_none())?;
        let name = pod_name(self.object, ordinal);
        if !self.is_new(ordinal) {
            let renew = self.renewal(ordinal);
            let why = format!("member {name} was removed from etcd, and its volume is that of before: {renew}");
            return Some(Scaling { note: Some(why.clone()), ..self.blocked(why) });
        }
        if let Some(waits) = self.unapplied(ordinal) {
            return Some(Scaling { is_expected: false, ..waits });
        }
        let is_off = |other: &i32| membership.at(self.object, *other).is_some() && !self.is_ready(*other);
        if let Some(off) = (0..MOST_MEMBERS).find(is_off) {
            let other = pod_name(self.object, off);
            let message = format!("waiting for Pod {other} to be ready, to add member {name} again");
            return Some(self.replacing(message, Vec::new()));
        }
        let act = EtcdAct::AddLearner { peer_url: peer_url(self.object, ordinal) };
        Some(self.replacing(format!("adding member {name} again, whose volume is new"), vec![act]))
    }

    /// What a person may do about a member that does not work, and of which nothing says that its volume is lost.
    pub(super) fn advice(&self, membership: &Membership) -> Option<String> {
        let is_meant = |ordinal: &i32| {
            membership.at(self.object, *ordinal).is_some()
                && self.lost(membership, *ordinal).is_none()
                && self.is_unready_for(*ordinal, PATIENCE)
        };
        let ordinal = (0..self.settled).find(is_meant)?;
        let (name, renew) = (pod_name(self.object, ordinal), self.renewal(ordinal));
        Some(format!("if member {name} has lost its volume, or cannot use it: {renew}"))
    }

    /// What makes its volume a new one.
    fn renewal(&self, ordinal: i32) -> String {
        let (namespace, claim) =
            (&self.object.spec.host_namespace, claim_name(self.object, &self.workload.claims, ordinal));
        let pod = pod_name(self.object, ordinal);
        format!("run on the host cluster: {}", commands::delete_volume(namespace, &claim, &pod))
    }

    /// The member with this ordinal, if it has lost its volume, is to stay, and its Pod is not ready.
    fn lost<'a>(&self, membership: &'a Membership, ordinal: i32) -> Option<(i32, &'a EtcdMember)> {
        let Some(EtcdVolume::Lost(id)) = self.workload.volumes.get(&ordinal) else { return None };
        let leaves = self.wanted < self.settled && ordinal == self.settled - 1;
        let member = membership.at(self.object, ordinal).filter(|member| member.id == *id && !leaves)?;
        (!self.is_ready(ordinal)).then_some((ordinal, member))
    }

    /// Whether nothing of a member is on its volume.
    fn is_new(&self, ordinal: i32) -> bool {
        let claim = (self.claims)(ordinal);
        match self.workload.volumes.get(&ordinal) {
            Some(EtcdVolume::Lost(_)) => true,
            Some(EtcdVolume::Of(uid)) => claim.is_none_or(|claim| claim_uid(claim).is_some_and(|other| other != uid)),
            None => claim.is_none(),
        }
    }

    fn is_unready_for(&self, ordinal: i32, time: SignedDuration) -> bool {
        let since = self.pod(ordinal).and_then(unready_since);
        since.is_some_and(|since| self.now.duration_since(since) >= time)
    }

    /// What is done about a member that is to stay: what does not work meanwhile is no less so.
    pub(super) fn replacing(&self, message: String, acts: Vec<EtcdAct>) -> Scaling {
        let done = self.doing(self.settled, message, acts);
        Scaling { note: done.problem.as_ref().map(|problem| problem.message.clone()), is_expected: false, ..done }
    }
}

/// Since when a Pod is not ready; none: it is, or does not say.
fn unready_since(pod: &Value) -> Option<Timestamp> {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let said = match conditions.find(|condition| condition["type"] == "Ready") {
        Some(_) if is_ready(pod) => return None,
        Some(condition) => &condition["lastTransitionTime"],
        None => &pod["metadata"]["creationTimestamp"],
    };
    said.as_str()?.parse().ok()
}
