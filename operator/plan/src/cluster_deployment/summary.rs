//! The summary of a cluster: all of its status but message, phase and conditions.

use crds::cluster_deployment::ReplicaCounts;
use crds::names;
use crds::references::LocalRef;
use crds::step::{Intent, Role};
use crds::{ClusterDeploymentStatus, PlaybookRun};

use super::endpoint;
use super::lock::Lock;
use super::scene::{Member, Scene};
use super::up_to_date;
use crate::{attempts, components, provisioning, undecodable};

/// All but message, phase and conditions.
pub(super) fn base(scene: &Scene<'_>, lock: &Lock) -> ClusterDeploymentStatus {
    let old = scene.deployment.status.clone().unwrap_or_default();
    let deleting = scene.deployment.metadata.deletion_timestamp.is_some();
    let generation = scene.generation();
    let wanted = provisioning::wanted(scene.deployment);
    let queued = scene.active.iter().any(|run| {
        let older = attempts::generation_of(run).is_some_and(|made| made < generation);
        older && attempts::wanted_of(run) != Some(&wanted)
    });
    let url = scene.endpoint();
    let first = scene.first_control_plane().map(|member| member.name().to_owned());
    ClusterDeploymentStatus {
        observed_generation: scene.deployment.metadata.generation,
        kubernetes_version: version(scene).or(old.kubernetes_version),
        started_kubernetes_version: started_version(scene, lock),
        cluster_ref: url
            .as_ref()
            .map(|_| LocalRef::new(&scene.name))
            .or(old.cluster_ref),
        kubeconfig_ref: match &url {
            Some(_) => Some(LocalRef::new(names::kubeconfig_secret(&scene.name))),
            None => old.kubeconfig_ref,
        },
        endpoint: url.or(old.endpoint),
        control_plane: Some(counts(
            scene,
            Role::ControlPlane,
            scene.deployment.spec.control_plane.replicas,
        )),
        workers: Some(counts(scene, Role::Worker, scene.workers_wanted())),
        first_control_plane: first.or(old.first_control_plane),
        installed_at: scene.installed.clone(),
        operations: lock.operations.clone(),
        components: components::resolved(scene.deployment, scene.observed.runs),
        applied_manifests: up_to_date::applied(scene),
        last_token: lock.last_token,
        control_plane_endpoints: endpoint::control_planes(scene),
        pending_generation: (queued && !deleting).then_some(generation),
        conditions: undecodable::ended(&old.conditions),
        ..old
    }
}

pub(super) fn counts(scene: &Scene<'_>, role: Role, wanted: i32) -> ReplicaCounts {
    let number = |holds: &dyn Fn(&Member<'_>) -> bool| {
        i32::try_from(scene.of_role(role).filter(|member| holds(member)).count()).unwrap_or(i32::MAX)
    };
    let ready = number(&|member| member.is_ready());
    let version = &scene.deployment.spec.kubernetes_version;
    let seen = |member: &Member<'_>| {
        member
            .machine
            .status
            .as_ref()
            .and_then(|status| status.kubernetes_version.clone())
    };
    ReplicaCounts {
        replicas: wanted,
        ready_replicas: ready,
        updated_replicas: number(&|member| seen(member).as_ref() == Some(version)),
        summary: format!("{ready}/{wanted}"),
    }
}

/// The version of every node, when they agree.
fn version(scene: &Scene<'_>) -> Option<String> {
    let mut versions = scene
        .live
        .iter()
        .filter_map(|member| member.machine.status.as_ref())
        .filter_map(|status| status.kubernetes_version.as_ref());
    let first = versions.next()?;
    versions.all(|other| other == first).then(|| first.clone())
}

/// The version whose rollout has begun. A run gets its lock and the cluster this version in one write, whose precondition
/// is the very spec that was read: what is wanted later is not what the run brings.
fn started_version(scene: &Scene<'_>, lock: &Lock) -> Option<String> {
    let old = scene.deployment.status.as_ref();
    let held_before = |run: &str| {
        let operations = old.into_iter().flat_map(|status| &status.operations);
        operations.into_iter().any(|held| held.run == run)
    };
    let begins = lock.operations.iter().any(|held| {
        let run = scene
            .active
            .iter()
            .find(|run| run.metadata.name.as_ref() == Some(&held.run));
        // An administrator's run of single steps is no rollout, whatever it is called.
        let ours = |run: &&&PlaybookRun| !attempts::marks(run).is_empty();
        run.filter(ours)
            .is_some_and(|run| brings_version(run.spec.intent))
            && !held_before(&held.run)
    });
    if begins {
        return Some(scene.deployment.spec.kubernetes_version.clone());
    }
    let known = old.and_then(|status| status.started_kubernetes_version.clone());
    known.or_else(|| scene.version_installed())
}

/// Whether a run brings the version that is wanted to machines; all others keep to the one that has begun.
fn brings_version(intent: Intent) -> bool {
    match intent {
        Intent::Install | Intent::Upgrade => true,
        Intent::Join
        | Intent::Remove
        | Intent::Reset
        | Intent::Repair
        | Intent::Renew
        | Intent::Backup
        | Intent::Restore
        | Intent::Probe
        | Intent::Custom => false,
    }
}
