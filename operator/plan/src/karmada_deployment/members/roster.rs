//! Who is to be a member, and who leaves: those that `spec.members` names, those that `autoJoin` selects, and those
//! that have joined and are neither.

use std::collections::BTreeMap;

use crds::karmada_deployment::{KarmadaMember, KarmadaMemberStatus, OnDeselect, SyncMode};
use crds::names::{annotation, finalizer, label};
use crds::references::LocalRef;
use crds::{KarmadaDeployment, ObjectExt, Reason};
use serde_json::Value;

use super::super::names::is_made_for;
use super::auto_join;
use super::observed::{Neighbours, PlaneSeen};
use super::target::{ReachedBy, Target, Wish, has_begun, known};
use crate::addon::Problem;

/// All of them, by name. `plane`: what was seen there, if anything.
pub fn roster(object: &KarmadaDeployment, neighbours: &Neighbours<'_>, plane: Option<&PlaneSeen>) -> Vec<Target> {
    let mut targets: BTreeMap<String, Target> = BTreeMap::new();
    let known = known(object);
    if !object.is_deleting() {
        for member in &object.spec.members {
            targets.insert(member.name.clone(), named(member, neighbours, &known));
        }
        for target in auto_join::targets(object, neighbours, &known) {
            targets.entry(target.name.clone()).or_insert(target);
        }
    }
    // What was read for one goes with it, though it never began.
    for status in known.values().filter(|status| has_begun(status) || status.host_ref.is_some()) {
        targets.entry(status.name.clone()).or_insert_with(|| unlisted(object, neighbours, status));
    }
    if let Some(plane) = plane {
        remember(object, plane, &mut targets);
    }
    targets.into_values().collect()
}

fn named(member: &KarmadaMember, neighbours: &Neighbours<'_>, known: &BTreeMap<&str, &KarmadaMemberStatus>) -> Target {
    let wanted = reached_by(&member.cluster_ref, &member.kube_config_secret_name, &member.host_ref);
    let joined = known.get(member.name.as_str()).copied().filter(|status| has_begun(status));
    let wish = match &wanted {
        ReachedBy::Cluster(name) => of_cluster(neighbours, name, joined.is_some()),
        ReachedBy::Secret(_) | ReachedBy::Host(_) => Wish::Join,
    };
    Target {
        name: member.name.clone(),
        sync_mode: joined.map_or(member.sync_mode, |status| status.sync_mode),
        reached_by: wanted,
        named: Some(member.clone()),
        auto_joined: false,
        wish,
    }
}

fn reached_by(cluster: &Option<LocalRef>, secret: &Option<String>, host: &Option<LocalRef>) -> ReachedBy {
    match (cluster, secret, host) {
        (Some(cluster), _, _) => ReachedBy::Cluster(cluster.name.clone()),
        (None, None, Some(host)) => ReachedBy::Host(host.name.clone()),
        (None, secret, _) => ReachedBy::Secret(secret.clone().unwrap_or_default()),
    }
}

/// A Cluster that is being deleted leaves first; one that is not there is no reason to.
fn of_cluster(neighbours: &Neighbours<'_>, name: &str, has_begun: bool) -> Wish {
    let cluster = neighbours.clusters.iter().find(|cluster| cluster.name() == name);
    let problem = |message: String| Wish::Wait(Problem { reason: Reason::ClusterNotFound, message });
    match cluster {
        None => problem(format!("Cluster {name} is not there")),
        Some(_) if !auto_join::is_going(neighbours, name) => Wish::Join,
        Some(_) if has_begun => Wish::Leave,
        Some(_) => problem(format!("Cluster {name} is being deleted")),
    }
}

/// One that has joined, and that nobody names or selects any more.
fn unlisted(object: &KarmadaDeployment, neighbours: &Neighbours<'_>, status: &KarmadaMemberStatus) -> Target {
    let reached_by = reached_by(&status.cluster_ref, &status.kube_config_secret_name, &status.host_ref);
    let keeps = object.spec.auto_join.as_ref().is_none_or(|auto_join| auto_join.on_deselect == OnDeselect::Keep);
    let stays = status.auto_joined && keeps && !object.is_deleting();
    let wish = match &reached_by {
        ReachedBy::Cluster(name) if stays => of_cluster(neighbours, name, true),
        _ => Wish::Leave,
    };
    Target {
        name: status.name.clone(),
        sync_mode: status.sync_mode,
        reached_by,
        named: None,
        auto_joined: status.auto_joined,
        wish,
    }
}

/// The plane knows who is a member, and how; also where the status was lost.
fn remember(object: &KarmadaDeployment, plane: &PlaneSeen, targets: &mut BTreeMap<String, Target>) {
    for target in plane.clusters.iter().filter_map(|cluster| forgotten(object, cluster)) {
        match targets.get_mut(&target.name) {
            Some(listed) => listed.sync_mode = target.sync_mode,
            None => drop(targets.insert(target.name.clone(), target)),
        }
    }
    // What is left of one that had no Cluster yet. Of a plane that goes it goes with that.
    let own = plane.listed.iter().filter(|live| is_made_for(live, object) && !object.is_deleting());
    for name in own.filter_map(|live| live["metadata"]["labels"][label::KARMADA_MEMBER].as_str()) {
        let unknown = ReachedBy::Secret(String::new());
        targets.entry(name.to_owned()).or_insert_with(|| left_over(name, SyncMode::Push, unknown));
    }
}

fn left_over(name: &str, sync_mode: SyncMode, reached_by: ReachedBy) -> Target {
    Target { name: name.to_owned(), sync_mode, reached_by, named: None, auto_joined: false, wish: Wish::Leave }
}

/// One that its Cluster in the plane knows.
fn forgotten(object: &KarmadaDeployment, cluster: &Value) -> Option<Target> {
    let metadata = &cluster["metadata"];
    let is_held = metadata["finalizers"].as_array()?.iter().any(|one| one == finalizer::KARMADA_MEMBER);
    if !is_held || !is_made_for(cluster, object) {
        return None;
    }
    let reached_by = metadata["annotations"][annotation::REACHED_BY].as_str().and_then(ReachedBy::from_text);
    let sync_mode = if cluster["spec"]["syncMode"] == "Pull" { SyncMode::Pull } else { SyncMode::Push };
    Some(left_over(metadata["name"].as_str()?, sync_mode, reached_by.unwrap_or(ReachedBy::Secret(String::new()))))
}
