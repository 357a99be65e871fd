//! The history of a plane's runs: ended ones beyond the limit go, the oldest first, never one that a decision still
//! needs. Probes are counted apart: they push nothing out.

use std::collections::BTreeSet;

use crds::playbook_run::RunPhase;
use crds::step::{Effect, Intent};
use crds::{ObjectExt, PlaybookRun};

use super::act::Act;
use super::order::parts;
use super::placed::digest_in;
use super::restore_runs::is_needed;
use super::state::PlaneState;
use crate::attempts;
use crate::etcd::defragmentation::KEEP;
use crate::lock::Lock;

/// Attempts at the same thing that are kept.
const ATTEMPTS: usize = 8;

/// The runs that go.
pub(super) fn prune(state: &PlaneState<'_>, lock: &Lock) -> Vec<Act> {
    let executor = state.object.spec.binary.as_ref().and_then(|binary| binary.executor.clone()).unwrap_or_default();
    let limit = usize::try_from(executor.history_limit).unwrap_or(usize::MAX);
    let is_ended = |run: &&&PlaybookRun| attempts::is_over(run) && !run.is_deleting();
    let ended = state.seen.runs.iter().filter(is_ended).copied();
    let (probes, others): (Vec<&PlaybookRun>, Vec<&PlaybookRun>) =
        ended.partition(|run| run.spec.intent.changes_nothing());
    if probes.len() <= limit && others.len() <= limit {
        return Vec::new();
    }
    let needed = needed(state, lock);
    let surplus = [probes, others].into_iter().flat_map(|mut ended| {
        ended.retain(|run| !needed.contains(run.name()));
        ended.sort_by_key(|run| (attempts::ended_at(run), run.metadata.name.clone()));
        let surplus = ended.len().saturating_sub(limit);
        ended.into_iter().take(surplus)
    });
    surplus.map(|run| Act::DeleteRun(Box::new(run.clone()))).collect()
}

/// Names of the runs that a decision still needs.
fn needed(state: &PlaneState<'_>, lock: &Lock) -> BTreeSet<String> {
    let status = state.object.status.as_ref();
    let recorded = status.into_iter().flat_map(|status| &status.operations);
    let mut needed: BTreeSet<String> = lock.operations.iter().chain(recorded).map(|held| held.run.clone()).collect();
    let mut keep = |run: &PlaybookRun| {
        needed.insert(run.name().to_owned());
    };
    let membership = state.membership();
    for run in state.seen.runs.iter().copied() {
        let phase = run.status.as_ref().and_then(|status| status.phase);
        if run.spec.intent == Intent::Install && phase == Some(RunPhase::Succeeded) || is_needed(state, run) {
            keep(run);
        }
    }
    // By which it is known for what etcd was defragmented, and how often.
    state.defragmentations().into_iter().take(KEEP).for_each(&mut keep);
    for member in state.live.iter().chain(&state.leaving) {
        let about = |intents: &[Effect]| {
            let mut about: Vec<&PlaybookRun> =
                state.own_runs().filter(|run| attempts::is_about(run, member.uid())).collect();
            about.retain(|run| intents.contains(&run.spec.intent.spec().effect));
            about.sort_by_key(|run| std::cmp::Reverse((attempts::ended_at(run), run.metadata.name.clone())));
            about
        };
        // What it has of each part, until its status says it; and how often something was tried.
        for (_, part) in parts(&state.object.spec) {
            let mut of_part = about(&[Effect::Provisions]);
            of_part.retain(|run| digest_in(run, part, member).is_some());
            of_part.into_iter().take(2).for_each(&mut keep);
        }
        about(&[Effect::Provisions]).into_iter().take(ATTEMPTS).for_each(&mut keep);
        about(&[Effect::Removes]).into_iter().take(ATTEMPTS).for_each(&mut keep);
        membership.removals(member.machine).into_iter().for_each(&mut keep);
    }
    for forgotten in status.into_iter().flat_map(|status| &status.forgotten) {
        membership.removals_of(&forgotten.uid).into_iter().for_each(&mut keep);
    }
    needed
}
