//! When spare Hosts are looked at, and together with which others: one probe is under way in a namespace.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crds::ObjectExt;
use crds::Reason;
use crds::conditions;
use crds::names::{annotation, condition, label};
use crds::playbook_run::PlaybookRunSpec;
use crds::step::{Intent, Step};
use crds::{Host, HostStatus, PlaybookRun};
use jiff::Timestamp;

use super::action::Action;
use super::observed::HostObserved;
use super::result::{ProbedHost, is_folded, newest, probed_host, probed_hosts};
use super::schedule::ProbeSchedule;
use super::{identity, quarantine};
use crate::Next;
use crate::attempts::{ended_at, is_over};
use crate::naming::short_hash;
use crate::store;

/// Hosts of one probe.
pub const MOST_HOSTS: usize = 50;
/// Hosts applied together are probed together.
const GATHER_SECONDS: i64 = 1;
/// A Host that is not well is looked at again sooner.
const SICK_SECONDS: i64 = 120;
/// A probe that came to no result is made again after this.
const AGAIN_SECONDS: i64 = 60;
/// Deadline of a probe.
const TIMEOUT_SECONDS: i32 = 300;
/// Ended probes that are kept.
const KEEP: usize = 10;
/// Before that, every Host has read what a probe found.
const FORGET_AFTER_SECONDS: i64 = 300;

/// True for a probe that the operator made.
pub fn is_probe(run: &PlaybookRun) -> bool {
    run.spec.intent == Intent::Probe && run.annotation(annotation::PROBED).is_some()
}

/// The probe that has not ended.
pub fn under_way(probes: &[Arc<PlaybookRun>]) -> Option<&PlaybookRun> {
    probes.iter().map(|run| &**run).find(|run| !is_over(run))
}

/// True when the probe looks at this Host as it is.
pub(super) fn covers(run: &PlaybookRun, host: &Host) -> bool {
    probed_hosts(run).get(host.name()).is_some_and(|probed| *probed == probed_host(host, probed.resumed_at))
}

/// The spare Hosts that a probe made within the interval's next fifth would look at, the longest due first. Those that
/// a probe has looked at, and that have not read yet what it found, are not among them: in a large pool the same ones
/// would be probed again and again.
pub fn due_soon<'h>(
    hosts: &'h [Arc<Host>],
    probes: &[Arc<PlaybookRun>],
    now: Timestamp,
    schedule: ProbeSchedule,
) -> Vec<&'h Host> {
    let mut due: Vec<(Timestamp, &Host)> = hosts
        .iter()
        .filter_map(|host| Some((due_at(host, host.status.as_ref(), schedule)?, &**host)))
        .filter(|(due, _)| due.as_second() <= now.as_second() + slack(schedule.interval_seconds))
        .collect();
    if due.is_empty() {
        return Vec::new();
    }
    let newest = newest_of_each(probes);
    due.retain(|(_, host)| newest.get(host.uid()).is_none_or(|(at, run)| is_folded(host, *at, run)));
    due.sort_by_key(|(due, host)| (*due, host.name().to_owned()));
    due.into_iter().map(|(_, host)| host).collect()
}

/// Whether more Hosts of the namespace concern this one than those that may be the same machine: it is due for a probe,
/// which it makes for others, too, or a probe found something of it that its status does not have, a host key perhaps.
pub fn looks_at_pool(host: &Arc<Host>, probes: &[Arc<PlaybookRun>], now: Timestamp, schedule: ProbeSchedule) -> bool {
    let is_due = !due_soon(std::slice::from_ref(host), probes, now, schedule).is_empty();
    is_due || newest(host, probes).is_some()
}

/// The newest probe of each Host that has ended: when, and its name; by the Hosts' UIDs.
fn newest_of_each(probes: &[Arc<PlaybookRun>]) -> HashMap<String, (Timestamp, &str)> {
    let mut newest: HashMap<String, (Timestamp, &str)> = HashMap::new();
    for run in probes.iter().filter(|run| is_over(run)) {
        let Some(at) = ended_at(run) else { continue };
        for host in probed_hosts(run).into_values() {
            let place = newest.entry(host.uid).or_insert((at, run.name()));
            *place = (*place).max((at, run.name()));
        }
    }
    newest
}

fn slack(interval_seconds: u64) -> i64 {
    i64::try_from(interval_seconds / 5).unwrap_or(i64::MAX)
}

/// When the Host is to be looked at; not while it is going, and not while it is claimed and known.
fn due_at(host: &Host, status: Option<&HostStatus>, schedule: ProbeSchedule) -> Option<Timestamp> {
    let ProbeSchedule { interval_seconds, resumed_at } = schedule;
    let was_asked = store::was_asked(host.status.as_ref(), resumed_at);
    let asks = host.spec.claim_ref.is_none() || identity::wants_probe(host, status);
    let is_unknown = resumed_at.is_some() && !(was_asked && store::has_answered(host));
    if !(asks || is_unknown) || host.is_deleting() {
        return None;
    }
    let later = |time: Timestamp, seconds: i64| Timestamp::from_second(time.as_second() + seconds).unwrap_or(time);
    let created = host.created_at().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    let find = |type_: &str| status.and_then(|status| conditions::find(&status.conditions, type_));
    let reachable = find(condition::REACHABLE);
    let last = status.and_then(|status| status.last_probe_at.as_ref()).map(|time| time.0);
    let (Some(reachable), Some(last)) = (reachable, last) else {
        return Some(later(created, GATHER_SECONDS));
    };
    if reachable.reason == Reason::ProbeFailed {
        return Some(later(last, AGAIN_SECONDS));
    }
    if !was_asked {
        return Some(last);
    }
    if !asks {
        // The machine of a claim that does not answer is no matter of the pool: it is asked now and then.
        return Some(later(last, i64::try_from(interval_seconds).unwrap_or(i64::MAX / 2)));
    }
    if reachable.observed_generation != host.metadata.generation {
        return Some(last);
    }
    if quarantine::wants_probe(host, status) {
        return Some(last);
    }
    let well = find(condition::CLEAN).is_some_and(|clean| clean.status == "True") && reachable.status == "True";
    let interval = i64::try_from(interval_seconds).unwrap_or(i64::MAX / 2);
    let period = if well { interval } else { interval.min(SICK_SECONDS) };
    Some(later(last, jittered(period, host.name(), last)))
}

