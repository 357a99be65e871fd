//! Prunes the history of a cluster: ended runs beyond the limit go, oldest first, and their logs with them; never one
//! that a decision still needs. Probes and comparisons change nothing, and there may be many of them while an API is
//! away: they are counted apart, so that they push nothing out.

use std::collections::BTreeSet;

use crds::ObjectExt;
use crds::PlaybookRun;
use crds::playbook_run::RunPhase;
use crds::step::Intent;
use jiff::Timestamp;

use super::action::Action;
use super::state::ClusterState;
use crate::attempts::{self, PastAttempt};
use crate::lock::Lock;
use crate::{provisioning, settings};

/// Attempts that nothing limits: the delay depends on no more of them than these.
const ENDLESS: usize = 8;

/// The runs that go; `kept` names those by which operations decide.
pub(super) fn prune(state: &ClusterState<'_>, lock: &Lock, kept: impl Iterator<Item = String>) -> Vec<Action> {
    let limit = provisioning::executor(state.deployment).history_limit;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let is_ended = |run: &&&PlaybookRun| attempts::is_over(run) && !run.is_deleting();
    let ended = state.observed.runs.iter().filter(is_ended).copied();
    let (probes, others): (Vec<&PlaybookRun>, Vec<&PlaybookRun>) =
        ended.partition(|run| run.spec.intent.changes_nothing());
    if probes.len() <= limit && others.len() <= limit {
        return Vec::new();
    }
    let mut needed = needed(state, lock);
    needed.extend(kept);
    let surplus = [probes, others].into_iter().flat_map(|mut ended| {
        // What a decision needs stays beside the limit: it pushes out nothing that somebody may want to read.
        ended.retain(|run| !needed.contains(run.name()));
        ended.sort_by_key(|run| (attempts::ended_at(run), run.metadata.name.clone()));
        let surplus = ended.len().saturating_sub(limit);
        ended.into_iter().take(surplus)
    });
    surplus.map(|run| Action::DeleteRun(Box::new(run.clone()))).collect()
}

/// Names of the runs that a decision still needs.
fn needed(state: &ClusterState<'_>, lock: &Lock) -> BTreeSet<String> {
    let status = state.deployment.status.as_ref();
    let mut needed: BTreeSet<String> = lock.operations.iter().map(|held| held.run.clone()).collect();
    let recorded = status.into_iter().flat_map(|status| &status.operations);
    needed.extend(recorded.map(|held| held.run.clone()));
    for run in state.observed.runs {
        let phase = run.status.as_ref().and_then(|status| status.phase);
        let installed = run.spec.intent == Intent::Install
            && !attempts::targets(run).is_empty()
            && phase == Some(RunPhase::Succeeded);
        // That a cluster stands is never forgotten with a status.
        if installed {
            needed.insert(run.name().to_owned());
        }
    }
    let machines: Vec<_> = state.live.iter().filter_map(|member| Some((member.machine, member.host_name()?))).collect();
    needed.extend(settings::needed(state.deployment, &machines, state.observed.runs));
    let wanted = state.terms.wanted.clone();
    for member in &state.live {
        if !member.is_provisioned() {
            let tried = attempts::tried(state.observed.runs, &[Intent::Install, Intent::Join], member.uid());
            needed.extend(still_counted(&tried, &wanted));
        }
    }
    for member in &state.leaving {
        let tried = attempts::tried(state.observed.runs, &[Intent::Reset, Intent::Remove], member.uid());
        needed.extend(newest(&tried, ENDLESS));
        // That it was touched at all is what makes a reset due.
        let provisioning = attempts::tried(state.observed.runs, &[Intent::Install, Intent::Join], member.uid());
        needed.extend(newest(&provisioning, 1));
        needed.extend(cleaning(state, member.host_name(), member.deleted_at()));
    }
    needed
}

/// Attempts that the next one's turn depends on: those at what is wanted now, of those that nothing limits only the
/// newest, and the last one of all, which gives the number.
fn still_counted(tried: &[PastAttempt], wanted: &str) -> Vec<String> {
    let unlimited = |tried: &&PastAttempt| {
        matches!(&tried.outcome, attempts::Outcome::Failed(failure) if failure.unreachable || !failure.has_begun() || failure.waits_for_others())
            || tried.outcome == attempts::Outcome::Held
    };
    let present = tried.iter().filter(|tried| tried.wanted.as_deref() == Some(wanted));
    let (endless, counted): (Vec<&PastAttempt>, Vec<&PastAttempt>) = present.partition(unlimited);
    let endless = endless.into_iter().rev().take(ENDLESS);
    counted.into_iter().chain(endless).chain(tried.last()).map(|tried| tried.run.clone()).collect()
}

fn newest(tried: &[PastAttempt], most: usize) -> Vec<String> {
    let newest = tried.iter().rev().take(most);
    newest.map(|tried| tried.run.clone()).collect()
}

/// Runs since the deletion that cleaned the machine, an administrator's too.
fn cleaning<'a>(
    state: &'a ClusterState<'_>,
    host: Option<&'a str>,
    deleted: Option<Timestamp>,
) -> impl Iterator<Item = String> + 'a {
    let made = |run: &PlaybookRun| run.created_at().map(|time| time.0);
    let cleaned = move |run: &&&PlaybookRun| {
        host.is_some_and(|host| {
            run.spec.steps.contains(&crds::Step::Reset)
                && run.spec.hosts.iter().any(|named| named == host)
                && made(run) >= deleted
                && attempts::outcome(run, host) == attempts::Outcome::Succeeded
        })
    };
    let runs = state.observed.runs.iter().filter(cleaned);
    runs.map(|run| run.name().to_owned())
}
