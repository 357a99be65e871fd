//! ClusterDeployment: makes the sets of machines, asks for the runs that turn them into a cluster, grants the cluster's
//! lock, and says how far it is.

mod action;
mod backup_before;
mod blocker;
mod component_status;
mod conditions;
mod deletion;
mod drained_for;
mod drifted;
mod drifted_machine;
mod ending_authority;
mod endpoint;
mod etcd_version;
mod external_etcd;
pub mod fencing;
pub mod former;
mod gates;
mod gathering;
pub mod key_transfer;
mod lane;
mod last_looks;
pub mod lock;
mod machine;
mod observed;
mod operations;
mod outdated;
mod outdated_machine;
mod own_authorities;
pub mod pki;
mod problem;
mod proposal;
mod prune_runs;
pub mod removals;
mod request;
pub mod restoring;
mod retrying;
mod rollout;
mod room;
mod rotating;
mod scale_down;
mod spec_problem;
mod state;
mod store;
mod summary;
mod surge;
mod tokens;
mod tried;
mod turn;
mod up_to_date;
mod upgrade;
mod wanted_upgrade;

use crds::ObjectExt;
use crds::names::finalizer;
use crds::step::{Effect, Intent, LockUse};
use crds::{ClusterDeploymentStatus, EtcdRestore, Machine};

use crate::etcd_restore::lets_backup_begin;
use crate::{Next, Plan};
pub use action::Action;
use lock::Lock;
pub use observed::Observed;
use proposal::Round;
use prune_runs::prune;
use state::ClusterState;
use tokens::Tokens;

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Action, ClusterDeploymentStatus> {
    let is_former = |machine: &&Machine| former::is_former(machine, observed.deployment, observed.sets);
    let (former, machines): (Vec<&Machine>, Vec<&Machine>) = observed.machines.iter().copied().partition(is_former);
    let observed = &Observed { machines: &machines, ..*observed };
    let mut state = ClusterState::observe(observed);
    state.upgrade = upgrade::find(&state);
    state.is_trusted = rotating::is_trusted(&state);
    state.encrypts_anew = rotating::encrypts_anew(&state);
    state.plugin_answers = rotating::plugin_answers(&state);
    state.outdated = operations::configure::due(&state);
    state.drifted = drifted::due(&state);
    state.rollout = rollout::look::look(&state);
    let tokens = tokens::find(&state);
    let lock = grant(&state, &tokens);
    let mut plan = match observed.deployment.metadata.deletion_timestamp {
        Some(_) => delete(&state, &lock, &tokens),
        None => keep(&state, lock, tokens),
    };
    former::tell(observed, &former, &mut plan.status);
    plan
}

/// A cluster that is being deleted.
fn delete(state: &ClusterState<'_>, lock: &Lock, tokens: &Tokens) -> Plan<Action, ClusterDeploymentStatus> {
    let verdict = operations::compare_store::verdict(state);
    let deletion = match verdict.as_ref().filter(|_| state.comparison.holds()) {
        Some(verdict) => deletion::held(verdict),
        None => deletion::plan(state, tokens),
    };
    let status = conditions::deleting(state, lock, tokens, &deletion, verdict.as_ref());
    let lost = tokens.lost();
    let mut actions = lost.map(|lost| lost.actions.clone()).unwrap_or_default();
    actions.extend(operations::compare_store::adopt(state));
    actions.extend(deletion.actions);
    actions.extend(prune(state, lock, operations::kept(state)));
    Plan {
        actions,
        status,
        next: lost.map_or(Next::OnChange, |lost| lost.next).or_sooner(deletion.next),
        waits_for: Some(deletion.message),
    }
}

/// A cluster that stays.
fn keep(state: &ClusterState<'_>, lock: Lock, tokens: Tokens) -> Plan<Action, ClusterDeploymentStatus> {
    let problem = spec_problem::find(state);
    let round = operations::propose(state, Round::new(state, lock, tokens, problem));
    let pruned = prune(state, &round.lock, operations::kept(state));
    let (status, waits_for) = conditions::living(state, &round);
    let is_held = state.deployment.has_finalizer(finalizer::CLUSTER_DEPLOYMENT);
    let first = (!is_held).then_some(Action::AddFinalizer);
    Plan {
        actions: first.into_iter().chain(round.actions).chain(pruned).collect(),
        status,
        next: round.requeue,
        waits_for,
    }
}

fn grant(state: &ClusterState<'_>, tokens: &Tokens) -> Lock {
    let deployment = state.deployment;
    let deleting = deployment.is_deleting();
    let status = deployment.status.clone().unwrap_or_default();
    let workers = lock::Workers::new(state.observed.machines, state.installed.is_some());
    let claimants: Vec<lock::Claimant> = state
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
                || !cleans && pki::are_to_come(state)
                || rollout::gate::supersedes(state, run);
            let may_start = !is_held && (cleans || !(deleting || goes()));
            let takes_backup = run.spec.intent == Intent::Backup;
            let lets = |restore: &&EtcdRestore| !takes_backup || lets_backup_begin(restore, run);
            let may_start = may_start && state.observed.restores.iter().all(lets);
            lock::Claimant::new(run, &workers, may_start)
        })
        .collect();
    lock::decide(&status.operations, tokens.last(), &claimants, state.observed.now)
}

#[cfg(test)]
mod tests;
