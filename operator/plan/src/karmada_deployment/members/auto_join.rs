//! Clusters that become members by their labels.

use std::collections::BTreeMap;

use crds::karmada_deployment::{AutoJoin, KarmadaMemberStatus, SyncMode};
use crds::names::condition;
use crds::{Addon, Cluster, ClusterDeployment, Conditions, KarmadaDeployment, ObjectExt, Reason};

use super::observed::Neighbours;
use super::target::{ReachedBy, Target, Wish, has_begun};
use crate::addon::Problem;
use crate::addon::selection::{labels, selects};
use crate::cluster::is_plane;

/// The most characters of a member's name.
const LONGEST_NAME: usize = 48;

/// The Clusters that are selected and not members by name.
pub(super) fn targets(
    object: &KarmadaDeployment,
    neighbours: &Neighbours<'_>,
    known: &BTreeMap<&str, &KarmadaMemberStatus>,
) -> Vec<Target> {
    let Some(auto_join) = &object.spec.auto_join else { return Vec::new() };
    let is_named = |cluster: &Cluster| {
        let mut refs = object.spec.members.iter().filter_map(|member| member.cluster_ref.as_ref());
        refs.any(|reference| reference.name == cluster.name())
    };
    let target = |cluster: &&Cluster| {
        let labels = labels(cluster, deployment(neighbours, cluster.name()));
        // A plane is nobody's member, whatever is selected.
        if is_plane(cluster) || is_named(cluster) || !auto_join.selector.selects(Some(&labels)) {
            return None;
        }
        let name: String = cluster.name().chars().take(LONGEST_NAME).collect();
        let joined = known.get(name.as_str()).copied().filter(|status| has_begun(status));
        // It is gone before it was a member.
        if joined.is_none() && is_going(neighbours, cluster.name()) {
            return None;
        }
        let mode = mode(auto_join, &labels);
        let wish = match joined {
            Some(_) if is_going(neighbours, cluster.name()) => Wish::Leave,
            Some(_) => Wish::Join,
            None => problem(object, neighbours, cluster, &labels, mode).map_or(Wish::Join, Wish::Wait),
        };
        Some(Target {
            name,
            sync_mode: joined.map_or(mode.unwrap_or(SyncMode::Push), |status| status.sync_mode),
            reached_by: ReachedBy::Cluster(cluster.name().to_owned()),
            named: None,
            auto_joined: true,
            wish,
        })
    };
    neighbours.clusters.iter().filter_map(target).collect()
}

/// Whether a Cluster, or the ClusterDeployment that it is of, is being deleted.
pub(super) fn is_going(neighbours: &Neighbours<'_>, name: &str) -> bool {
    let cluster = neighbours.clusters.iter().find(|cluster| cluster.name() == name);
    cluster.is_some_and(|cluster| cluster.is_deleting())
        || deployment(neighbours, name).is_some_and(|deployment| deployment.is_deleting())
}

fn deployment<'a>(neighbours: &Neighbours<'a>, name: &str) -> Option<&'a ClusterDeployment> {
    neighbours.deployments.iter().copied().find(|deployment| deployment.name() == name)
}

fn mode(auto_join: &AutoJoin, labels: &BTreeMap<String, String>) -> Option<SyncMode> {
    let has = |(key, value): (&String, &crds::node_metadata::LabelValue)| labels.get(key) == Some(&value.0);
    auto_join.rules.iter().find(|rule| rule.when_labels.iter().all(has)).map(|rule| rule.sync_mode)
}

/// Why a selected Cluster does not join yet.
fn problem(
    object: &KarmadaDeployment,
    neighbours: &Neighbours<'_>,
    cluster: &Cluster,
    labels: &BTreeMap<String, String>,
    mode: Option<SyncMode>,
) -> Option<Problem> {
    let name = cluster.name();
    let stated = |reason: Reason, message: String| Some(Problem { reason, message });
    let is_label = name.len() <= LONGEST_NAME && !name.contains('.');
    if !is_label {
        let message = format!(
            "Cluster {name} is selected, and no member may have this name: name it in spec.members, with a name of its own of at most {LONGEST_NAME} characters without a dot"
        );
        return stated(Reason::NameInvalid, message);
    }
    if object.spec.members.iter().any(|member| member.name == name) {
        let message = format!("another member has the name of Cluster {name}: name the Cluster in spec.members");
        return stated(Reason::MemberTaken, message);
    }
    if mode.is_none() {
        let message = format!("no rule of spec.autoJoin is for the labels of Cluster {name}");
        return stated(Reason::NoJoinRule, message);
    }
    let wrong = unhealthy(cluster).or_else(|| not_verified(neighbours, cluster, labels))?;
    stated(Reason::ClusterNotVerified, wrong)
}

fn unhealthy(cluster: &Cluster) -> Option<String> {
    let is_bad = |type_: &&&str| {
        let wants_more = **type_ != condition::CERTIFICATES_VALID;
        cluster.condition(type_).map_or(wants_more, |there| match wants_more {
            true => there.status != "True",
            false => there.status == "False",
        })
    };
    let wanted = [condition::REACHABLE, condition::CONTROL_PLANE_HEALTHY, condition::CERTIFICATES_VALID];
    let first = wanted.iter().find(is_bad)?;
    let why = cluster.condition(first).map(|there| format!(": {}", there.message)).unwrap_or_default();
    Some(format!("waiting for {first} of Cluster {}{why}", cluster.name()))
}

/// A cluster that was built here is verified once its ClusterDeployment is Ready, which its hooks after the install
/// come before, and all of its Addons are.
fn not_verified(neighbours: &Neighbours<'_>, cluster: &Cluster, labels: &BTreeMap<String, String>) -> Option<String> {
    let name = cluster.name();
    if let Some(deployment) = deployment(neighbours, name)
        && !deployment.is_true(condition::READY)
    {
        return Some(format!("waiting for ClusterDeployment {name} to be Ready"));
    }
    let is_late = |addon: &&&Addon| {
        let there = neighbours
            .cluster_addons
            .iter()
            .find(|there| there.spec.addon_ref.name == addon.name() && there.spec.cluster_ref.name == name);
        let is_ready = there.is_some_and(|there| {
            let seen = there.status.as_ref().and_then(|status| status.observed_generation);
            seen == there.metadata.generation && there.is_true(condition::READY)
        });
        !addon.is_deleting() && selects(addon, cluster, labels) && !is_ready
    };
    let addon = neighbours.addons.iter().find(is_late)?;
    Some(format!("waiting for Addon {} to be Ready on Cluster {name}", addon.name()))
}
