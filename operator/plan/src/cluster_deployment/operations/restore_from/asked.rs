//! What a person is asked before a cluster begins with a backup: which one it is, and what of the old cluster is there.
//! Whoever has the same keys is believed by both.

use crds::cluster_deployment::RestoredFrom;
use crds::names::condition;
use crds::{Conditions, FormerRef, Host, ObjectExt};
use jiff::Timestamp;

use crate::approval::{self, What};
use crate::cluster_deployment::state::ClusterState;
use crate::message::count;
use crate::moment::day_and_clock;
use crate::size::size;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// The approval: for this backup, and nothing else.
pub(super) fn approval(state: &ClusterState<'_>, pending: &RestoredFrom) -> String {
    approval::value(What::Restore, &state.deployment.metadata, &[&pending.location, &pending.sha256])
}

/// Which backup it is, what must be seen to, and what to type.
pub(super) fn message(state: &ClusterState<'_>, pending: &RestoredFrom, value: &str) -> String {
    format!(
        "backup {} of cluster {}, taken {} ago ({}), {} at revision {}, becomes this cluster. Both have the same keys: the \
         machines of the old one must be off or reset, or their kubelets and tokens are valid here; {}. To do it: {}",
        pending.backup,
        pending.cluster,
        age(state.observed.now, pending.taken_at.0),
        day_and_clock(pending.taken_at.0),
        size(pending.size),
        pending.revision,
        old_cluster(state, pending),
        state.approve(value)
    )
}

/// `45 minutes`, `3 hours`, `12 days`.
fn age(now: Timestamp, at: Timestamp) -> String {
    let seconds = now.duration_since(at).as_secs().max(0);
    let (number, thing) = match seconds {
        DAY.. => (seconds / DAY, "day"),
        HOUR.. => (seconds / HOUR, "hour"),
        _ => (seconds / 60, "minute"),
    };
    count(usize::try_from(number).unwrap_or_default(), thing)
}

/// What is known of the cluster that was backed up.
fn old_cluster(state: &ClusterState<'_>, pending: &RestoredFrom) -> String {
    let mut known = state.observed.deployments.iter();
    let (name, uid) = (&pending.cluster, &pending.cluster_uid);
    match known.find(|deployment| deployment.uid() == uid) {
        Some(old) if old.namespace() == state.deployment.namespace() => {
            format!("ClusterDeployment {name} is here: {}", machines(state))
        }
        Some(old) => format!("ClusterDeployment {name} is in namespace {}", old.namespace()),
        None => {
            let left: Vec<&str> = quarantined(state, name).map(ObjectExt::name).collect();
            match left.as_slice() {
                [] => format!("no ClusterDeployment {name} (UID {uid}) is here"),
                left => format!(
                    "no ClusterDeployment {name} (UID {uid}) is here, and Hosts that were not cleaned are quarantined: {}",
                    left.join(", ")
                ),
            }
        }
    }
}

/// Which machines of the old cluster answer.
fn machines(state: &ClusterState<'_>) -> String {
    let former = &state.observed.restoring.former;
    let is_its = |host: &&&Host| {
        let claim = host.spec.claim_ref.as_ref();
        claim.is_some_and(|claim| former.iter().any(|machine| machine.uid() == claim.uid))
    };
    let answers = |host: &&&Host| host.condition(condition::REACHABLE).is_some_and(|seen| seen.status == "True");
    let hosts: Vec<&&Host> = state.observed.hosts.iter().filter(is_its).collect();
    let answering: Vec<&str> = hosts.iter().copied().filter(answers).map(|host| host.name()).collect();
    match (hosts.len(), answering.as_slice()) {
        (0, _) => "it has no machines any more".to_owned(),
        (all, []) => format!("none of its {} answers", count(all, "machine")),
        (_, answering) => format!("{} still answer", answering.join(", ")),
    }
}

fn quarantined<'s>(state: &'s ClusterState<'_>, cluster: &'s str) -> impl Iterator<Item = &'s Host> {
    let of_cluster = move |host: &&&Host| {
        let quarantine = host.spec.quarantine.as_ref();
        quarantine.is_some_and(|quarantine| quarantine.former() == Some(FormerRef::cluster(cluster)))
    };
    state.observed.hosts.iter().filter(of_cluster).copied()
}
