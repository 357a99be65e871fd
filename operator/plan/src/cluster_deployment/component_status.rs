//! How the control plane, etcd and the workers of a cluster are.

use crds::Reason;
use crds::conditions::Statement;
use crds::names::condition;
use crds::step::Role;

use super::blocker::{Blocker, waits_for_hosts};
use super::proposal::{Area, Report, Round, Severity};
use super::scale_down;
use super::state::{ClusterMachine, ClusterState};
use super::summary::counts;
use crate::message::{count, cut};

/// How one component of the cluster is.
pub(super) struct ComponentStatus {
    pub status: Option<bool>,
    pub reason: String,
    pub message: String,
    /// Something is wrong, and not only on its way.
    pub bad: bool,
}

impl ComponentStatus {
    fn ready(message: impl Into<String>) -> Self {
        Self { status: Some(true), reason: Reason::AllReady.into(), message: message.into(), bad: false }
    }

    fn not_ready(reason: impl Into<String>, message: impl Into<String>, bad: bool) -> Self {
        Self { status: Some(false), reason: reason.into(), message: message.into(), bad }
    }

    /// As a machine says that is not ready, or of which nothing is known.
    fn of_machine(machine: &ClusterMachine<'_>, bad: bool) -> Self {
        let unknown = machine.condition(condition::READY) == Some("Unknown");
        let reason = if unknown { machine.ready_reason() } else { Reason::MachinesNotReady.as_str() };
        let message = format!("{}: {}", machine.title(), machine.says());
        Self { status: if unknown { None } else { Some(false) }, ..Self::not_ready(reason, message, bad) }
    }

    /// All are ready. One that has no part in the cluster any more is reported while it leaves, and is no reason not to
    /// be.
    fn all_ready(summary: String, leaving: Option<&ClusterMachine<'_>>) -> Self {
        match leaving {
            Some(machine) => Self::ready(format!("{summary}; {} leaves: {}", machine.title(), machine.says())),
            None => Self::ready(summary),
        }
    }

    pub fn statement(&self, type_: &'static str) -> Statement {
        Statement::new(type_, self.status, self.reason.clone(), cut(self.message.clone()))
    }

    pub fn blocker(&self) -> Option<Blocker> {
        (self.status != Some(true)).then(|| Blocker {
            known: self.status.is_some(),
            ..Blocker::new(self.reason.as_str(), self.message.clone())
        })
    }
}

impl From<&Report> for ComponentStatus {
    fn from(report: &Report) -> Self {
        let bad = report.severity != Severity::Progressing;
        Self::not_ready(report.reason, report.message.clone(), bad)
    }
}

/// The machines of a control plane or of a dedicated etcd.
pub(super) fn control_plane(state: &ClusterState<'_>, role: Role, round: &Round) -> ComponentStatus {
    if let Some(install) = round.report(Area::Install) {
        return ComponentStatus::not_ready(Reason::NotInstalled, install.message.clone(), false);
    }
    if let Some(report) = round.report(Area::Machines(role)) {
        return report.into();
    }
    let membership = state.membership();
    let mut leaving = state.leaving.iter().filter(|machine| machine.machine.spec.role == role);
    if let Some(machine) = leaving.clone().find(|machine| !membership.is_out(machine.machine)) {
        let message = format!("{}: {}", machine.title(), machine.says());
        return ComponentStatus::not_ready(Reason::MachineDeleted, message, true);
    }
    let all: Vec<ClusterMachine<'_>> = state.of_role(role).collect();
    let is_sick = |machine: &&ClusterMachine<'_>| machine.is_provisioned() && !machine.is_ready();
    match all.iter().find(is_sick) {
        Some(machine) => return ComponentStatus::of_machine(machine, true),
        None if all.is_empty() => {
            let message = format!("no {} machine is left", role.name());
            return ComponentStatus::not_ready(Reason::MachinesMissing, message, true);
        }
        None => {}
    }
    let held = scale_down::held(state, role);
    let spec = &state.deployment.spec;
    let own = match role {
        Role::Etcd => spec.etcd.replicas.unwrap_or_default(),
        Role::ControlPlane | Role::Worker => spec.control_plane.replicas,
    };
    let wanted = held.as_ref().map_or(own, |held| held.replicas);
    let wanted = usize::try_from(wanted).unwrap_or_default();
    let ready = all.iter().filter(|machine| machine.is_ready()).count();
    let summary = format!("{ready} of {wanted} ready");
    if ready < wanted {
        return match waits_for_hosts(state, |of| of == role) {
            Some(waits) => ComponentStatus::not_ready(Reason::WaitingForHosts, format!("{summary}; {waits}"), false),
            None => {
                let message = format!("{summary}; makes {} more, one at a time", wanted - ready);
                ComponentStatus::not_ready(Reason::ScalingUp, message, false)
            }
        };
    }
    if all.len() > wanted {
        let message = format!("has {}, {wanted} wanted: one leaves at a time", all.len());
        return ComponentStatus::not_ready(Reason::ScalingDown, message, false);
    }
    match held {
        Some(held) => ComponentStatus::not_ready(Reason::QuorumRisk, held.message, false),
        None => ComponentStatus::all_ready(summary, leaving.next()),
    }
}

