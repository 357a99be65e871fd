//! The MachineSets that a ClusterDeployment wants, and what must be written to have them.

use std::collections::BTreeMap;

use crds::Conditions;
use crds::ObjectExt;
use crds::Reason;
use crds::cluster_deployment::EtcdTopology;
use crds::conditions::Statement;
use crds::machine_set::{MachineSetSpec, MachineTemplate};
use crds::names::{self, condition, label};
use crds::references::controller_ref;
use crds::step::Role;
use crds::{ClusterKind, MachineSet};
use serde_json::{Value, json};

use crate::claims;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::cluster_deployment::{removals, scale_down, surge};
use crate::remediation::Removals;

/// A set that is wanted; without replicas, its count is someone else's.
struct Wanted {
    name: String,
    role: Role,
    replicas: Option<i32>,
    /// How many more, for now.
    surge: i32,
    min_ready_seconds: i32,
    template: MachineTemplate,
}

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    let proposal = Proposal::actions(actions(state, &round.removals));
    match put_back(state) {
        Some(statement) => proposal.condition(condition::REPLICAS_REVERTED, Some(statement)),
        // It stands until the spec is another one.
        None if was_put_back_before(state) => proposal,
        None => proposal.condition(condition::REPLICAS_REVERTED, None),
    }
}

fn was_put_back_before(state: &ClusterState<'_>) -> bool {
    let metadata = &state.deployment.metadata;
    let told = state.deployment.condition(condition::REPLICAS_REVERTED);
    told.is_some_and(|told| told.observed_generation == metadata.generation)
}

fn actions(state: &ClusterState<'_>, removals: &Removals) -> Vec<Action> {
    let wanted = wanted(state);
    let mut actions: Vec<Action> = wanted.iter().filter_map(|wanted| apply(state, wanted)).collect();
    let leftover = state.sets().filter(|set| {
        state.owns(&set.metadata)
            && !set.is_deleting()
            && wanted.iter().all(|wanted| set.metadata.name.as_deref() != Some(&wanted.name))
    });
    let held = match removals {
        Removals::Free => false,
        Removals::Held(_) => true,
        Removals::Unknown => removals::held(state.deployment).is_some(),
    };
    let is_missed = |set: &&MachineSet| {
        let of_set = |member: &&ClusterMachine<'_>| claims::set_of(member.machine) == set.metadata.name.as_deref();
        let mut members = state.live.iter().filter(of_set);
        members.any(|member| removals::is_in_service(member.machine))
    };
    let leftover = leftover.filter(|set| !held || !is_missed(set));
    actions.extend(leftover.map(|set| Action::DeleteMachineSet(Box::new(set.clone()))));
    actions
}

/// A set whose count was changed elsewhere although this ClusterDeployment owns it.
fn put_back(state: &ClusterState<'_>) -> Option<Statement> {
    let observed = state.deployment.status.as_ref().and_then(|status| status.observed_generation);
    if observed != state.deployment.metadata.generation {
        // It is this spec's change that is new, not theirs.
        return None;
    }
    wanted(state).into_iter().find_map(|wanted| {
        let theirs = state.set(&wanted.name)?.spec.replicas;
        let ours = wanted.replicas.filter(|ours| *ours != theirs)?;
        let message = format!(
            "MachineSet {} was scaled to {theirs} and is put back to {ours}: change spec.workers[].replicas, or leave it out to scale the set",
            wanted.name
        );
        Some(Statement::new(condition::REPLICAS_REVERTED, true, Reason::ReplicasOwnedBySpec, message))
    })
}

