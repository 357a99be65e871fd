//! ClusterDeployment: makes the sets of machines, asks for the runs that turn them into a cluster, grants the cluster's
//! lock, and says how far it is.

mod action;
mod addons_ready;
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
mod formed_cluster;
mod former;
mod gates;
mod gathering;
mod lane;
mod last_looks;
mod lock;
mod membership;
mod network_ready;
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
mod sentence;
mod spec_problem;
mod state;
mod summary;
mod surge;
mod tried;
mod turn;
mod up_to_date;
mod upgrade;
mod wanted_upgrade;

use crds::ObjectExt;
use crds::names::finalizer;
use crds::{ClusterDeploymentStatus, Machine};

use crate::former::is_former;
use crate::lock::Lock;
use crate::lock::tokens::Tokens;
use crate::{Next, Plan};
pub use action::Action;
pub(crate) use endpoint::claim as endpoint_claim;
pub use observed::Observed;
use proposal::Round;
use prune_runs::prune;
use state::ClusterState;

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Action, ClusterDeploymentStatus> {
    let of_another = |machine: &&Machine| is_former(machine, observed.deployment.into(), observed.sets);
    let (former, machines): (Vec<&Machine>, Vec<&Machine>) = observed.machines.iter().copied().partition(of_another);
    let observed = &Observed { machines: &machines, ..*observed };
    let mut state = ClusterState::observe(observed);
    state.upgrade = upgrade::find(&state);
    state.is_trusted = rotating::is_trusted(&state);
    state.encrypts_anew = rotating::encrypts_anew(&state);
    state.plugin_answers = rotating::plugin_answers(&state);
    state.outdated = operations::configure::due(&state);
    state.drifted = drifted::due(&state);
    state.rollout = rollout::look::look(&state);
    let tokens = lock::last_token(&state);
    let lock = lock::grant(&state, &tokens);
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
    let probe = lost.and_then(|lost| lost.probe.clone());
    let mut actions: Vec<Action> = probe.map(Action::CreateRun).into_iter().collect();
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

#[cfg(test)]
mod tests;
