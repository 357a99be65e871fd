//! The store: the metadata cluster's etcd. It may have been set back to an older state, and then Hosts, Machines and
//! ClusterDeployments say what was so once. Machines are never older than the truth: their guards know the claims and
//! runs that were there since.
//!
//! `resumed_at` is when an operator took the store up again after nobody had renewed the Lease for long; none: that is
//! not known of any time. What was seen of machines before then is not believed until they were looked at again.

pub mod adoption;
mod compared;
pub mod comparison;
pub mod comparisons;
mod contradiction;
pub mod verdict;

use crds::conditions;
use crds::names::condition;
use crds::{ClusterDeployment, Host, HostStatus};
use jiff::{SignedDuration, Timestamp};

use crate::formed_cluster::FormedCluster;
pub use compared::Compared;
pub use contradiction::{Contradiction, Differs, refusal};

/// A Lease that nobody renewed for so long may be an old one. Another operator takes it within 17 seconds when its
/// holder is killed, and a set back store is away for longer than this.
pub const GAP: SignedDuration = SignedDuration::from_secs(120);

/// When the store was taken up again, as is to be written with the Lease that is taken now: what was written before, or
/// now, where nobody renewed the Lease for long. A clock that was set back says nothing.
pub fn resumed_at(before: Option<Timestamp>, renewed: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    let is_gap = renewed.is_none_or(|renewed| now.duration_since(renewed) > GAP);
    match is_gap {
        true => Timestamp::from_second(now.as_second()).ok(),
        false => before,
    }
}

/// Whether the store was set back between two looks at the Lease, of each its holder and when that renewed it: nobody
/// takes a renewal of its own back.
pub fn is_set_back(before: (&str, Timestamp), after: (&str, Timestamp)) -> bool {
    before.0 == after.0 && after.1 < before.1
}

/// Whether the machine of the Host with this status was probed since then, whatever came of it.
pub fn was_asked(status: Option<&HostStatus>, resumed_at: Option<Timestamp>) -> bool {
    let asked = status.and_then(|status| status.asked_since.as_ref());
    resumed_at.is_none_or(|resumed_at| asked.is_some_and(|asked| asked.0 >= resumed_at))
}

/// Whether its guard answered that probe.
pub fn has_answered(host: &Host) -> bool {
    host.status.as_ref().is_some_and(|status| {
        let reachable = conditions::find(&status.conditions, condition::REACHABLE);
        status.fence.is_some() && reachable.is_some_and(|reachable| reachable.status == "True")
    })
}

/// Whether the machines of a cluster were compared with the store since then, and nothing contradicts it.
pub fn is_believed(deployment: &ClusterDeployment, resumed_at: Option<Timestamp>) -> bool {
    FormedCluster::from(deployment).is_believed(resumed_at)
}

/// That the cluster of this name waits for that.
pub fn waiting(cluster: &str) -> String {
    format!("the metadata cluster may be older than the machines: see the condition StoreIsOlder of cluster {cluster}")
}

#[cfg(test)]
mod tests {
    use super::{is_set_back, resumed_at};
    use jiff::Timestamp;

    #[test]
    fn a_holder_takes_no_renewal_of_its_own_back_and_of_two_holders_the_clocks_may_differ() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        assert!(is_set_back(("a", at(20)), ("a", at(19))));
        assert!(!is_set_back(("a", at(20)), ("a", at(20))));
        assert!(!is_set_back(("a", at(20)), ("b", at(19))));
    }

    #[test]
    fn a_lease_that_was_silent_for_long_is_taken_for_an_old_one() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let check = |before: Option<i64>, renewed: Option<i64>, expected: Option<i64>| {
            let resumed = resumed_at(before.map(at), renewed.map(at), at(10_000));
            assert_eq!(resumed, expected.map(at), "{before:?} {renewed:?}");
        };
        check(None, Some(9_990), None);
        check(Some(5_000), Some(9_990), Some(5_000));
        check(Some(5_000), Some(9_880), Some(5_000));
        check(Some(5_000), Some(9_879), Some(10_000));
        check(None, Some(1), Some(10_000));
        // Somebody removed it: nobody knows when it was renewed last.
        check(None, None, Some(10_000));
        check(Some(5_000), Some(20_000), Some(5_000));
    }
}
