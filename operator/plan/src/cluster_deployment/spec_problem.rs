//! What keeps a cluster from being worked on: wishes that cannot be met, or not yet. Each names the field and what to
//! do.

use std::net::Ipv4Addr;

use crds::networking::NetworkPluginName;
use crds::{ClusterDeployment, ObjectExt, Reason};

use super::problem::Problem;
use super::state::ClusterState;
use super::{endpoint, etcd_version, external_etcd, own_authorities, pki, upgrade};
use crate::{catalogue, hooks};

/// Prefix length of the network that each node takes.
const NODE_PREFIX: u32 = 24;

fn problem(reason: Reason, message: String) -> Option<Problem> {
    Some(Problem { reason, message, ends_unseen: false })
}

pub(super) fn find(state: &ClusterState<'_>) -> Option<Problem> {
    source_missing(state.deployment)
        .or_else(|| names_taken(state))
        .or_else(|| pki_missing(state))
        .or_else(|| own_authorities::problem(state))
        .or_else(|| external_etcd::problem(state))
        .or_else(|| version_older(state))
        .or_else(|| version_skew(state))
        .or_else(|| etcd_version::problem(state))
        .or_else(|| pod_network_too_small(state))
        .or_else(|| pod_network_shared(state))
        .or_else(|| endpoint::problem(state))
        .or_else(|| hooks_refused(state))
}

/// A version of which upstream's files are not known here, without a bundle that has them.
fn source_missing(deployment: &ClusterDeployment) -> Option<Problem> {
    let missing = catalogue::missing(deployment, deployment.spec.kubernetes_version)?;
    problem(Reason::ArtifactSourceMissing, missing)
}

/// Hooks that could not be played; a ConfigMap is not followed.
fn hooks_refused(state: &ClusterState<'_>) -> Option<Problem> {
    let refusal = hooks::refusal(state.deployment, state.observed.library)?;
    Some(Problem { reason: refusal.reason, message: refusal.message, ends_unseen: true })
}

fn names_taken(state: &ClusterState<'_>) -> Option<Problem> {
    if let Some(set) = state.foreign_sets().next() {
        let name = set.name();
        return problem(
            Reason::NameConflict,
            format!(
                "MachineSet {name} is there already and is not of this ClusterDeployment (but of {}): rename the set in spec.workers, or delete that MachineSet",
                set.spec.former()
            ),
        );
    }
    let cluster = state.observed.cluster?;
    if !state.owns(&cluster.metadata) {
        return problem(
            Reason::NameConflict,
            format!(
                "Cluster {} is there already and is not of this ClusterDeployment: delete it, or choose another name",
                state.name
            ),
        );
    }
    None
}

/// Secrets are not followed.
fn pki_missing(state: &ClusterState<'_>) -> Option<Problem> {
    pki::is_missing(state).then(|| Problem {
        reason: Reason::PKIMissing,
        message: pki::missing(state.deployment),
        ends_unseen: true,
    })
}

/// A store that was set back to before an upgrade wants the version of that time; no machine is brought to an older
/// one.
fn version_older(state: &ClusterState<'_>) -> Option<Problem> {
    let wanted = state.deployment.spec.kubernetes_version;
    let (machine, highest) = upgrade::highest(state).filter(|(_, highest)| *highest > wanted)?;
    problem(
        Reason::VersionSkewNotAllowed,
        format!(
            "spec.kubernetesVersion: {wanted} is older than {highest}, which {} has, and no machine is brought to an older version: set it to {highest}",
            machine.title()
        ),
    )
}

/// The API server refuses what is too far above the version whose rollout has begun; machines may be behind that.
fn version_skew(state: &ClusterState<'_>) -> Option<Problem> {
    let wanted = state.deployment.spec.kubernetes_version;
    let (machine, lowest) = upgrade::lowest(state)?;
    let begun = state.version_begun().minor();
    let on_the_way = |minor: &u8| *minor <= begun || state.deployment.spec.upgrade_path.of_minor(*minor).is_some();
    let missing: Vec<String> = (lowest.minor() + 1..wanted.minor())
        .filter(|minor| !on_the_way(minor))
        .map(|minor| format!("1.{minor}.x"))
        .collect();
    if missing.is_empty() {
        return None;
    }
    problem(
        Reason::VersionSkewNotAllowed,
        format!(
            "spec.kubernetesVersion: {wanted} is more than one minor above {lowest}, which {} has: name the versions on the way ({lowest} -> {} -> {wanted}) in spec.upgradePath.via, or set it to the first of them, and raise it when all machines have that",
            machine.title(),
            missing.join(" -> ")
        ),
    )
}

fn pod_network_too_small(state: &ClusterState<'_>) -> Option<Problem> {
    let cidr = &state.deployment.spec.networking.pod_cidr;
    let prefix: u32 = cidr.rsplit('/').next()?.parse().ok()?;
    let room = 1u64 << NODE_PREFIX.saturating_sub(prefix).min(32);
    let nodes = state.nodes_wanted();
    (nodes > room).then(|| Problem {
        reason: Reason::PodCIDRTooSmall,
        ends_unseen: false,
        message: format!(
            "spec.networking.podCIDR {cidr} has room for {room} nodes (a /{NODE_PREFIX} each), {nodes} are wanted: lower the replicas, or make a new cluster with a larger podCIDR"
        ),
    })
}

/// Machines of the built-in network stand on one L2 network, where each cluster's Pods need addresses of their own. The
/// cluster that was there first has them.
fn pod_network_shared(state: &ClusterState<'_>) -> Option<Problem> {
    let bridge = |deployment: &ClusterDeployment| deployment.spec.networking.plugin.name == NetworkPluginName::Bridge;
    if state.installed.is_some() || !bridge(state.deployment) {
        return None;
    }
    let age = |deployment: &ClusterDeployment| {
        let metadata = &deployment.metadata;
        (metadata.creation_timestamp.clone(), metadata.name.clone())
    };
    let ours = &state.deployment.spec.networking.pod_cidr;
    let other = state.observed.deployments.iter().find(|other| {
        other.metadata.uid != state.deployment.metadata.uid
            && other.metadata.namespace == state.deployment.metadata.namespace
            && bridge(other)
            && age(other) < age(state.deployment)
            && overlap(ours, &other.spec.networking.pod_cidr)
    })?;
    Some(Problem {
        reason: Reason::CIDROverlap,
        ends_unseen: true,
        message: format!(
            "spec.networking.podCIDR {ours} overlaps with {} of ClusterDeployment {}, and both use the bridge network: make this cluster with another podCIDR, or delete that one",
            other.spec.networking.pod_cidr,
            other.name()
        ),
    })
}

/// Whether two IPv4 networks share addresses; what is no network shares none.
fn overlap(one: &str, other: &str) -> bool {
    let parse = |cidr: &str| -> Option<(u32, u32)> {
        let (address, prefix) = cidr.split_once('/')?;
        let address: Ipv4Addr = address.parse().ok()?;
        Some((u32::from(address), prefix.parse().ok()?))
    };
    let (Some((one, shorter)), Some((other, prefix))) = (parse(one), parse(other)) else {
        return false;
    };
    let bits = 32u32.saturating_sub(shorter.min(prefix));
    one.checked_shr(bits) == other.checked_shr(bits)
}
