//! Parts: how the control plane, etcd and the workers of a cluster are.

use crds::cluster_deployment::EtcdTopology;
use crds::conditions::Statement;
use crds::names::condition;
use crds::step::{Intent, Role};

use super::lack::{Lack, next_attempt, not_installed, retry, waits_for_hosts};
use super::runs::describe;
use super::scene::{Member, Scene};
use super::summary::counts;
use super::{Work, growth};
use crate::sentence::{count, cut};

/// How one part of the cluster is.
pub(super) struct Part {
    pub status: Option<bool>,
    pub reason: String,
    pub message: String,
    /// Something is wrong, and not only on its way.
    pub bad: bool,
}

impl Part {
    fn well(reason: &str, message: impl Into<String>) -> Self {
        Self {
            status: Some(true),
            reason: reason.into(),
            message: message.into(),
            bad: false,
        }
    }

    fn ill(reason: &str, message: impl Into<String>, bad: bool) -> Self {
        Self {
            status: Some(false),
            reason: reason.into(),
            message: message.into(),
            bad,
        }
    }

    pub fn statement(&self, type_: &'static str) -> Statement {
        Statement::new(type_, self.status, self.reason.clone(), cut(self.message.clone()))
    }

    pub fn lack(&self) -> Option<Lack> {
        (self.status != Some(true)).then(|| Lack {
            known: self.status.is_some(),
            reason: self.reason.clone(),
            message: self.message.clone(),
        })
    }
}

pub(super) fn members(scene: &Scene<'_>, role: Role, work: &Work<'_>) -> Part {
    if let Some(lack) = not_installed(scene, work) {
        return Part::ill("NotInstalled", lack.message, false);
    }
    if let Some(says) = work.growth.says.as_ref().filter(|says| says.role == role) {
        return Part::ill(says.reason, says.message.clone(), says.bad);
    }
    let council = scene.council();
    let mut leaving = scene
        .leaving
        .iter()
        .filter(|member| member.machine.spec.role == role);
    if let Some(member) = leaving.clone().find(|member| !council.is_out(member.machine)) {
        return Part::ill(
            "MachineDeleted",
            format!("{}: {}", member.title(), member.says()),
            true,
        );
    }
    let all: Vec<Member<'_>> = scene.of_role(role).collect();
    let ready = all.iter().filter(|member| member.is_ready()).count();
    let sick = |member: &&Member<'_>| member.is_provisioned() && !member.is_ready();
    match all.iter().find(sick) {
        Some(member) if member.condition(condition::READY) == Some("Unknown") => {
            return Part {
                status: None,
                reason: member.ready_reason().into(),
                message: format!("{}: {}", member.title(), member.says()),
                bad: true,
            };
        }
        Some(member) => {
            let message = format!("{}: {}", member.title(), member.says());
            return Part::ill("MachinesNotReady", message, true);
        }
        None if all.is_empty() => {
            return Part::ill(
                "MachinesMissing",
                format!("no {} machine is left", role.name()),
                true,
            );
        }
        None => {}
    }
    let held = growth::held(scene, role);
    let spec = &scene.deployment.spec;
    let own = match role {
        Role::Etcd => spec.etcd.replicas.unwrap_or_default(),
        Role::ControlPlane | Role::Worker => spec.control_plane.replicas,
    };
    let wanted = held.as_ref().map_or(own, |held| held.replicas);
    let wanted = usize::try_from(wanted).unwrap_or_default();
    let summary = format!("{ready} of {wanted} ready");
    if ready < wanted {
        return match waits_for_hosts(scene, |of| of == role) {
            Some(waits) => Part::ill("WaitsForHosts", format!("{summary}; {waits}"), false),
            None => Part::ill(
                "ScalingUp",
                format!("{summary}; makes {} more, one at a time", wanted - ready),
                false,
            ),
        };
    }
    if all.len() > wanted {
        let message = format!("has {}, {wanted} wanted: one leaves at a time", all.len());
        return Part::ill("ScalingDown", message, false);
    }
    if let Some(held) = held {
        return Part::ill("QuorumRisk", held.message, false);
    }
    match leaving.next() {
        // It has no part in the cluster any more: that it still leaves is told, and is no lack.
        Some(member) => Part::well(
            "AllReady",
            format!("{summary}; {} leaves: {}", member.title(), member.says()),
        ),
        None => Part::well("AllReady", summary),
    }
}

