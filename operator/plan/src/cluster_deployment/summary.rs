//! The summary of a cluster: all of its status but message, phase and conditions.

use crds::ObjectExt;
use crds::cluster_deployment::ReplicaCounts;
use crds::names::{self, annotation};
use crds::references::LocalRef;
use crds::step::Role;
use crds::{ClusterDeploymentStatus, KubernetesVersion, PlaybookRun};

use super::endpoint;
use super::outdated;
use super::state::{ClusterMachine, ClusterState};
use super::upgrade;
use crate::lock::Lock;
use crate::lock::tokens::Tokens;
use crate::{attempts, components, undecodable};

/// All but message, phase and conditions.
pub(super) fn base(state: &ClusterState<'_>, lock: &Lock, tokens: &Tokens) -> ClusterDeploymentStatus {
    let old = state.deployment.status.clone().unwrap_or_default();
    let deleting = state.deployment.is_deleting();
    let generation = state.generation();
    let wanted = state.terms.wanted.clone();
    let queued = state.active.iter().any(|run| {
        let older = attempts::generation_of(run).is_some_and(|made| made < generation);
        older && attempts::wanted_of(run) != Some(&wanted)
    });
    let url = state.endpoint();
    let first = state.first_control_plane().map(|member| member.name().to_owned());
    let started = started_version(state, lock);
    ClusterDeploymentStatus {
        observed_generation: state.deployment.metadata.generation,
        kubernetes_version: version(state).or(old.kubernetes_version),
        started_kubernetes_version: started,
        cluster_ref: url.as_ref().map(|_| LocalRef::new(&state.name)).or(old.cluster_ref),
        kubeconfig_ref: match &url {
            Some(_) => Some(LocalRef::new(names::kubeconfig_secret(&state.name))),
            None => old.kubeconfig_ref,
        },
        endpoint: url.or(old.endpoint),
        control_plane: Some(counts(state, Role::ControlPlane, state.deployment.spec.control_plane.replicas)),
        workers: Some(counts(state, Role::Worker, state.workers_wanted())),
        first_control_plane: first.or(old.first_control_plane),
        installed_at: state.installed.clone(),
        operations: lock.operations.clone(),
        components: components::resolved(
            state.deployment,
            started.unwrap_or_else(|| components::version(state.deployment)),
            state.observed.runs,
        ),
        applied_manifests: outdated::applied(state),
        last_token: lock.last_token,
        initial_token: old.initial_token.or(tokens.initial()),
        control_plane_endpoints: endpoint::control_planes(state),
        pending_generation: (queued && !deleting).then_some(generation),
        approved_contradictions: state.comparison.approved(),
        compared_since: state.comparison.since().or(old.compared_since),
        comparisons: state.comparison.comparisons(&old.comparisons, old.last_token.or(tokens.last())),
        plan: state.rollout.plan.clone().filter(|_| !deleting),
        conditions: undecodable::ended(&old.conditions),
        ..old
    }
}

pub(super) fn counts(state: &ClusterState<'_>, role: Role, wanted: i32) -> ReplicaCounts {
    let number = |holds: &dyn Fn(&ClusterMachine<'_>) -> bool| {
        i32::try_from(state.of_role(role).filter(|member| holds(member)).count()).unwrap_or(i32::MAX)
    };
    let ready = number(&|member| member.is_ready());
    let version = state.deployment.spec.kubernetes_version;
    let is_updated = |member: &ClusterMachine<'_>| {
        let seen = member.machine.status.as_ref().and_then(|status| status.kubernetes_version.as_ref());
        seen.is_some_and(|seen| seen.parse() == Ok(version))
    };
    ReplicaCounts {
        replicas: wanted,
        ready_replicas: ready,
        updated_replicas: number(&is_updated),
        summary: format!("{ready}/{wanted}"),
    }
}

/// The version of every node, when they agree.
fn version(state: &ClusterState<'_>) -> Option<String> {
    let mut versions = state
        .live
        .iter()
        .filter_map(|member| member.machine.status.as_ref())
        .filter_map(|status| status.kubernetes_version.as_ref());
    let first = versions.next()?;
    versions.all(|other| other == first).then(|| first.clone())
}

/// The version whose rollout has begun. A run gets its lock and the cluster this version in one write, whose
/// precondition is the very spec that was read: what is wanted later is not what the run brings.
fn started_version(state: &ClusterState<'_>, lock: &Lock) -> Option<KubernetesVersion> {
    let old = state.deployment.status.as_ref();
    let held_before = |run: &str| {
        let operations = old.into_iter().flat_map(|status| &status.operations);
        operations.into_iter().any(|held| held.run == run)
    };
    let known = old.and_then(|status| status.started_kubernetes_version);
    // One that goes on with what has begun begins nothing, whatever is wanted by now.
    let goes_on = |run: &PlaybookRun| {
        known.is_some_and(|known| run.annotation(annotation::ROLLS_OUT) == Some(&known.to_string()))
    };
    let begins = lock.operations.iter().any(|held| {
        let run = state.active.iter().find(|run| run.metadata.name.as_ref() == Some(&held.run));
        // An administrator's run of single steps is no rollout, whatever it is called.
        let ours = |run: &&&PlaybookRun| !attempts::targets(run).is_empty() && !goes_on(run);
        run.filter(ours).is_some_and(|run| run.spec.intent.spec().brings_version) && !held_before(&held.run)
    });
    if begins {
        return Some(upgrade::target(state));
    }
    // A store that was set back to before an upgrade does not know that it began.
    let wanted = state.deployment.spec.kubernetes_version;
    match known {
        Some(_) if upgrade::is_everywhere(state, wanted) => Some(wanted),
        Some(known) => Some(known),
        None => state.version_installed(),
    }
}
