//! ClusterDeployment: makes the sets of machines, asks for the runs that turn them into a cluster, grants the cluster's
//! lock, and says how far it is.

mod action;
mod blocker;
mod component_status;
mod conditions;
mod deletion;
mod endpoint;
pub mod fencing;
pub mod former;
mod gates;
pub mod lock;
mod machine;
mod operations;
pub mod pki;
mod problem;
mod proposal;
pub mod removals;
mod request;
mod retrying;
mod scale_down;
mod state;
mod summary;
mod tokens;
mod up_to_date;

use crds::ObjectExt;
use crds::names::finalizer;
use crds::step::{Effect, LockUse};
use crds::{
    Cluster, ClusterDeployment, ClusterDeploymentStatus, Host, Machine, MachineSet, PlaybookRun,
    RemediationPolicy,
};
use jiff::Timestamp;

use crate::cluster::NodeSeen;
use crate::hooks::Library;
use crate::settings::Manifests;
use crate::{Next, Plan};
pub use action::Action;
use lock::Lock;
use operations::prune_runs::prune;
use proposal::Round;
use state::ClusterState;
use tokens::Tokens;

/// What ends without being seen here is looked for again after this.
const LOOK_AGAIN_SECONDS: u64 = 30;

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// The ClusterDeployment, read from the API and not from a cache: its lock is decided here.
    pub deployment: &'a ClusterDeployment,
    /// MachineSets of the namespace.
    pub sets: &'a [&'a MachineSet],
    /// Machines of the cluster.
    pub machines: &'a [&'a Machine],
    /// Hosts of the namespace.
    pub hosts: &'a [&'a Host],
    /// Runs of the cluster.
    pub runs: &'a [&'a PlaybookRun],
    /// The ConfigMap of `executor.customPlaybooksRef`, where hooks name it.
    pub library: Option<&'a Library>,
    /// ClusterDeployments of all namespaces that the operator watches; this one may be among them.
    pub deployments: &'a [&'a ClusterDeployment],
    /// RemediationPolicies of the namespace.
    pub policies: &'a [&'a RemediationPolicy],
    /// The Cluster object of the same name.
    pub cluster: Option<&'a Cluster>,
    /// The Nodes of the machines in `status.forgotten`, as far as there are any; `None`: the cluster's API is not
    /// reached.
    pub forgotten_nodes: Option<&'a [NodeSeen]>,
    /// What the ConfigMaps with manifests hold.
    pub manifests: &'a Manifests,
    /// Whether the Secret with the cluster's authorities is there.
    pub pki: bool,
    /// Whether the Secret with the administrator's kubeconfig is there.
    pub kubeconfig: bool,
}

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Action, ClusterDeploymentStatus> {
    let is_former = |machine: &&Machine| former::is_former(machine, observed.deployment, observed.sets);
    let (former, machines): (Vec<&Machine>, Vec<&Machine>) =
        observed.machines.iter().copied().partition(is_former);
    let observed = &Observed {
        machines: &machines,
        ..*observed
    };
    let state = ClusterState::observe(observed);
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
    let deletion = deletion::plan(state, tokens);
    let status = conditions::deleting(state, lock, tokens, &deletion);
    let lost = tokens.lost();
    let mut steps = lost.map(|lost| lost.actions.clone()).unwrap_or_default();
    steps.extend(deletion.actions);
    steps.extend(prune(state, lock));
    Plan {
        steps,
        status,
        next: lost
            .map_or(Next::OnChange, |lost| lost.next)
            .or_sooner(deletion.next),
        waits_for: Some(deletion.message),
    }
}

/// A cluster that stays.
fn keep(state: &ClusterState<'_>, lock: Lock, tokens: Tokens) -> Plan<Action, ClusterDeploymentStatus> {
    let problem = problem::find(state);
    let round = operations::propose(state, Round::new(state, lock, tokens, problem));
    let (status, waits_for) = conditions::living(state, &round);
    let finalizers = state.deployment.metadata.finalizers.iter().flatten();
    let has_finalizer = finalizers
        .clone()
        .any(|there| there == finalizer::CLUSTER_DEPLOYMENT);
    let first = (!has_finalizer).then_some(Action::AddFinalizer);
    Plan {
        steps: first.into_iter().chain(round.actions).collect(),
        status,
        next: round.requeue,
        waits_for,
    }
}

fn grant(state: &ClusterState<'_>, tokens: &Tokens) -> Lock {
    let deployment = state.deployment;
    let deleting = deployment.is_deleting();
    let status = deployment.status.clone().unwrap_or_default();
    let claimants: Vec<lock::Claimant> = state
        .observed
        .runs
        .iter()
        .filter(|run| run.spec.intent.spec().lock != LockUse::None)
        .map(|run| {
            let cleans = run.spec.intent.spec().effect == Effect::Removes;
            // What is cleaned, or about to be, is not worked on any more.
            let goes = || run.spec.hosts.iter().any(|host| state.is_leaving(host));
            let may_start = !deployment.spec.paused && (cleans || !(deleting || goes()));
            lock::Claimant::of(run, state.observed.machines, may_start)
        })
        .collect();
    lock::decide(&status.operations, tokens.last(), &claimants, state.observed.now)
}

#[cfg(test)]
mod tests;
