//! The history of a cluster: ended runs beyond the limit go, oldest first, and their logs with them; never one that a
//! decision still needs. Probes change nothing, and there may be many of them while an API is away: they are counted apart,
//! so that they push nothing out.

use std::collections::BTreeSet;

use crds::PlaybookRun;
use crds::names::condition;
use crds::playbook_run::RunPhase;
use crds::step::Intent;
use jiff::Timestamp;

use super::Step;
use super::lock::Lock;
use super::scene::Scene;
use super::{rebuild, repair};
use crate::attempts::{self, Tried};
use crate::{provisioning, settings};

/// Attempts that nothing limits: the delay depends on no more of them than these.
const ENDLESS: usize = 8;

pub(super) fn steps(scene: &Scene<'_>, lock: &Lock) -> Vec<Step> {
    let limit = provisioning::executor(scene.deployment).history_limit;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let is_ended = |run: &&&PlaybookRun| attempts::is_over(run) && run.metadata.deletion_timestamp.is_none();
    let ended = scene.observed.runs.iter().filter(is_ended).copied();
    let (probes, others): (Vec<&PlaybookRun>, Vec<&PlaybookRun>) =
        ended.partition(|run| run.spec.intent == Intent::Probe);
    if probes.len() <= limit && others.len() <= limit {
        return Vec::new();
    }
    let needed = needed(scene, lock);
    let surplus = [probes, others].into_iter().flat_map(|mut ended| {
        // What a decision needs stays beside the limit: it pushes out nothing that somebody may want to read.
        ended.retain(|run| !needed.contains(name_of(run)));
        ended.sort_by_key(|run| (attempts::ended_at(run), run.metadata.name.clone()));
        let surplus = ended.len().saturating_sub(limit);
        ended.into_iter().take(surplus)
    });
    surplus
        .map(|run| Step::DeleteRun(Box::new(run.clone())))
        .collect()
}

fn name_of(run: &PlaybookRun) -> &str {
    run.metadata.name.as_deref().unwrap_or_default()
}

/// Names of the runs that a decision still needs.
fn needed(scene: &Scene<'_>, lock: &Lock) -> BTreeSet<String> {
    let status = scene.deployment.status.as_ref();
    let mut needed: BTreeSet<String> = lock.operations.iter().map(|held| held.run.clone()).collect();
    let recorded = status.into_iter().flat_map(|status| &status.operations);
    needed.extend(recorded.map(|held| held.run.clone()));
    for run in scene.observed.runs {
        let phase = run.status.as_ref().and_then(|status| status.phase);
        let installed = run.spec.intent == Intent::Install
            && !attempts::marks(run).is_empty()
            && phase == Some(RunPhase::Succeeded);
        // That a cluster stands is never forgotten with a status.
        if installed {
            needed.insert(name_of(run).to_owned());
        }
    }
    needed.extend(changes_of_etcd(scene));
    if lock_was_lost(scene) {
        needed.extend(telling(scene));
    }
    let machines: Vec<_> = scene
        .live
        .iter()
        .filter_map(|member| Some((member.machine, member.host_name()?)))
        .collect();
    needed.extend(settings::needed(scene.deployment, &machines, scene.observed.runs));
    // What was tried already is not tried again.
    needed.extend(repair::needed(scene));
    needed.extend(rebuild::needed(scene));
    let wanted = provisioning::wanted(scene.deployment);
    for member in &scene.live {
        let provisioned = member
            .machine
            .status
            .as_ref()
            .is_some_and(|status| status.provisioned_at.is_some());
        if !provisioned {
            let tried = attempts::tried(
                scene.observed.runs,
                &[Intent::Install, Intent::Join],
                member.uid(),
            );
            needed.extend(still_counted(&tried, &wanted));
        }
    }
    for member in &scene.leaving {
        let tried = attempts::tried(
            scene.observed.runs,
            &[Intent::Reset, Intent::Remove],
            member.uid(),
        );
        needed.extend(newest(&tried, ENDLESS));
        // That it was touched at all is what makes a reset due.
        let provisioning = attempts::tried(
            scene.observed.runs,
            &[Intent::Install, Intent::Join],
            member.uid(),
        );
        needed.extend(newest(&provisioning, 1));
        needed.extend(cleaning(scene, member.host_name(), member.deleted_at()));
    }
    needed
}

