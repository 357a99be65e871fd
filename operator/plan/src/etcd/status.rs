//! etcd of a cluster as its ClusterDeployment shows it: by what the API server says of its size, and by the machines
//! that were asked. Figures are kept until they have changed by a step, so that at rest nothing is written.

use crds::cluster_deployment::{EtcdDefragmentation, EtcdHashCheck, EtcdMember, EtcdStatus};
use crds::names::annotation;
use crds::playbook_run::{EtcdSeen, RunPhase};
use crds::step::Intent;
use crds::{ObjectExt, PlaybookRun};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::probe::looks;
use crate::attempts;
use crate::message::quote;

/// The least that a size changes by, in bytes.
const STEP: i64 = 16 << 20;
/// Times of looks that came to the same are written so far apart.
const LOOKED: SignedDuration = SignedDuration::from_hours(1);
/// Members that the status takes.
const MOST: usize = 16;
/// What a request in the annotation of a run begins with.
const REQUEST: &str = "annotation.";

/// What is looked at.
pub(crate) struct Seen<'a> {
    /// What was shown before.
    pub old: Option<&'a EtcdStatus>,
    /// Hosts of the members, each with when its machine became one.
    pub members: &'a [(&'a str, Timestamp)],
    /// The cluster's own runs.
    pub runs: &'a [&'a PlaybookRun],
    /// Size of the database as the API server sees it.
    pub api_size: Option<i64>,
}

/// What is shown from now on.
pub(crate) fn status(seen: &Seen<'_>) -> EtcdStatus {
    let old = seen.old.cloned().unwrap_or_default();
    let looks = looks(seen.runs);
    let found = looks.first().map(|(at, _)| *at);
    let members = members(seen, &looks);
    let largest = members.iter().filter_map(|member| member.size_bytes).max();
    let quota = looks.first().into_iter().flat_map(|(_, run)| of_hosts(run)).filter_map(|(_, seen)| seen.quota_bytes);
    let status = EtcdStatus {
        size_bytes: stepped(old.size_bytes, seen.api_size.or(largest)),
        quota_bytes: quota.min().or(old.quota_bytes).filter(|_| !members.is_empty()),
        hash_check: hash_check(seen, &looks),
        defragmentation: defragmentation(seen.runs).or(old.defragmentation.clone()),
        defragment_request: request(seen.runs).or(old.defragment_request.clone()),
        looked_at: old.looked_at.clone(),
        members,
    };
    let last = old.looked_at.as_ref().map(|time| time.0);
    let is_news = |at: &Timestamp| last.is_none_or(|last| status != old || at.duration_since(last) >= LOOKED);
    let looked_at = found.filter(|at| last.is_none_or(|last| *at > last)).filter(is_news);
    EtcdStatus { looked_at: looked_at.map(Time).or(old.looked_at), ..status }
}

fn of_hosts(run: &PlaybookRun) -> impl Iterator<Item = (&str, &EtcdSeen)> {
    let results = run.status.iter().flat_map(|status| &status.hosts);
    results.filter_map(|result| Some((result.name.as_str(), result.etcd.as_ref()?)))
}

/// Each member as it was seen last, since its machine is one.
fn members(seen: &Seen<'_>, looks: &[(Timestamp, &PlaybookRun)]) -> Vec<EtcdMember> {
    let mut hosts = seen.members.to_vec();
    hosts.sort_unstable();
    hosts.dedup_by_key(|(host, _)| *host);
    let old = |host: &str| seen.old.and_then(|old| old.members.iter().find(|member| member.host == *host));
    let member = |(host, since): &(&str, Timestamp)| {
        let made = |run: &PlaybookRun| run.created_at().is_some_and(|time| time.0 >= *since);
        let told = looks.iter().filter(|(_, run)| made(run)).find_map(|(_, run)| {
            let mut found = of_hosts(run).filter(|(name, told)| name == host && told.version.is_some());
            found.next().map(|(_, told)| told)
        });
        let before = seen.old.and_then(|old| old.looked_at.as_ref()).is_some_and(|time| time.0 >= *since);
        match told {
            Some(told) => Some(entry(host, told, old(host))),
            None => old(host).filter(|_| before).cloned(),
        }
    };
    hosts.iter().filter_map(member).take(MOST).collect()
}

fn entry(host: &str, told: &EtcdSeen, old: Option<&EtcdMember>) -> EtcdMember {
    EtcdMember {
        host: host.to_owned(),
        member_id: told.member_id.clone(),
        version: told.version.clone(),
        size_bytes: stepped(old.and_then(|old| old.size_bytes), told.size_bytes),
        in_use_bytes: stepped(old.and_then(|old| old.in_use_bytes), told.in_use_bytes),
        is_leader: told.is_leader == Some(true),
        is_learner: told.is_learner == Some(true),
        alarms: told.alarms.clone(),
    }
}

/// The size that was shown, until another one is far from it.
pub(crate) fn stepped(old: Option<i64>, new: Option<i64>) -> Option<i64> {
    match (old, new) {
        (Some(old), Some(new)) if (new.saturating_sub(old)).abs() < STEP.max(old / 16) => Some(old),
        (old, new) => new.or(old),
    }
}

/// The last comparison of members, as far as they are still members.
fn hash_check(seen: &Seen<'_>, looks: &[(Timestamp, &PlaybookRun)]) -> Option<EtcdHashCheck> {
    let compared = |(at, run): &(Timestamp, &PlaybookRun)| {
        let found = of_hosts(run).find_map(|(_, told)| {
            let found = told.hash_check.as_ref()?;
            Some((found.revision?, found.members.clone()))
        });
        found.map(|(revision, members)| EtcdHashCheck { checked_at: Time(*at), revision, members })
    };
    let old = seen.old.and_then(|old| old.hash_check.clone());
    let mut check = looks.iter().find_map(compared).or(old)?;
    let at = check.checked_at.0;
    check.members.retain(|member| seen.members.iter().any(|(host, since)| *host == member.host && *since <= at));
    check.members.sort_by(|one, other| one.host.cmp(&other.host));
    check.members.dedup_by(|one, other| one.host == other.host);
    Some(check)
}

/// Whether a run defragments etcd, on behalf of its cluster.
pub(crate) fn defragments(run: &PlaybookRun) -> bool {
    run.spec.intent == Intent::Maintain && run.annotation(annotation::DEFRAGMENTS_FOR).is_some()
}

fn defragmentation(runs: &[&PlaybookRun]) -> Option<EtcdDefragmentation> {
    let ended = runs.iter().filter(|run| defragments(run) && attempts::is_over(run));
    let (at, run) = ended.filter_map(|run| Some((attempts::ended_at(run)?, run))).max_by_key(|(at, _)| *at)?;
    let status = run.status.as_ref()?;
    let succeeded = status.phase == Some(RunPhase::Succeeded);
    let message = status.message.clone().filter(|_| !succeeded).map(quote);
    Some(EtcdDefragmentation { run: run.name().to_owned(), finished_at: Time(at), succeeded, message })
}

/// The request that was followed last.
fn request(runs: &[&PlaybookRun]) -> Option<String> {
    let asked = runs.iter().filter_map(|run| {
        let value = run.annotation(annotation::DEFRAGMENTS_FOR)?.strip_prefix(REQUEST)?;
        Some((run.created_at()?, value))
    });
    asked.max().map(|(_, value)| value.chars().take(64).collect())
}