pub(super) fn etcd(scene: &Scene<'_>, work: &Work<'_>) -> Part {
    let part = match scene.deployment.spec.etcd.topology {
        EtcdTopology::Dedicated => members(scene, Role::Etcd, work),
        EtcdTopology::Stacked | EtcdTopology::External => members(scene, Role::ControlPlane, work),
    };
    let seen = component(scene, "etcd");
    match seen {
        Some((false, message)) if scene.installed.is_some() && !work.growth.stops => {
            Part::ill("EtcdUnhealthy", format!("etcd: {message}"), true)
        }
        _ => part,
    }
}

pub(super) fn component(scene: &Scene<'_>, name: &str) -> Option<(bool, String)> {
    let status = scene.observed.cluster?.status.as_ref()?;
    let component = status
        .components
        .iter()
        .find(|component| component.name == name)?;
    Some((
        component.healthy,
        component.message.clone().unwrap_or_else(|| "unhealthy".into()),
    ))
}

pub(super) fn workers(scene: &Scene<'_>, work: &Work<'_>) -> Part {
    let wanted = scene.workers_wanted();
    let ready = counts(scene, Role::Worker, wanted).ready_replicas;
    let summary = format!("{ready} of {wanted} ready");
    if scene.installed.is_none() {
        return match wanted {
            0 => Part::well("NoneWanted", "no worker is wanted"),
            _ => Part::ill(
                "NotInstalled",
                "workers join once the control plane is installed",
                false,
            ),
        };
    }
    if let Some((member, failures, cause)) = work.joins.halted.first() {
        let retry = retry(scene);
        let of_all = match work.joins.halted.len() {
            1 => String::new(),
            more => format!("{more} of {wanted} workers could not join; "),
        };
        let message = match cause {
            Some(cause) => format!(
                "{of_all}{} could not join after {} ({}): {}; correct it, then {retry}",
                member.title(),
                count(*failures, "attempt"),
                cause.reason,
                cause.message
            ),
            None => format!("the join of {} was canceled; to go on, {retry}", member.title()),
        };
        return Part::ill("JoinFailed", with_join_under_way(scene, message), true);
    }
    if let Some(run) = scene.active.iter().find(|run| run.spec.intent == Intent::Join) {
        return Part::ill("Joining", describe(scene, run), false);
    }
    if let Some(held) = &work.joins.held {
        return Part::ill("WaitsToJoin", held.clone(), false);
    }
    if let Some((member, failures, at, cause)) = work.joins.later.first() {
        let of_all = match work.joins.later.len() {
            1 => String::new(),
            more => format!("{more} of {wanted} workers are to be tried again; "),
        };
        let message = format!(
            "{of_all}{} {} ({}): {}; {} at {}",
            member.title(),
            if cause.interrupted {
                "was interrupted while it joined"
            } else {
                "failed to join"
            },
            cause.reason,
            cause.message,
            next_attempt(scene, *failures, cause),
            at.strftime("%H:%M:%S UTC")
        );
        return Part::ill("JoinFailed", message, true);
    }
    if let Some(waits) = waits_for_hosts(scene, |role| role == Role::Worker) {
        return Part::ill("WaitsForHosts", waits, false);
    }
    if let Some(member) = scene.of_role(Role::Worker).find(|member| !member.is_ready()) {
        let unknown = member.condition(condition::READY) == Some("Unknown");
        return Part {
            status: if unknown { None } else { Some(false) },
            reason: if unknown {
                member.ready_reason()
            } else {
                "MachinesNotReady"
            }
            .into(),
            message: format!("{}: {}", member.title(), member.says()),
            bad: member.condition(condition::PROVISIONED) == Some("True"),
        };
    }
    let have = scene.of_role(Role::Worker).count();
    match i32::try_from(have).unwrap_or(i32::MAX) {
        have if have < wanted => Part::ill(
            "ScalingUp",
            format!("{summary}; makes {} more", wanted - have),
            false,
        ),
        have if have > wanted => Part::ill(
            "ScalingDown",
            format!("has {have}, {wanted} wanted: {} leave", have - wanted),
            false,
        ),
        _ => match scene
            .leaving
            .iter()
            .find(|member| member.machine.spec.role == Role::Worker)
        {
            // All that are wanted are well: that others still leave is told, and is no lack.
            Some(member) => Part::well(
                "AllReady",
                format!("{summary}; {} leaves: {}", member.title(), member.says()),
            ),
            None => Part::well("AllReady", summary),
        },
    }
}

fn with_join_under_way(scene: &Scene<'_>, message: String) -> String {
    match scene.active.iter().find(|run| run.spec.intent == Intent::Join) {
        Some(run) => format!("{message}; {}", describe(scene, run)),
        None => message,
    }
}
