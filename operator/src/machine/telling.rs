//! What a changed status, and what became of the Host, tell as Events.

use crds::Machine;
use crds::Reason;
use crds::names::condition;
use crds::step::Role;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use plan::machine::Step;
use plan::news::news;

use crate::context::Context;

/// The Machine goes with its status: what becomes of its Host is told as an Event alone.
pub(super) async fn of_quarantine(ctx: &Context, machine: &Machine, steps: &[Step]) {
    for step in steps {
        if let Step::Release {
            host,
            quarantine: Some(quarantine),
            ..
        } = step
        {
            let note = format!("Host {} is quarantined: {}", host.name_any(), quarantine.message);
            let reason = format!("{:?}", quarantine.reason);
            ctx.events.warning(machine, &reason, &note).await;
        }
    }
}

/// Tells what came about, and what is wrong.
pub(super) async fn of_conditions(ctx: &Context, machine: &Machine, conditions: &[Condition]) {
    let old = machine
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice())
        .unwrap_or_default();
    let health = match machine.spec.role {
        // It has no Node; how its member of etcd is stands here.
        Role::Etcd => condition::HEALTHY,
        Role::ControlPlane | Role::Worker => condition::NODE_READY,
    };
    let types: &[&str] = match machine.metadata.deletion_timestamp {
        Some(_) => &[condition::DELETING, condition::DRAINED, condition::HOOKS_PLAYED],
        None => &[condition::HOST_CLAIMED, condition::PROVISIONED, health],
    };
    // What is on its way is no Event: only what came about, and what is wrong.
    const TOLD: [Reason; 7] = [
        Reason::Claimed,
        Reason::Provisioned,
        Reason::NodeReady,
        Reason::Draining,
        Reason::Drained,
        Reason::LeavingEtcd,
        Reason::DeletingNode,
    ];
    for news in news(old, conditions, types) {
        if news.warning || Reason::among(&news.reason, &TOLD) {
            ctx.events.news(machine, &news).await;
        }
    }
}

/// What is done about a sick machine, and why nothing is: each decision once.
pub(super) async fn of_repair(ctx: &Context, machine: &Machine, conditions: &[Condition]) {
    let old = machine.status.as_ref().map(|status| status.conditions.as_slice());
    for news in news(old.unwrap_or_default(), conditions, &[condition::REMEDIATION]) {
        ctx.events.news(machine, &news).await;
    }
}
