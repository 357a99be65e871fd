//! Events about a changed status, and about what became of the Host.

use crds::Conditions;
use crds::Machine;
use crds::Reason;
use crds::names::condition;
use crds::step::Role;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use plan::machine::Action;
use plan::transitions::transitions;

use crate::context::Context;

/// The Machine goes with its status: what becomes of its Host is reported by an Event alone.
pub(super) async fn quarantine(ctx: &Context, machine: &Machine, actions: &[Action]) {
    for action in actions {
        if let Action::Release { host, quarantine: Some(quarantine), .. } = action {
            let note = format!("Host {} is quarantined: {}", host.name_any(), quarantine.message);
            let reason = format!("{:?}", quarantine.reason);
            ctx.events.warning(machine, &reason, &note).await;
        }
    }
}

/// Reports what came about, and what is wrong.
pub(super) async fn conditions(ctx: &Context, machine: &Machine, conditions: &[Condition]) {
    let health = match machine.spec.role {
        // It has no Node; how its member of etcd is stands here.
        Role::Etcd => condition::HEALTHY,
        Role::ControlPlane | Role::Worker => condition::NODE_READY,
    };
    let types: &[&str] = match machine.metadata.deletion_timestamp {
        Some(_) => &[condition::DELETING, condition::DRAINED, condition::HOOKS_PLAYED],
        None => &[condition::HOST_CLAIMED, condition::PROVISIONED, condition::DRAINED, condition::DRIFTED, health],
    };
    // What is on its way is no Event: only what came about, and what is wrong.
    const TOLD: [Reason; 8] = [
        Reason::Claimed,
        Reason::Provisioned,
        Reason::NodeReady,
        Reason::Draining,
        Reason::Drained,
        Reason::LeavingEtcd,
        Reason::DeletingNode,
        Reason::RepairingDrift,
    ];
    for transition in transitions(machine.conditions(), conditions, types) {
        if transition.warning || Reason::among(&transition.reason, &TOLD) {
            ctx.events.transition(machine, &transition).await;
        }
    }
}

/// What is done about a sick machine, and why nothing is: each decision once.
pub(super) async fn remediation(ctx: &Context, machine: &Machine, conditions: &[Condition]) {
    for transition in transitions(machine.conditions(), conditions, &[condition::REMEDIATION]) {
        ctx.events.transition(machine, &transition).await;
    }
}