fn wanted(state: &ClusterState<'_>) -> Vec<Wanted> {
    let spec = &state.deployment.spec;
    // What is wanted later is not what runs bring.
    let version = Some(state.version_begun());
    let held = |role| scale_down::held(state, role).map(|held| held.replicas);
    let mut sets = vec![Wanted {
        name: names::control_plane_set(&state.name),
        role: Role::ControlPlane,
        replicas: Some(held(Role::ControlPlane).unwrap_or(spec.control_plane.replicas)),
        surge: 0,
        min_ready_seconds: 0,
        template: MachineTemplate {
            host_selector: spec.control_plane.host_selector.clone(),
            hosts: spec.control_plane.hosts.clone(),
            labels: spec.control_plane.labels.clone(),
            annotations: spec.control_plane.annotations.clone(),
            taints: spec.control_plane.taints.clone(),
            kubernetes_version: version,
            ..MachineTemplate::default()
        },
    }];
    if spec.etcd.topology == EtcdTopology::Dedicated {
        sets.push(Wanted {
            name: names::etcd_set(&state.name),
            role: Role::Etcd,
            replicas: held(Role::Etcd).or(spec.etcd.replicas),
            surge: 0,
            min_ready_seconds: 0,
            template: MachineTemplate {
                host_selector: spec.etcd.host_selector.clone(),
                hosts: spec.etcd.hosts.clone(),
                kubernetes_version: version,
                ..MachineTemplate::default()
            },
        });
    }
    sets.extend(spec.workers.iter().map(|workers| Wanted {
        name: names::worker_set(&state.name, &workers.name),
        role: Role::Worker,
        replicas: workers.replicas,
        surge: surge::wanted(state, workers),
        min_ready_seconds: workers.min_ready_seconds,
        template: MachineTemplate {
            host_selector: workers.host_selector.clone(),
            hosts: workers.hosts.clone(),
            spread_by: workers.spread_by.clone(),
            labels: workers.labels.clone(),
            annotations: workers.annotations.clone(),
            taints: workers.taints.clone(),
            kubernetes_version: version,
        },
    }));
    sets
}

fn apply(state: &ClusterState<'_>, wanted: &Wanted) -> Option<Action> {
    let there = state.set(&wanted.name);
    if there.is_some_and(|set| set.is_deleting()) {
        return None;
    }
    let labels = BTreeMap::from([
        (label::CLUSTER.to_owned(), state.name.clone()),
        (label::ROLE.to_owned(), wanted.role.name().to_owned()),
    ]);
    if there.is_some_and(|set| is_as_wanted(set, wanted, &labels)) {
        return None;
    }
    let mut set = MachineSet::new(
        &wanted.name,
        MachineSetSpec {
            cluster_name: state.name.clone(),
            cluster_kind: ClusterKind::ClusterDeployment,
            role: wanted.role,
            replicas: wanted.replicas.or(there.map(|set| set.spec.replicas)).unwrap_or_default(),
            surge: wanted.surge,
            template: wanted.template.clone(),
            mode: there.map(|set| set.spec.mode).unwrap_or_default(),
            deletion: there.map(|set| set.spec.deletion.clone()).unwrap_or_default(),
            min_ready_seconds: wanted.min_ready_seconds,
        },
    );
    set.metadata.namespace = state.deployment.metadata.namespace.clone();
    set.metadata.labels = Some(labels);
    set.metadata.owner_references = controller_ref(state.deployment).map(|owner| vec![owner]);
    // What is someone else's to choose is not claimed: how machines are made, and which go first.
    let mut object = serde_json::to_value(&set).unwrap_or_default();
    remove(&mut object, "mode");
    remove(&mut object, "deletion");
    match (wanted.replicas, there) {
        (Some(_), _) => {}
        (None, None) => remove(&mut object, "replicas"),
        // The count is written as it was read: left out, it would fall to its default where it was given before. If
        // someone scales meanwhile, this write is refused and made again from what they wrote.
        (None, Some(there)) => object["metadata"]["resourceVersion"] = json!(there.metadata.resource_version),
    }
    Some(Action::ApplyMachineSet { name: wanted.name.clone(), object })
}

fn remove(object: &mut Value, field: &str) {
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.remove(field);
    }
}

fn is_as_wanted(set: &MachineSet, wanted: &Wanted, labels: &BTreeMap<String, String>) -> bool {
    let carried = set.metadata.labels.as_ref();
    wanted.replicas.is_none_or(|replicas| replicas == set.spec.replicas)
        && set.spec.surge == wanted.surge
        && set.spec.template == wanted.template
        && set.spec.min_ready_seconds == wanted.min_ready_seconds
        && labels.iter().all(|(key, value)| carried.and_then(|carried| carried.get(key)) == Some(value))
}
