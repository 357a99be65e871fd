//! What is said of all members at once.

use crds::Reason;
use crds::conditions::Statement;
use crds::karmada_deployment::{KarmadaMemberPhase as Phase, KarmadaMemberStatus, MemberCounts};
use crds::names::condition;

use crate::message::{count, cut};

/// What is said of a plane without members.
pub(in super::super) const NO_MEMBERS: &str = "no members are wanted";

/// `MembersReady`: all that are wanted are reached.
pub(in super::super) fn members_ready(members: &[KarmadaMemberStatus]) -> Statement {
    let MemberCounts { total, ready, .. } = counts(members);
    let (type_, departure) = (condition::MEMBERS_READY, departure(members));
    let reached = format!("{ready} of {total} members are reached");
    if total == 0 {
        return Statement::new(type_, true, Reason::NoneWanted, cut(format!("{NO_MEMBERS}{departure}")));
    }
    let missing: Vec<&KarmadaMemberStatus> =
        members.iter().filter(|member| is_wanted(member) && member.phase != Phase::Joined).collect();
    let Some(first) = first_to_tell(missing.iter().copied()) else {
        let estimators = without_estimator(members);
        return Statement::new(type_, true, Reason::AllReady, cut(format!("{reached}{estimators}{departure}")));
    };
    let more = missing.len().saturating_sub(1);
    let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    let message = cut(format!("{reached}: {}: {}{more}", first.name, first.message));
    Statement::new(type_, false, Reason::WaitingForMembers, message)
}

/// The members that are wanted, and those that are reached.
pub(in super::super) fn counts(members: &[KarmadaMemberStatus]) -> MemberCounts {
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let wanted = || members.iter().filter(|member| is_wanted(member));
    let ready = number(wanted().filter(|member| member.phase == Phase::Joined).count());
    let total = number(wanted().count());
    MemberCounts { total, ready, summary: format!("{ready}/{total}") }
}

/// The first that leaves, as the end of a sentence; empty: none does.
pub(in super::super) fn departure(members: &[KarmadaMemberStatus]) -> String {
    let leaving = members.iter().filter(|member| member.phase == Phase::Leaving);
    first_to_tell(leaving).map(|member| format!("; {} leaves: {}", member.name, member.message)).unwrap_or_default()
}

/// The members whose estimator does not work, as the end of a sentence; empty: there are none. The scheduler estimates
/// by the sum of their Nodes: they are reached, and the plane works.
pub(in super::super) fn without_estimator(members: &[KarmadaMemberStatus]) -> String {
    let is_without = |member: &&KarmadaMemberStatus| {
        let reasons = [Reason::EstimatorNotReady, Reason::EstimatorNameTooLong];
        member.phase == Phase::Joined && Reason::among(&member.reason, &reasons)
    };
    let mut without = members.iter().filter(is_without);
    let Some(first) = without.next() else { return String::new() };
    let without = count(1 + without.count(), "member");
    format!("; {without} without an estimator that works: {}: {}", first.name, first.message)
}

/// The one that is shown for all: the first that waits for somebody, or else the first.
pub(in super::super) fn first_to_tell<'a>(
    members: impl Iterator<Item = &'a KarmadaMemberStatus>,
) -> Option<&'a KarmadaMemberStatus> {
    let members: Vec<&KarmadaMemberStatus> = members.collect();
    let waits_for_somebody = |member: &&&KarmadaMemberStatus| Reason::is_warning_in(&member.reason);
    members.iter().find(waits_for_somebody).or(members.first()).copied()
}

/// One that leaves is not wanted, nor is a selected Cluster one before it may join.
fn is_wanted(member: &KarmadaMemberStatus) -> bool {
    let is_candidate = member.auto_joined && member.phase == Phase::Waiting && !Reason::is_warning_in(&member.reason);
    member.phase != Phase::Leaving && !is_candidate
}

#[cfg(test)]
mod tests {
    use crds::karmada_deployment::KarmadaMemberStatus;
    use serde_json::json;

    use super::{counts, members_ready};

    fn member(name: &str, phase: &str, reason: &str, auto_joined: bool) -> KarmadaMemberStatus {
        serde_json::from_value(json!({
            "name": name, "syncMode": "push", "phase": phase, "reason": reason, "autoJoined": auto_joined,
            "message": format!("it is {phase}"), "since": "2026-11-27T09:00:00Z",
        }))
        .unwrap()
    }

    fn check(members: &[KarmadaMemberStatus], expected: (&str, Option<bool>, &str)) {
        let statement = members_ready(members);
        assert_eq!((counts(members).summary.as_str(), statement.status, statement.message.as_str()), expected);
    }

    #[test]
    fn the_first_member_that_waits_for_somebody_is_named_and_those_that_leave_count_for_nothing() {
        let mut members = vec![member("m1", "Joined", "AllReady", false)];
        check(&members, ("1/1", Some(true), "1 of 1 members are reached"));
        members.push(member("m2", "Joining", "JoiningMember", false));
        check(&members, ("1/2", Some(false), "1 of 2 members are reached: m2: it is Joining"));
        members.push(member("m3", "Lost", "MemberUnreachable", false));
        check(&members, ("1/3", Some(false), "1 of 3 members are reached: m3: it is Lost (and 1 more)"));
        let leaves = [member("m4", "Leaving", "UnjoiningMembers", false)];
        check(&leaves, ("0/0", Some(true), "no members are wanted; m4 leaves: it is Leaving"));
    }

    #[test]
    fn a_selected_cluster_that_is_not_ready_yet_makes_no_plane_unready() {
        let candidate = member("m1", "Waiting", "ClusterNotVerified", true);
        check(&[candidate], ("0/0", Some(true), "no members are wanted"));
        let refused = member("m1", "Waiting", "NoJoinRule", true);
        check(&[refused], ("0/1", Some(false), "0 of 1 members are reached: m1: it is Waiting"));
    }
}
