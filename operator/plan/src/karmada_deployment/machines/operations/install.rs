//! The install: one run that makes all machines of a new plane ready, and etcd on those that carry its members, once
//! all of them have their Hosts. Where the plane begins with a backup, its data lies ready on all of them before etcd
//! runs on any. The parts follow in their stages.

use std::collections::BTreeMap;

use crds::playbook_run::{Digest, KarmadaPart};
use crds::step::{Intent, Role};
use crds::{Machine, Reason};
use serde_json::Value;

use super::super::act::Act;
use super::super::asked::programs;
use super::super::on_all::{Due, Told, due};
use super::super::order::{EtcdStart, Part, steps_to_join};
use super::super::part_wanted::Basis;
use super::super::proposal::{Proposal, Round};
use super::super::state::PlaneState;
use super::super::wanted_parts::etcd_digest;
use crate::attempts::RetryDecision;
use crate::cluster_machine::ClusterMachine;
use crate::karmada_deployment::Component;
use crate::karmada_deployment::restore::{self, installed_from};
use crate::message::count;
use crate::provisioning;
use crate::run_request::{Attempt, RunRequest};

const INSTALL: Told = Told { title: "the install", doing: Reason::Installing, failed: Reason::InstallFailed };

pub(super) fn propose(state: &PlaneState<'_>, basis: &Basis<'_>, _: &Round) -> Proposal {
    if state.installed.is_some() {
        return Proposal::default();
    }
    let Some(initial) = initial(state) else { return waiting_for_hosts(state) };
    // What etcd's members are to have stands in the run.
    if basis.material.keys.is_none() {
        return Proposal::under_way(Reason::Installing, "waiting for the plane's keys".to_owned());
    }
    if let Some(run) = state.under_way() {
        return Proposal::under_way(Reason::Installing, state.describe(run));
    }
    match due(state, INSTALL, &initial, |machine| decision(state, machine)) {
        Due::NotNow(proposal) => proposal,
        Due::Now { targets, number } => {
            let machines: Vec<_> = initial.iter().filter(|one| is_of_etcd(state, one)).map(|one| one.machine).collect();
            let attempt = Attempt::from_start(number);
            let backup = installed_from(basis.object);
            let etcd = match backup {
                _ if machines.is_empty() => EtcdStart::NoMember,
                None => EtcdStart::Empty,
                Some(_) => EtcdStart::Backup,
            };
            let mut vars = variables(state, basis, &machines);
            vars.extend(backup.map(|backup| restore::variables(basis.object, backup)).unwrap_or_default());
            let run = state.request(RunRequest {
                vars,
                parts: etcd_part(state, basis, &initial).into_iter().collect(),
                ..RunRequest::new(Intent::Install, steps_to_join(etcd), &targets, attempt)
            });
            let message = format!("the install of {} begins", count(initial.len(), "machine"));
            Proposal::under_way(Reason::Installing, message).and(Act::create(run))
        }
    }
}

/// What a run that brings members of etcd leaves on their machines; none: it brings none.
pub(super) fn etcd_part(
    state: &PlaneState<'_>,
    basis: &Basis<'_>,
    machines: &[ClusterMachine<'_>],
) -> Option<KarmadaPart> {
    let version = Component::Etcd.version(&basis.object.spec, basis.release);
    let of_etcd = machines.iter().filter(|machine| is_of_etcd(state, machine));
    let digest = |machine: &ClusterMachine<'_>| {
        Some((machine.host_name()?.to_owned(), Digest(etcd_digest(&version, 0, &basis.material.authorities))))
    };
    let digests: BTreeMap<String, Digest> = of_etcd.filter_map(digest).collect();
    (!digests.is_empty()).then(|| KarmadaPart { part: Part::Etcd.name().to_owned(), digests })
}

/// What a run must know that makes machines part of the plane: etcd's members from then on, and the programs, of which
/// preflight looks whether the bundle has them.
pub(super) fn variables(state: &PlaneState<'_>, basis: &Basis<'_>, members: &[&Machine]) -> BTreeMap<String, Value> {
    let mut vars = state.etcd_variables(members);
    vars.insert("karmada_programs".to_owned(), programs(basis.object, basis.release));
    vars
}

fn is_of_etcd(state: &PlaneState<'_>, machine: &ClusterMachine<'_>) -> bool {
    Some(machine.machine.spec.role) == state.cluster.etcd_role
}

/// The machines that the plane begins with, all of them with their Hosts; none while one is missing.
fn initial<'a>(state: &PlaneState<'a>) -> Option<Vec<ClusterMachine<'a>>> {
    let complete = |role, wanted: i32| {
        let members: Vec<ClusterMachine<'a>> = state.of_role(role).collect();
        let enough = i32::try_from(members.len()) == Ok(wanted);
        (enough && members.iter().all(|member| member.host.is_some())).then_some(members)
    };
    let mut initial = complete(Role::ControlPlane, state.cluster.control_planes)?;
    initial.extend(complete(Role::Etcd, state.cluster.etcd_machines)?);
    Some(initial)
}

fn waiting_for_hosts(state: &PlaneState<'_>) -> Proposal {
    let wanted = state.cluster.control_planes.saturating_add(state.cluster.etcd_machines);
    let has = state.live.iter().filter(|machine| machine.host.is_some()).count();
    let supply = |set: &&crds::MachineSet| {
        let supply = set.status.as_ref()?.host_supply.as_ref()?;
        (!supply.is_enough()).then(|| supply.counts())
    };
    let lacks: Vec<String> =
        state.seen.sets.iter().filter(|set| state.owner.owns(&set.metadata)).filter_map(supply).collect();
    let lacks = if lacks.is_empty() { String::new() } else { format!(": {}", lacks.join("; ")) };
    let message = format!("waiting for Hosts: {has} of {wanted} machines have one{lacks}");
    Proposal::under_way(Reason::WaitingForHosts, message)
}

/// Whether the next attempt to make a machine part of the plane is due.
pub(super) fn decision(state: &PlaneState<'_>, machine: &ClusterMachine<'_>) -> RetryDecision {
    let terms = || state.terms.clone();
    provisioning::retry_decision(machine.machine, machine.host, terms, state.seen.runs, state.now)
}
