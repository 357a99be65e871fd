//! The steps by which a machine leaves a cluster that goes on: its turn, its hooks, its Pods, its place in etcd, its
//! Node, in this order. In a cluster's own deletion there is nothing to leave.

use crds::ClusterDeployment;
use crds::ObjectExt;
use crds::Reason;
use crds::conditions::{self, Statement};
use crds::names::condition;

use super::deletion::Leaving;
use super::drain::{self, Progress, drain};
use super::force::{self, Force};
use crate::attempts::RetryDecision;
use crate::departure::{self, Departure};
use crate::formed_cluster::FormedCluster;
use crate::hooks::{self, HookState};
use crate::machine::action::Action;
use crate::machine::observed::{Observed, active_run};
use crate::machine::retry::retry;
use crate::moment::clock;
use crate::{Next, provisioning};

/// How often a deleted Node is looked for again.
const NODE_SECONDS: u64 = 5;

/// What a person may do about hooks that fail.
const WITHOUT_HOOKS: &str = "to go on without it take it out of spec.hooks.beforeDrain";

/// How far the machine is from being no part of the cluster any more.
pub(super) enum DeletionSteps {
    /// It is none; what is to be said of its Pods, if that is new.
    Over(Option<Statement>),
    /// What it waits for.
    Waits(Leaving),
}

pub(super) fn leave_cluster(observed: &Observed<'_>, host: &str, force: Option<Force>) -> DeletionSteps {
    let Some(cluster) = cluster_that_goes_on(observed) else {
        return match install_not_recorded(observed) {
            true => DeletionSteps::Waits(Leaving::waits(
                Reason::RunUnderWay,
                "waits for the end of the install to be recorded".into(),
            )),
            false => DeletionSteps::Over(None),
        };
    };
    if force == Some(Force::ByHand) && is_lost(observed) {
        // Nobody is there who would have to be told: it is written down, and made up for later.
        return match force::is_written_down(observed.machine, cluster) {
            true => DeletionSteps::Over(None),
            false => {
                let message = "waits for its cluster to write down what stands for it there".to_owned();
                DeletionSteps::Waits(Leaving::waits(Reason::ClusterUnreachable, message))
            }
        };
    }
    let departure = departure::decide(observed.machine, observed.machines, cluster, observed.runs);
    if let Departure::WaitingForTurn(why) = departure {
        return DeletionSteps::Waits(Leaving::waits(Reason::WaitingForTurn, why));
    }
    if force.is_none()
        && let Some(waits) = cluster.deployment.and_then(|deployment| hooks(observed, deployment))
    {
        return DeletionSteps::Waits(waits);
    }
    if observed.nodes.is_none() && observed.has_node() {
        return DeletionSteps::Waits(unreachable(observed, host));
    }
    let drained = match drain(observed, host) {
        Progress::UnderWay(leaving) => return DeletionSteps::Waits(leaving),
        Progress::Over(statement) => statement,
    };
    let etcd = match departure {
        Departure::MayGo => Some(format!("waits to be taken out of etcd, Host {host}")),
        Departure::UnderWay(how) => Some(how),
        Departure::NotAMember | Departure::Left | Departure::WaitingForTurn(_) => None,
    };
    if let Some(message) = etcd {
        let leaving = Leaving::waits(Reason::LeavingEtcd, message);
        return DeletionSteps::Waits(Leaving { drained, ..leaving });
    }
    match node(observed, host, force) {
        Some(leaving) => DeletionSteps::Waits(Leaving { drained: leaving.drained.clone().or(drained), ..leaving }),
        None => DeletionSteps::Over(drained),
    }
}

/// Whether its Pods would be looked at, if they were given.
pub(in crate::machine) fn looks_at_pods(observed: &Observed<'_>, host: &str) -> bool {
    let waits_for_pods = || {
        let actions = leave_cluster(observed, host, force::removal(observed, host));
        matches!(actions, DeletionSteps::Waits(leaving) if leaving.reason == Reason::Draining)
    };
    observed.nodes.is_some()
        && active_run(observed.runs, host).is_none()
        && waits_for_pods()
        && drain::is_under_way(observed, host)
}

/// What is to be done before the cluster has no Node of the machine; none: it has none.
pub(super) fn node(observed: &Observed<'_>, node: &str, force: Option<Force>) -> Option<Leaving> {
    let machine = observed.machine;
    cluster_that_goes_on(observed)?;
    if !observed.has_node() || (force == Some(Force::ByHand) && is_lost(observed)) {
        return None;
    }
    let Some(nodes) = observed.nodes else {
        return Some(unreachable(observed, node));
    };
    nodes.iter().find(|seen| seen.name == node)?;
    Some(Leaving {
        actions: vec![Action::DeleteNode {
            namespace: machine.namespace().to_owned(),
            cluster: machine.spec.cluster_name.clone(),
            node: node.into(),
        }],
        next: Next::after_seconds(NODE_SECONDS),
        ..Leaving::waits(Reason::DeletingNode, format!("deletes Node {node}"))
    })
}

/// The cluster, if it stands, stays, and any run has ever made the machine a part of it.
fn cluster_that_goes_on<'a>(observed: &Observed<'a>) -> Option<FormedCluster<'a>> {
    let cluster = observed.formed?;
    let touched = provisioning::was_touched(observed.machine, observed.runs);
    (cluster.is_installed && !cluster.is_deleting && touched).then_some(cluster)
}

/// The cluster stands, and does not say so yet.
fn install_not_recorded(observed: &Observed<'_>) -> bool {
    let not_yet = |cluster: FormedCluster<'_>| !cluster.is_deleting && !cluster.is_installed;
    observed.formed.is_some_and(not_yet) && provisioning::installed_with(observed.machine, observed.runs).is_some()
}

/// Whether the API of the cluster is known not to answer; not to have looked yet is not to know.
fn is_lost(observed: &Observed<'_>) -> bool {
    let reached = |cluster: &crds::Cluster| {
        let status = cluster.status.as_ref();
        status.is_none_or(|status| conditions::is_true(&status.conditions, condition::REACHABLE))
    };
    observed.nodes.is_none() && !observed.cluster.is_some_and(reached)
}

fn unreachable(observed: &Observed<'_>, host: &str) -> Leaving {
    let cluster = &observed.machine.spec.cluster_name;
    let message = format!(
        "waits for the API of cluster {cluster}, which does not answer, to move the Pods of Node {host} and to delete it; without it: {}",
        force::command(observed)
    );
    Leaving { drained: drain::unknown(observed), ..Leaving::waits(Reason::ClusterUnreachable, message) }
}

fn hooks(observed: &Observed<'_>, deployment: &ClusterDeployment) -> Option<Leaving> {
    let waits = |message| Some(Leaving::waits(Reason::WaitingForHooks, message));
    match hooks::before_drain(observed.machine, deployment, observed.runs) {
        HookState::None | HookState::Done | HookState::PassedOver(_) => None,
        HookState::Wanted => waits("waits for the run of hooks.beforeDrain".to_owned()),
        HookState::UnderWay(message) => waits(message),
        HookState::Failed(message) => {
            let again = match hooks::retry_before_drain(observed.machine, deployment, observed.runs, observed.now) {
                RetryDecision::Later { at, .. } => format!("tried again at {}", clock(at)),
                _ => "it is tried again".to_owned(),
            };
            waits(format!("{message}; {again}; {WITHOUT_HOOKS}"))
        }
        HookState::Stopped(message) => {
            waits(format!("{message}; to have it played again: {}; {WITHOUT_HOOKS}", retry(observed)))
        }
    }
}
