//! The members of an etcd in Pods: how many there are, how many Pods there are to be, and how one is added or removed.
//! etcd says who is a member, the StatefulSet which Pods there are, and its annotation how far a change is; so a change
//! goes on wherever the operator was cut off.

mod names;
mod replacement;
mod scaling;
mod seen;
mod size;
mod volume;
mod volumes;

pub use names::ETCD_CLIENT_PORT;
pub(super) use names::{
    CLAIMS, ETCD_PORTS, MOST_MEMBERS, NO_CLUSTER, claim_name, etcd_member_name, initial_cluster, peer_url, pod_name,
};
pub(super) use scaling::scaling;
pub use seen::{EtcdMember, EtcdSeen, EtcdWorkload, Membership};
pub(super) use size::{EtcdSize, first_members, size};
pub use volume::EtcdVolume;
pub(super) use volumes::told_volumes;

use crds::{KarmadaDeployment, ObjectExt};

use super::observed::HostFacts;
use super::restoring::{record, restoring};

/// What is done to etcd itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtcdAct {
    /// Add a member that has no vote yet.
    AddLearner {
        /// Its URL for the other members.
        peer_url: String,
    },
    /// Give this learner a vote, if etcd finds that it has caught up; else it is tried again at the next look.
    Promote {
        /// Its ID.
        id: String,
    },
    /// Let another member lead: asked of the one that leads.
    MoveLeader {
        /// The Pod that leads.
        pod: String,
        /// ID of the member that is to lead.
        to: String,
    },
    /// Remove this member.
    Remove {
        /// Its ID.
        id: String,
    },
}

/// Whether etcd is asked for its members: while there are not as many as are wanted, one of them does not work, or has
/// lost its volume.
pub fn members_are_asked(object: &KarmadaDeployment, facts: &HostFacts) -> bool {
    let Some(local) = object.spec.etcd.local() else { return false };
    let Some(workload) = facts.etcd.workload.as_ref().filter(|_| !object.is_deleting()) else { return false };
    let settled = workload.members;
    settled.is_some_and(|settled| {
        settled != local.replicas
            || workload.replicas != settled
            || workload.ready < workload.replicas
            || workload.volumes.values().any(EtcdVolume::is_lost)
    })
}

/// The claims of volumes that are looked at, by ordinal: meanwhile those of all members, and of the one after the last;
/// else of those of which it is not written which they are.
pub fn claims_asked(object: &KarmadaDeployment, facts: &HostFacts) -> Vec<(i32, String)> {
    let workload =
        facts.etcd.workload.as_ref().filter(|_| !object.is_deleting() && object.spec.etcd.external.is_none());
    let Some((workload, settled)) = workload.and_then(|workload| Some((workload, workload.members?))) else {
        return Vec::new();
    };
    let are_asked = members_are_asked(object, facts);
    let is_asked = |ordinal: &i32| are_asked || (*ordinal < settled && !workload.volumes.contains_key(ordinal));
    (0..=settled).filter(is_asked).map(|ordinal| (ordinal, claim_name(object, &workload.claims, ordinal))).collect()
}

/// What the names of the claims of its volumes begin with: those of a StatefulSet that is there never change.
pub(super) fn claims(object: &KarmadaDeployment, facts: &HostFacts) -> String {
    let seen = facts.etcd.workload.as_ref().map(|workload| workload.claims.as_str());
    let restored = || record(object).and_then(|record| record.claims.as_deref());
    seen.or_else(restored).unwrap_or(CLAIMS).to_owned()
}

/// The names of the claims of the volumes that its StatefulSet has by now; none: it is not there.
pub(super) fn claims_in_use(object: &KarmadaDeployment, facts: &HostFacts) -> Vec<String> {
    let workload = facts.etcd.workload.as_ref();
    let names = |workload: &EtcdWorkload| {
        (0..workload.replicas).map(|ordinal| claim_name(object, &workload.claims, ordinal)).collect()
    };
    workload.map(names).unwrap_or_default()
}

/// The Pods that etcd is asked through, the first first, each with the name that its certificate is for.
pub fn etcd_doors(object: &KarmadaDeployment, facts: &HostFacts) -> Vec<(String, String)> {
    let replicas = facts.etcd.workload.as_ref().map_or(0, |workload| workload.replicas);
    let door = |ordinal| (pod_name(object, ordinal), etcd_member_name(object, ordinal));
    (0..replicas).map(door).collect()
}

/// Whether members are neither added nor removed now: an upgrade is under way, or data of a backup is brought in.
fn is_held(object: &KarmadaDeployment, facts: &HostFacts) -> bool {
    let upgrade = object.status.as_ref().and_then(|status| status.upgrade.as_ref());
    upgrade.is_some_and(|upgrade| upgrade.step.is_some()) || restoring(object, &facts.versions).is_some()
}
