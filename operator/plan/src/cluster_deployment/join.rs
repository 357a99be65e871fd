//! Joins: one Shared run for each batch of workers that have their Hosts. One bad worker is tried again alone and holds
//! up nobody.

use std::collections::BTreeMap;

use crds::step::{Intent, Role};
use crds::{conditions, names};
use jiff::{SignedDuration, Timestamp};

use super::Step;
use super::growth;
use super::part::component;
use super::runs::{self, Attempt, BATCH, Target};
use super::scene::{Member, Scene};
use crate::Next;
use crate::attempts::{Failure, Turn};
use crate::claims::{Pool, Wish};
use crate::sentence::count;

/// How long a batch waits at most for machines that are about to have their Hosts.
const GATHER: SignedDuration = SignedDuration::from_secs(5);

/// Where the joins stand.
#[derive(Default)]
pub(super) struct Joins<'a> {
    /// Runs to make.
    pub steps: Vec<Step>,
    /// Workers that are tried again later, and how often it was in vain.
    pub later: Vec<(Member<'a>, usize, Timestamp, Failure)>,
    /// Workers for which a person must act.
    pub halted: Vec<(Member<'a>, usize, Option<Failure>)>,
    /// Why those that are due do not begin.
    pub held: Option<String>,
    /// When to look again.
    pub next: Option<Next>,
}

pub(super) fn of<'a>(scene: &Scene<'a>) -> Joins<'a> {
    let mut joins = Joins::default();
    if scene.installed.is_none() {
        return joins;
    }
    let mut due: BTreeMap<Attempt, Vec<Target<'a>>> = BTreeMap::new();
    for worker in scene.of_role(Role::Worker) {
        let Some(host) = worker.host_name() else { continue };
        if scene.active_on(host).is_some() {
            continue;
        }
        match scene.turn(&worker) {
            Turn::Now {
                attempt,
                retry,
                goes_on,
            } => {
                let attempt = Attempt {
                    number: attempt,
                    resume: goes_on.is_some(),
                };
                due.entry(attempt).or_default().push((worker, retry));
            }
            Turn::Later { at, failures, cause } => joins.later.push((worker, failures, at, cause)),
            Turn::Halted { failures, cause } => joins.halted.push((worker, failures, cause)),
            Turn::UnderWay { .. } | Turn::Done { .. } => {}
        }
    }
    if due
        .get(&Attempt::FIRST)
        .is_some_and(|first| gathers(scene, first))
    {
        due.remove(&Attempt::FIRST);
        joins.next = Some(Next::after_seconds(1));
    }
    // One that was never reached yet is in the making.
    let status = scene.observed.cluster.and_then(|cluster| cluster.status.as_ref());
    if !due.is_empty()
        && status.is_some_and(|status| status.cluster_uid.is_some())
        && let Some(why) = growth::api_is_gone(scene).or_else(|| etcd_is_unwell(scene))
    {
        let workers = count(due.values().map(Vec::len).sum(), "worker");
        joins.held = Some(format!("{workers} to join; {why}"));
        return joins;
    }
    for (attempt, targets) in due {
        for batch in targets.chunks(BATCH) {
            joins
                .steps
                .push(runs::create(scene, Intent::Join, batch, attempt));
        }
    }
    joins
}

/// Without etcd the API answers, and takes nobody in.
fn etcd_is_unwell(scene: &Scene<'_>) -> Option<String> {
    let (well, message) = component(scene, "etcd")?;
    (!well).then(|| format!("waits for etcd to be well: {message}"))
}

/// Whether more machines are about to have their Hosts, so that one run may take them all. A batch waits for them only
/// so long, counted from its youngest claim.
fn gathers(scene: &Scene<'_>, batch: &[Target<'_>]) -> bool {
    let youngest = batch.iter().filter_map(|(member, _)| claimed_at(member)).max();
    let waited = youngest.map_or(SignedDuration::ZERO, |youngest| {
        scene.observed.now.duration_since(youngest)
    });
    if waited >= GATHER {
        return false;
    }
    let pool = Pool::of(scene.observed.hosts);
    let about_to_claim = scene.of_role(Role::Worker).any(|member| {
        member.host.is_none()
            && (member.machine.spec.host_ref.is_some() || pool.offer(&Wish::of(member.machine)).free > 0)
    });
    let have = scene.of_role(Role::Worker).count();
    let about_to_be_made = i32::try_from(have).unwrap_or(i32::MAX) < scene.workers_wanted();
    about_to_claim || about_to_be_made
}

fn claimed_at(member: &Member<'_>) -> Option<Timestamp> {
    let status = member.machine.status.as_ref()?;
    let claimed = conditions::find(&status.conditions, names::condition::HOST_CLAIMED)?;
    (claimed.status == "True").then_some(claimed.last_transition_time.0)
}