/// Up to a tenth sooner or later, by name and time: Hosts do not march in step.
fn jittered(period: i64, name: &str, last: Timestamp) -> i64 {
    let hash = short_hash(&[name, &last.as_second().to_string()], 4);
    let chance = hash.bytes().fold(0_i64, |sum, byte| (sum * 31 + i64::from(byte)) % 201) - 100;
    period + period * chance / 1000
}

/// The Host with what is known of it now.
fn seen(observed: &HostObserved<'_>, status: &HostStatus) -> Host {
    Host { status: Some(status.clone()), ..observed.host.clone() }
}

/// The next probe, if it is this Host's turn, and when to look again.
pub(super) fn next(observed: &HostObserved<'_>, status: &HostStatus) -> (Vec<Action>, Next) {
    let Some(due) = due_at(&seen(observed, status), Some(status), observed.schedule) else {
        return (Vec::new(), Next::OnChange);
    };
    if observed.problems.contains_key(observed.host.name()) {
        return (Vec::new(), Next::after_seconds(10));
    }
    let wait = due.as_second() - observed.now.as_second();
    if let Ok(wait @ 1..) = u64::try_from(wait) {
        return (Vec::new(), Next::after_seconds(wait));
    }
    if under_way(observed.probes).is_some() {
        // Its end is seen as a change; this is for one that nobody told.
        return (Vec::new(), Next::after_seconds(60));
    }
    let mut batch: Vec<&Host> = due_soon(observed.hosts, observed.probes, observed.now, observed.schedule)
        .into_iter()
        .filter(|host| !observed.problems.contains_key(host.name()))
        .take(MOST_HOSTS)
        .collect();
    batch.sort_by_key(|host| host.name().to_owned());
    if batch.is_empty() {
        return (Vec::new(), Next::after_seconds(5));
    }
    let mut actions = old(observed);
    actions.push(Action::Probe(Box::new(probe(observed, &batch))));
    (actions, Next::after_seconds(5))
}

/// Ended probes that nobody needs any more.
fn old(observed: &HostObserved<'_>) -> Vec<Action> {
    let mut ended: Vec<&Arc<PlaybookRun>> = observed.probes.iter().filter(|run| is_over(run)).collect();
    ended.sort_by_key(|run| std::cmp::Reverse(ended_at(run)));
    let stale = |run: &&Arc<PlaybookRun>| {
        ended_at(run).is_some_and(|at| observed.now.as_second() - at.as_second() > FORGET_AFTER_SECONDS)
    };
    ended.into_iter().skip(KEEP).filter(stale).map(|run| Action::Forget(Box::new((**run).clone()))).collect()
}

/// A name that follows from the newest probe, and that none of those known has: two of one second may look alike.
fn next_name(namespace: &str, probes: &[Arc<PlaybookRun>]) -> String {
    let age = |run: &Arc<PlaybookRun>| (run.created_at().map(|time| time.0), run.name().to_owned());
    let before = probes.iter().max_by_key(|run| age(run)).and_then(|run| run.metadata.uid.as_deref());
    let mut name = format!("probe-{}", short_hash(&[namespace, before.unwrap_or("none")], 8));
    while probes.iter().any(|run| run.name() == name) {
        name = format!("probe-{}", short_hash(&[namespace, &name], 8));
    }
    name
}

/// The probe; its name follows from the one before it, so that everyone who sees the same makes the same.
fn probe(observed: &HostObserved<'_>, batch: &[&Host]) -> PlaybookRun {
    let namespace = observed.host.namespace().to_owned();
    let name = next_name(&namespace, observed.probes);
    let probed_hosts: BTreeMap<&str, ProbedHost> =
        batch.iter().map(|host| (host.name(), probed_host(host, observed.schedule.resumed_at))).collect();
    let mut run = PlaybookRun::new(
        &name,
        PlaybookRunSpec {
            timeout_seconds: TIMEOUT_SECONDS,
            ..PlaybookRunSpec::new(
                Intent::Probe,
                vec![Step::ProbeHost],
                batch.iter().map(|host| host.name().to_owned()).collect(),
            )
        },
    );
    run.metadata.namespace = Some(namespace);
    run.metadata.labels = Some([(label::INTENT.to_owned(), Intent::Probe.spec().slug.to_owned())].into());
    // Maps of plain values always become JSON.
    let probed_hosts = serde_json::to_string(&probed_hosts).unwrap_or_default();
    run.metadata.annotations = Some([(annotation::PROBED.to_owned(), probed_hosts)].into());
    run
}
