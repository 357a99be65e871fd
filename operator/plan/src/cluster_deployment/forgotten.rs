//! Forgotten: machines that are removed without reaching them, while their cluster does not answer either. What still stands for
//! them there is written down before they go, and remembered until it is gone.

use std::collections::BTreeSet;

use crds::ClusterDeploymentStatus;
use crds::cluster_deployment::ForgottenMachine;
use crds::conditions::Statement;
use crds::host::QuarantineReason;
use crds::names::condition;
use crds::step::Role;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::growth::why_it_stays;
use super::scene::{Member, Scene};
use crate::cluster::NodeSeen;
use crate::departure;
use crate::machine::leaving;
use crate::sentence::{count, cut};
use crate::{Next, provisioning};

/// Entries that the status takes; more machines wait until there is room.
const MOST_TOLD: usize = 500;
/// How often Nodes that are to go are looked for.
const LOOK_AGAIN_SECONDS: u64 = 30;

/// What is remembered of forgotten machines.
pub(super) struct Forgotten {
    machines: Vec<ForgottenMachine>,
    statement: Option<Statement>,
    /// When to look again.
    pub next: Next,
}

impl Forgotten {
    /// Puts it into the status.
    pub fn tell(&self, status: &mut ClusterDeploymentStatus, statements: &mut Vec<Statement>) {
        status.forgotten = self.machines.clone();
        match &self.statement {
            Some(statement) => statements.push(statement.clone()),
            None => status
                .conditions
                .retain(|there| there.type_ != condition::MACHINES_FORGOTTEN),
        }
    }
}

/// A cluster that is deleted owes nobody anything.
pub(super) fn cleared(status: &mut ClusterDeploymentStatus) {
    status.forgotten.clear();
    let is_stale = |type_: &str| type_ == condition::MACHINES_FORGOTTEN;
    status.conditions.retain(|there| !is_stale(&there.type_));
}

pub(super) fn of(scene: &Scene<'_>) -> Forgotten {
    let council = scene.council();
    let mut machines = remembered(scene);
    let known: BTreeSet<String> = machines.iter().map(|one| one.uid.clone()).collect();
    let new = scene
        .leaving
        .iter()
        .filter(|member| !known.contains(member.uid()));
    machines.extend(new.filter_map(|member| written_down(scene, member)));
    for one in &mut machines {
        one.etcd_member = one.etcd_member && !council.is_out_of_etcd(one);
        one.node_ready = node(scene, one).is_some_and(|node| node.ready == Some(true));
    }
    machines.retain(|one| is_there(scene, one) || (scene.installed.is_some() && is_owed(scene, one)));
    machines.truncate(MOST_TOLD);
    let gone: Vec<&ForgottenMachine> = machines.iter().filter(|one| !is_there(scene, one)).collect();
    let statement = gone.first().map(|first| {
        let (reason, message) = match first.etcd_member {
            true => {
                let title = departure::title_of_forgotten(first);
                let message = match why_it_stays(scene, &council, first) {
                    Some(why) => format!("{title} is to be taken out of etcd: {why}"),
                    None => format!("{title} is taken out of etcd, then its Node is deleted"),
                };
                ("OwesEtcdMember", message)
            }
            false => {
                let title = departure::title_of_forgotten(first);
                (
                    "OwesNode",
                    format!("the Node of {title} is to be deleted, if there is one"),
                )
            }
        };
        let more = match gone.len() {
            1 => String::new(),
            more => format!("; and {}", count(more - 1, "more machine")),
        };
        Statement::new(
            condition::MACHINES_FORGOTTEN,
            true,
            reason,
            cut(format!("{message}{more}")),
        )
    });
    Forgotten {
        next: match statement {
            Some(_) => Next::after_seconds(LOOK_AGAIN_SECONDS),
            None => Next::OnChange,
        },
        machines,
        statement,
    }
}

/// What the status says; where that was lost, what the Hosts say that were taken from forgotten machines.
fn remembered(scene: &Scene<'_>) -> Vec<ForgottenMachine> {
    let status = scene.deployment.status.as_ref();
    let mut remembered = status.map(|status| status.forgotten.clone()).unwrap_or_default();
    if status.is_some_and(|status| status.last_token.is_some()) {
        return remembered;
    }
    for host in scene.observed.hosts {
        let quarantine = host.spec.quarantine.as_ref();
        let Some(quarantine) = quarantine.filter(|quarantine| {
            quarantine.reason == QuarantineReason::ForceRemoved
                && quarantine.cluster_name.as_deref() == Some(&scene.name)
        }) else {
            continue;
        };
        let (Some(uid), Some(role)) = (&quarantine.machine_uid, quarantine.role) else {
            continue;
        };
        if remembered.iter().all(|one| one.uid != *uid) {
            remembered.push(ForgottenMachine {
                uid: uid.clone(),
                machine: quarantine.machine.clone(),
                host: host.metadata.name.clone().unwrap_or_default(),
                role,
                provisioned: true,
                etcd_member: Some(role) == scene.council().etcd_role(),
                node_ready: false,
                since: quarantine.since.clone(),
            });
        }
    }
    remembered
}

/// A machine that a person wants to be forgotten, if anything was ever done to it.
fn written_down(scene: &Scene<'_>, member: &Member<'_>) -> Option<ForgottenMachine> {
    let machine = member.machine;
    if !leaving::is_forced(machine) || !provisioning::was_touched(machine, scene.observed.runs) {
        return None;
    }
    let council = scene.council();
    Some(ForgottenMachine {
        uid: member.uid().to_owned(),
        machine: member.name().to_owned(),
        host: member.host_name()?.to_owned(),
        role: machine.spec.role,
        provisioned: member.is_provisioned(),
        etcd_member: council.is_of_etcd(machine) && council.left_at(machine).is_none(),
        node_ready: false,
        since: Time(scene.observed.now),
    })
}

/// Whether its Machine is still there, and says itself what it waits for.
fn is_there(scene: &Scene<'_>, one: &ForgottenMachine) -> bool {
    scene.leaving.iter().any(|member| member.uid() == one.uid)
}

/// Whether something in the cluster stands for it, or may.
fn is_owed(scene: &Scene<'_>, one: &ForgottenMachine) -> bool {
    let mut machines = scene.observed.machines.iter();
    let is_anothers = machines.any(|machine| {
        let named = machine.spec.host_ref.as_ref();
        named.is_some_and(|named| named.name == one.host)
    });
    let has_node = one.role != Role::Etcd && !is_anothers;
    let gone = || scene.observed.forgotten_nodes.is_some() && node(scene, one).is_none();
    one.etcd_member || (has_node && !gone())
}

fn node<'a>(scene: &Scene<'a>, one: &ForgottenMachine) -> Option<&'a NodeSeen> {
    let nodes = scene.observed.forgotten_nodes?;
    nodes.iter().find(|node| node.name == one.host)
}