/// The machines that carry etcd's members, and what etcd says itself.
pub(super) fn etcd(state: &ClusterState<'_>, round: &Round) -> ComponentStatus {
    let Some(role) = state.membership().etcd_role() else {
        return external_etcd(state, round);
    };
    let is_lost = round.report(Area::Machines(role)).is_some_and(|report| report.severity == Severity::Lost);
    match state.etcd_problem() {
        Some(problem) if state.installed.is_some() && !is_lost => {
            ComponentStatus::not_ready(Reason::EtcdUnhealthy, format!("etcd: {problem}"), true)
        }
        _ => control_plane(state, role, round),
    }
}

/// An etcd that others run: no machine of the cluster tells of it, so it is as the API server sees it.
fn external_etcd(state: &ClusterState<'_>, round: &Round) -> ComponentStatus {
    if let Some(install) = round.report(Area::Install) {
        return ComponentStatus::not_ready(Reason::NotInstalled, install.message.clone(), false);
    }
    let endpoints = count(state.deployment.spec.etcd.endpoints.len(), "endpoint");
    let unknown = |message: String| {
        let status = ComponentStatus::not_ready(Reason::ClusterUnreachable, message, false);
        ComponentStatus { status: None, ..status }
    };
    match (state.component("etcd"), state.waits_for_api()) {
        (Some((false, said)), _) => {
            let message = format!("etcd is external ({endpoints}), and not well as the API server sees it: {said}");
            ComponentStatus::not_ready(Reason::EtcdUnhealthy, message, true)
        }
        (_, Some(waits)) => unknown(format!("etcd is external, and seen through the API server alone: {waits}")),
        (Some(_), None) => {
            ComponentStatus::ready(format!("external, {endpoints}: the API server reaches it (/readyz)"))
        }
        (None, None) => unknown("etcd is external, and the API server has not been asked about it yet".to_owned()),
    }
}

/// The workers.
pub(super) fn workers(state: &ClusterState<'_>, round: &Round) -> ComponentStatus {
    let wanted = state.workers_wanted();
    let ready = counts(state, Role::Worker, wanted).ready_replicas;
    let summary = format!("{ready} of {wanted} ready");
    // Also beside an install: they join while its last step is played.
    if let Some(report) = round.report(Area::Machines(Role::Worker)) {
        return report.into();
    }
    if state.installed.is_none() {
        return match wanted {
            0 => ComponentStatus { reason: Reason::NoneWanted.into(), ..ComponentStatus::ready("no worker is wanted") },
            _ => ComponentStatus::not_ready(
                Reason::NotInstalled,
                "workers join once the control plane is installed",
                false,
            ),
        };
    }
    if let Some(waits) = waits_for_hosts(state, |role| role == Role::Worker) {
        return ComponentStatus::not_ready(Reason::WaitingForHosts, waits, false);
    }
    // Those that join for a change are nobody's wish but the rollout's.
    let surge: i32 = state.sets().map(|set| set.spec.surge).sum();
    let lacks = surge == 0 || ready < wanted;
    if let Some(machine) = state.workers().find(|machine| lacks && !machine.is_ready()) {
        let bad = machine.condition(condition::PROVISIONED) == Some("True");
        return ComponentStatus::of_machine(&machine, bad);
    }
    let have = state.workers().count();
    match i32::try_from(have).unwrap_or(i32::MAX) {
        have if have < wanted => {
            ComponentStatus::not_ready(Reason::ScalingUp, format!("{summary}; makes {} more", wanted - have), false)
        }
        have if have > wanted.saturating_add(surge) => ComponentStatus::not_ready(
            Reason::ScalingDown,
            format!("has {have}, {wanted} wanted: {} leave", have - wanted),
            false,
        ),
        _ => {
            let mut leaving = state.leaving.iter();
            let leaving = leaving.find(|machine| machine.machine.spec.role == Role::Worker);
            ComponentStatus::all_ready(summary, leaving)
        }
    }
}
