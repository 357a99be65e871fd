//! A ClusterDeployment's lock: how its runs hold it, which of them may start, and who may know its last token.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crds::lock::LockMode;
use crds::names::{annotation, condition};
use crds::step::{Effect, Intent, IntentSpec, LockUse, Role};
use crds::{EtcdRestore, Host, Machine, ObjectExt, PlaybookRun, conditions};

use super::state::{ClusterState, past};
use super::{fencing, pki, rollout};
use crate::attempts;
use crate::etcd_restore::lets_backup_begin;
use crate::lock::tokens::{self, Tokens, TokensObserved};
use crate::lock::{Claimant, Lock, decide};

/// The workers of a cluster.
struct Workers<'a> {
    hosts: HashSet<&'a str>,
    is_installed: bool,
}

impl<'a> Workers<'a> {
    /// The Hosts of worker Machines.
    fn new(machines: &[&'a Machine], is_installed: bool) -> Self {
        let workers = machines.iter().filter(|machine| machine.spec.role == Role::Worker);
        let hosts = workers.filter_map(|machine| Some(machine.spec.host_ref.as_ref()?.name.as_str()));
        Self { hosts: hosts.collect(), is_installed }
    }

    /// How a run would hold the cluster: Shared when it changes no member, or all its Hosts are workers', Separate
    /// when its Hosts are no part of the cluster.
    fn mode(&self, run: &PlaybookRun) -> LockMode {
        let IntentSpec { lock, effect, .. } = run.spec.intent.spec();
        let on_workers = run.spec.hosts.iter().all(|host| self.hosts.contains(host.as_str()));
        let is_shared = match lock {
            LockUse::Shared => true,
            LockUse::SharedOnWorkers => on_workers,
            LockUse::Exclusive | LockUse::None => false,
        };
        if fencing::is_fence(run) || is_shared && !self.is_installed && effect == Effect::Provisions {
            LockMode::Separate
        } else if is_shared {
            LockMode::Shared
        } else {
            LockMode::Exclusive
        }
    }
}

/// The lock, as it is from now on.
pub(super) fn grant(state: &ClusterState<'_>, tokens: &Tokens) -> Lock {
    let deployment = state.deployment;
    let deleting = deployment.is_deleting();
    let held = deployment.status.as_ref().map(|status| status.operations.as_slice()).unwrap_or_default();
    let workers = Workers::new(state.observed.machines, state.installed.is_some());
    let waits_for_authorities = pki::are_to_come(state);
    let claimants: Vec<Claimant> = state
        .observed
        .runs
        .iter()
        .filter(|run| run.spec.intent.spec().lock != LockUse::None)
        .map(|run| {
            let cleans = run.spec.intent.spec().effect == Effect::Removes;
            // What is cleaned, or about to be, is not worked on any more.
            let goes = || run.spec.hosts.iter().any(|host| state.is_leaving(host));
            let is_held = deployment.spec.paused
                || state.comparison.holds()
                || !cleans && waits_for_authorities
                || rollout::gate::supersedes(state, run);
            let may_start = !is_held && (cleans || !(deleting || goes()));
            let takes_backup = run.spec.intent == Intent::Backup;
            let lets = |restore: &&EtcdRestore| !takes_backup || lets_backup_begin(restore, run);
            let may_start = may_start && state.observed.restores.iter().all(lets);
            Claimant::new(run, workers.mode(run), may_start)
        })
        .collect();
    decide(held, tokens.last(), &claimants, state.observed.now)
}

/// The lock's last token.
pub(super) fn last_token(state: &ClusterState<'_>) -> Tokens {
    let status = state.deployment.status.as_ref();
    if let Some(last) = status.and_then(|status| status.last_token) {
        return Tokens::Known(state.comparison.raised(last));
    }
    let closed = status
        .and_then(|status| conditions::find(&status.conditions, condition::LOCK_AVAILABLE))
        .filter(|open| open.status == "False");
    let found = tokens::find(&TokensObserved {
        now: state.observed.now,
        operations: status.map(|status| status.operations.as_slice()).unwrap_or_default(),
        closed_since: closed.map(|closed| closed.last_transition_time.0),
        runs: state.observed.runs,
        claimed: claimed(state),
        is_unlocked: attempts::names_generation(&state.deployment.metadata, annotation::UNLOCK),
        unlock: state.annotate(annotation::UNLOCK, &state.generation().to_string()),
        owner: &state.owner,
    });
    match found {
        // Machines that serve it by claims that are not known here may have the authorities.
        Tokens::New(last) if !state.comparison.contradictions.is_empty() => Tokens::Found(last),
        found => found,
    }
}

/// Hosts that the cluster's Machines hold, by name; without those of machines that a rebuild forgets, on which no run
/// will ever begin under their present claims.
fn claimed<'a>(state: &ClusterState<'a>) -> BTreeMap<&'a str, &'a Host> {
    let observed = state.observed;
    let goes_on = |machine: &&&Machine| !past::is_of_the_past(observed, machine);
    let machines = observed.machines.iter().filter(goes_on);
    let uids: BTreeSet<&str> = machines.filter_map(|machine| machine.metadata.uid.as_deref()).collect();
    let held = |host: &&&Host| {
        let claim = host.spec.claim_ref.as_ref();
        claim.is_some_and(|claim| uids.contains(claim.uid.as_str()))
    };
    let hosts = state.observed.hosts.iter().filter(held);
    hosts.map(|host| (host.name(), *host)).collect()
}
