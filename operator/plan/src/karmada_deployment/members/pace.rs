//! How many members join or leave at once. One that does not answer, or has been at it for long, does not count: others
//! do not wait for it.

use std::collections::BTreeSet;

use crds::Conditions;
use crds::names::condition;

use super::observed::{Member, Observed};
use super::target::{Target, Wish, has_begun, known};

/// How many, where `spec.autoJoin` does not say.
const MAX_CONCURRENT: usize = 5;
/// How long one that joins or leaves counts, in seconds.
const COUNTS_SECONDS: i64 = 600;

/// Names of those that may begin now, the first by name.
pub(super) fn may_begin<'a>(observed: &'a Observed<'a>, targets: &'a [Target]) -> BTreeSet<&'a str> {
    let known = known(observed.object);
    let answers =
        |target: &Target| observed.seen.members.get(&target.name).is_some_and(|member| Member::seen(member).is_some());
    let busy = targets.iter().filter(|target| {
        let is_busy = known.get(target.name.as_str()).is_some_and(|status| {
            let seconds = observed.now.duration_since(status.since.0).as_secs();
            let is_at_it = has_begun(status) && status.joined_at.is_none() || status.leaving_since.is_some();
            is_at_it && seconds < COUNTS_SECONDS
        });
        is_busy && answers(target)
    });
    let auto_join = observed.object.spec.auto_join.as_ref();
    let most = auto_join.map_or(MAX_CONCURRENT, |auto_join| usize::try_from(auto_join.max_concurrent).unwrap_or(1));
    let free = most.saturating_sub(busy.count());
    let plane_works = observed.object.is_true(condition::COMPONENTS_READY);
    let is_new = |target: &&Target| {
        let status = known.get(target.name.as_str());
        match target.wish {
            Wish::Join => plane_works && answers(target) && !status.is_some_and(|status| has_begun(status)),
            Wish::Leave => status.is_none_or(|status| status.leaving_since.is_none()),
            Wish::Wait(_) => false,
        }
    };
    // One that is away takes no place from others when it begins to leave.
    let away = targets.iter().filter(|target| is_new(target) && !answers(target));
    let first = targets.iter().filter(|target| is_new(target) && answers(target)).take(free);
    away.chain(first).map(|target| target.name.as_str()).collect()
}
