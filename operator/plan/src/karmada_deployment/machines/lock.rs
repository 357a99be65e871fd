//! The lock of a plane's machines. All runs hold it alone, but for those on machines that are no part of the plane any
//! more: a plane has few machines, and each of them carries all of it.

use std::collections::{BTreeMap, BTreeSet};

use crds::commands::{self, Target};
use crds::lock::LockMode;
use crds::names::annotation;
use crds::step::{Effect, LockUse};
use crds::{Host, ObjectExt, PlaybookRun};

use super::state::PlaneState;
use crate::attempts;
use crate::cluster_deployment::fencing::is_fence;
use crate::lock::tokens::{self, Tokens, TokensObserved};
use crate::lock::{Claimant, Lock, decide};

/// The lock, as it is from now on.
pub(super) fn grant(state: &PlaneState<'_>, tokens: &Tokens) -> Lock {
    let object = state.object;
    let held = object.status.as_ref().map(|status| status.operations.as_slice()).unwrap_or_default();
    let claims = state.seen.runs.iter().filter(|run| run.spec.intent.spec().lock != LockUse::None);
    let claimants: Vec<Claimant> = claims
        .map(|run| {
            let cleans = run.spec.intent.spec().effect == Effect::Removes;
            // What is cleaned, or about to be, is not worked on any more.
            let goes = || run.spec.hosts.iter().any(|host| state.is_leaving(host));
            let is_held = object.spec.paused || state.comparison.holds();
            let may_start = !is_held && (cleans || !(object.is_deleting() || goes()));
            Claimant::new(run, mode(run), may_start)
        })
        .collect();
    decide(held, tokens.last(), &claimants, state.now)
}

fn mode(run: &PlaybookRun) -> LockMode {
    if is_fence(run) { LockMode::Separate } else { LockMode::Exclusive }
}

/// The lock's last token.
pub(super) fn last_token(state: &PlaneState<'_>) -> Tokens {
    let status = state.object.status.as_ref();
    if let Some(last) = status.and_then(|status| status.last_token) {
        return Tokens::Known(state.comparison.raised(last));
    }
    let metadata = &state.object.metadata;
    let generation = state.object.generation();
    let found = tokens::find(&TokensObserved {
        now: state.now,
        operations: status.map(|status| status.operations.as_slice()).unwrap_or_default(),
        closed_since: state.closed_since(),
        runs: state.seen.runs,
        claimed: claimed(state),
        is_unlocked: attempts::names_generation(metadata, annotation::UNLOCK),
        unlock: commands::annotate(Target::KarmadaDeployment, metadata, annotation::UNLOCK, generation),
        owner: &state.owner,
    });
    match found {
        // Machines that serve it by claims that are not known here may have the authorities.
        Tokens::New(last) if !state.comparison.contradictions.is_empty() => Tokens::Found(last),
        found => found,
    }
}

/// Hosts that the plane's Machines hold, by name.
fn claimed<'a>(state: &PlaneState<'a>) -> BTreeMap<&'a str, &'a Host> {
    let uids: BTreeSet<&str> = state.machines.iter().filter_map(|machine| machine.metadata.uid.as_deref()).collect();
    let is_held = |host: &&&Host| host.spec.claim_ref.as_ref().is_some_and(|claim| uids.contains(claim.uid.as_str()));
    state.seen.hosts.iter().filter(is_held).map(|host| (host.name(), *host)).collect()
}
