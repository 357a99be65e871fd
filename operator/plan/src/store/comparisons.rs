//! The comparisons of a cluster's machines with the store, by which a run is recognized that the store does not know:
//! it was given its token before the store was set back. A machine that did not answer when the others were compared
//! may know one, and the tokens grow past it meanwhile.

use crds::{Host, StoreComparison};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::compared::Compared;
use super::contradiction::Contradiction;

/// So many are kept, as many as the status takes. What a machine that has been silent for longer knows from before is
/// taken for known.
const MOST: usize = 32;

/// The highest token that the store can know of a run that was told of this comparison last; none: of none. It is that
/// of the first comparison after it, or of the last one, if the run's own is not among what the store knows. None: the
/// run was told of the last one, and the store knows all since; or there was none. The guards decide by the same.
pub fn limit(comparisons: &[StoreComparison], since: Option<&Time>) -> Option<i64> {
    let last = comparisons.last().filter(|last| Some(&last.since) != since)?;
    let is_after = |comparison: &&StoreComparison| since.is_none_or(|since| comparison.since.0 > since.0);
    Some(comparisons.iter().find(is_after).unwrap_or(last).last_token)
}

/// The same, where no run was told of more than the last token; none: that is not known.
pub fn known_token<'s>(compared: impl Into<Compared<'s>>, since: Option<&Time>) -> Option<i64> {
    let compared = compared.into();
    let last_token = compared.last_token?;
    Some(limit(compared.comparisons, since).map_or(last_token, |limit| limit.min(last_token)))
}

/// What they are once the machines were compared with the store that was taken up then, and whose last token was this.
/// Where all of them have answered, nothing of before is unknown any more.
pub fn after(old: &[StoreComparison], since: &Time, last_token: i64, all_answered: bool) -> Vec<StoreComparison> {
    let is_known = old.last().is_some_and(|last| last.since == *since);
    let added = (!is_known).then(|| StoreComparison { since: since.clone(), last_token });
    let all: Vec<StoreComparison> = old.iter().cloned().chain(added).collect();
    let kept = if all_answered { 1 } else { MOST };
    all[all.len().saturating_sub(kept)..].to_vec()
}

/// Those that a run on the Host brings. A run that is unknown there, and was approved, is known from then on.
pub fn of_host<'s>(host: &Host, compared: impl Into<Compared<'s>>) -> Vec<StoreComparison> {
    let compared = compared.into();
    let found = || {
        let told = host.status.as_ref()?;
        let since = told.fence_owner.as_ref().and_then(|owner| owner.compared_since.as_ref());
        let known = known_token(compared, since)?;
        Contradiction::of_token(host, told.fence?, told.fence_owner.clone(), known)
    };
    let approved = found().filter(|found| compared.approved.contains(&found.digest()));
    match (approved, compared.comparisons.last()) {
        (Some(approved), Some(last)) => {
            vec![StoreComparison { last_token: last.last_token.max(approved.fence.token), ..last.clone() }]
        }
        _ => compared.comparisons.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use crds::{ClusterDeploymentStatus, Host, StoreComparison};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::{Contradiction, MOST, after, known_token, limit, of_host};

    fn at(month: usize) -> Time {
        Time(format!("2026-{month:02}-01T00:00:00Z").parse().unwrap())
    }

    fn comparisons(all: &[(usize, i64)]) -> Vec<StoreComparison> {
        all.iter().map(|(month, last_token)| StoreComparison { since: at(*month), last_token: *last_token }).collect()
    }

    #[test]
    fn of_each_run_the_store_knows_what_it_knew_when_it_was_taken_up_next() {
        let two = comparisons(&[(3, 100), (5, 130)]);
        let check = |since: Option<usize>, expected: Option<i64>| {
            assert_eq!(limit(&two, since.map(at).as_ref()), expected, "{since:?}");
        };
        check(None, Some(100));
        check(Some(2), Some(100));
        check(Some(3), Some(130));
        check(Some(4), Some(130));
        check(Some(5), None);
        // Of a store that was set back since, and that nobody noticed.
        check(Some(6), Some(130));
        assert_eq!((limit(&[], None), limit(&[], Some(&at(6)))), (None, None));
    }

    #[test]
    fn no_run_is_known_beyond_the_last_token() {
        let status = |last_token| ClusterDeploymentStatus {
            last_token,
            comparisons: comparisons(&[(3, 100)]),
            ..ClusterDeploymentStatus::default()
        };
        assert_eq!(known_token(&status(Some(140)), Some(&at(2))), Some(100));
        assert_eq!(known_token(&status(Some(140)), Some(&at(3))), Some(140));
        assert_eq!(known_token(&status(Some(90)), Some(&at(2))), Some(90));
        assert_eq!(known_token(&status(None), Some(&at(2))), None);
    }

    #[test]
    fn a_comparison_stays_until_every_machine_has_answered_a_later_one() {
        let check = |old: &[(usize, i64)], month: usize, all_answered: bool, expected: &[(usize, i64)]| {
            let next = after(&comparisons(old), &at(month), 130, all_answered);
            assert_eq!(next, comparisons(expected), "{old:?} {month} {all_answered}");
        };
        check(&[], 3, true, &[(3, 130)]);
        check(&[(2, 100)], 3, true, &[(3, 130)]);
        check(&[(2, 100)], 3, false, &[(2, 100), (3, 130)]);
        // Tokens that were given out since belong to it.
        check(&[(3, 100)], 3, false, &[(3, 100)]);
        check(&[(2, 90), (3, 100)], 3, false, &[(2, 90), (3, 100)]);
        check(&[(2, 90), (3, 100)], 3, true, &[(3, 100)]);
        let many: Vec<StoreComparison> = vec![comparisons(&[(2, 90)])[0].clone(); MOST];
        let next = after(&many, &at(3), 130, false);
        assert_eq!((next.len(), next.last().map(|last| last.last_token)), (MOST, Some(130)));
    }

    #[test]
    fn what_was_approved_of_a_machine_is_known_there_and_nowhere_else() {
        let host = |name: &str| -> Host {
            serde_yaml::from_str(&format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: {name}, uid: u-{name}}}, \
                  spec: {{address: 10.0.0.1, claimEpoch: 2, ssh: {{credentialsRef: {{name: k}}}}}}, \
                  status: {{fence: {{epoch: 2, token: 120}}, fenceOwner: {{cluster: a, run: fleet/a-join}}}}}}"
            ))
            .unwrap()
        };
        let (one, other) = (host("h1"), host("h2"));
        let mut status = ClusterDeploymentStatus {
            last_token: Some(125),
            comparisons: comparisons(&[(2, 90), (3, 100)]),
            ..ClusterDeploymentStatus::default()
        };
        assert_eq!(of_host(&one, &status), status.comparisons);
        let told = one.status.clone().unwrap();
        let found = Contradiction::of_token(&one, told.fence.unwrap(), told.fence_owner, 90).unwrap();
        status.approved_contradictions = vec![found.digest()];
        assert_eq!(of_host(&one, &status), comparisons(&[(3, 120)]));
        assert_eq!(of_host(&other, &status), status.comparisons);
    }
}