/// Runs that say who is a member of etcd: those that took out a machine which is still there or remembered, that made one the only
/// member, and that told the API servers last.
fn changes_of_etcd(scene: &Scene<'_>) -> Vec<String> {
    let council = scene.council();
    let removals = scene
        .leaving
        .iter()
        .flat_map(|member| council.removals(member.machine));
    let status = scene.deployment.status.as_ref();
    let forgotten = status.into_iter().flat_map(|status| &status.forgotten);
    let forgotten = forgotten.flat_map(|one| council.removals_of(&one.uid));
    let with = |step: crds::Step| {
        let mut runs: Vec<&PlaybookRun> = scene
            .observed
            .runs
            .iter()
            .copied()
            .filter(|run| run.spec.steps.contains(&step))
            .collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.metadata.creation_timestamp.clone()));
        runs
    };
    let recoveries = with(crds::Step::RecoverEtcd).into_iter().take(ENDLESS);
    let told = with(crds::Step::EtcdEndpoints).into_iter().take(ENDLESS);
    let needed = removals.chain(forgotten).chain(recoveries).chain(told);
    needed.map(|run| name_of(run).to_owned()).collect()
}

fn lock_was_lost(scene: &Scene<'_>) -> bool {
    let conditions = scene.deployment.status.as_ref().map(|status| &status.conditions);
    conditions.is_some_and(|conditions| {
        conditions
            .iter()
            .any(|there| there.type_ == condition::LOCK_OPEN && there.status == "False")
    })
}

/// Probes in which a machine told its token, and the newest of all, by which the next one is due.
fn telling(scene: &Scene<'_>) -> Vec<String> {
    let mut probes: Vec<&PlaybookRun> = scene
        .observed
        .runs
        .iter()
        .copied()
        .filter(|run| run.spec.intent == Intent::Probe)
        .collect();
    probes.sort_by_key(|run| std::cmp::Reverse(attempts::ended_at(run)));
    let told = |run: &PlaybookRun| {
        let status = run.status.as_ref();
        status.is_some_and(|status| status.hosts.iter().any(|result| result.fence.is_some()))
    };
    let needed = probes
        .iter()
        .enumerate()
        .filter(|(age, run)| *age < ENDLESS || told(run));
    needed.map(|(_, run)| name_of(run).to_owned()).collect()
}

/// Attempts that the next one's turn depends on: those at what is wanted now, of those that nothing limits only the
/// newest, and the last one of all, which gives the number.
fn still_counted(tried: &[Tried], wanted: &str) -> Vec<String> {
    let unlimited = |tried: &&Tried| {
        matches!(&tried.outcome, attempts::Outcome::Failed(failure) if failure.unreachable || !failure.has_begun() || failure.waits_for_others())
            || tried.outcome == attempts::Outcome::Held
    };
    let present = tried
        .iter()
        .filter(|tried| tried.wanted.as_deref() == Some(wanted));
    let (endless, counted): (Vec<&Tried>, Vec<&Tried>) = present.partition(unlimited);
    let endless = endless.into_iter().rev().take(ENDLESS);
    counted
        .into_iter()
        .chain(endless)
        .chain(tried.last())
        .map(|tried| tried.run.clone())
        .collect()
}

fn newest(tried: &[Tried], most: usize) -> Vec<String> {
    let newest = tried.iter().rev().take(most);
    newest.map(|tried| tried.run.clone()).collect()
}

/// Runs since the deletion that cleaned the machine, an administrator's too.
fn cleaning<'a>(
    scene: &'a Scene<'_>,
    host: Option<&'a str>,
    deleted: Option<Timestamp>,
) -> impl Iterator<Item = String> + 'a {
    let made = |run: &PlaybookRun| run.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let cleaned = move |run: &&&PlaybookRun| {
        host.is_some_and(|host| {
            run.spec.steps.contains(&crds::Step::Reset)
                && run.spec.hosts.iter().any(|named| named == host)
                && made(run) >= deleted
                && attempts::outcome(run, host) == attempts::Outcome::Succeeded
        })
    };
    let runs = scene.observed.runs.iter().filter(cleaned);
    runs.map(|run| name_of(run).to_owned())
}
