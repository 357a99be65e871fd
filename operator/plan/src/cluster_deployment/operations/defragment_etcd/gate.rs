//! What must be so before members are defragmented. The step looks at all of them again, before each.

use std::cmp::Ordering;

use crds::Reason;
use crds::cluster_deployment::EtcdStatus;

use super::cause::Cause;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::etcd::Finding;

/// Before it, a defragmentation and a snapshot from the leader could damage a database between them.
const OLDEST: [u64; 3] = [3, 6, 5];

/// Why none is made before somebody acts.
pub(super) fn refused(status: &EtcdStatus, finding: Option<&Finding>) -> Option<Finding> {
    if let Some(corrupt) = finding.filter(|finding| finding.reason == Reason::EtcdCorrupt) {
        return Some(corrupt.clone());
    }
    let is_old = |version: &str| compare(version, OLDEST) == Ordering::Less;
    let member = status.members.iter().find_map(|member| {
        let version = member.version.as_deref().filter(|version| is_old(version))?;
        Some((&member.host, version))
    });
    member.map(|(host, version)| {
        let message = format!(
            "etcd of {host} is {version}, which a defragmentation may damage before 3.6.5: give the machines a newer one"
        );
        Finding { reason: Reason::EtcdTooOld, message }
    })
}

/// Compares the release that a version is of, or leads to; a part that is no number counts as 0.
fn compare(version: &str, with: [u64; 3]) -> Ordering {
    let release = version.split('-').next().unwrap_or_default();
    let mut parts = release.split('.').map(|part| part.parse::<u64>().unwrap_or_default());
    let release = [(); 3].map(|()| parts.next().unwrap_or_default());
    release.cmp(&with)
}

/// What it waits for: it is never made beside anything else, nor with a member away. An etcd that accepts no writes
/// makes all Nodes look silent, so there the step alone looks at the members.
pub(super) fn why_not_yet(state: &ClusterState<'_>, cause: &Cause, finding: Option<&Finding>) -> Option<String> {
    if let Some(run) = state.active.first() {
        return Some(format!("run {} is under way", run.metadata.name.as_deref().unwrap_or_default()));
    }
    let is_full = finding.is_some_and(|finding| finding.reason == Reason::EtcdNoSpace);
    if is_full || matches!(cause, Cause::NoSpace(_)) {
        return None;
    }
    let waits = state.waits_for_api().or_else(|| state.waits_for_etcd());
    waits.or_else(|| member_in_the_way(state))
}

/// A machine that is not a healthy member, or will not be one much longer.
fn member_in_the_way(state: &ClusterState<'_>) -> Option<String> {
    let membership = state.membership();
    let role = membership.etcd_role()?;
    if let Some(leaving) = membership.leaving().find(|machine| membership.is_of_etcd(machine)) {
        return Some(format!("Machine {} leaves", leaving.metadata.name.as_deref().unwrap_or_default()));
    }
    if let Some(forgotten) = membership.forgotten_members().first() {
        return Some(format!("the member of {}, which was removed by force, is still in etcd", forgotten.host));
    }
    let sick = state.of_role(role).find(|machine| !machine.is_ready());
    sick.map(|machine| format!("{} is not Ready: {}", machine.title(), machine.says()))
}

/// The machine that does it: another one at each attempt, of those that are Ready, if any is.
pub(super) fn executor<'a>(state: &ClusterState<'a>, number: i32) -> Option<ClusterMachine<'a>> {
    let mut machines = state.etcd_machines();
    if machines.iter().any(ClusterMachine::is_ready) {
        machines.retain(ClusterMachine::is_ready);
    }
    let index = usize::try_from(number).unwrap_or_default();
    machines.get(index % machines.len().max(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::{OLDEST, compare};
    use std::cmp::Ordering::{self, Equal, Greater, Less};

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let check = |version: &str, expected: Ordering| assert_eq!(compare(version, OLDEST), expected, "{version}");
        check("3.6.5", Equal);
        check("3.6.16", Greater);
        check("3.10.0", Greater);
        check("3.6.4", Less);
        check("3.5.26", Less);
        check("3.6.5-rc.0", Equal);
        check("", Less);
    }
}
