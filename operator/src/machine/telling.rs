//! What a changed status, and what became of the Host, tell as Events.

use crds::Machine;
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
    let fine = [
        "Running",
        // The set tells what the pool lacks.
        "NoHost",
        "NodeStarting",
        "Claimed",
        "Claiming",
        "WaitsForHost",
        "WaitsForRun",
        "Provisioning",
        "Provisioned",
        "NodeReady",
        "NodeNotThereYet",
        "NodeNotSeenYet",
        "ClusterNotThereYet",
        "RunUnderWay",
        "WaitsForTurn",
        "WaitsForHooks",
        "Draining",
        "Drained",
        "NothingToDrain",
        "LeavesEtcd",
        "WaitsForReset",
        "DeletesNode",
        "ReleasesHost",
        "HostReleased",
    ];
    // What is on its way is no Event: only what came about, and what is wrong.
    let told = [
        "Claimed",
        "Provisioned",
        "NodeReady",
        "Draining",
        "Drained",
        "LeavesEtcd",
        "DeletesNode",
    ];
    for news in news(old, conditions, types, |condition| {
        !fine.contains(&condition.reason.as_str())
    }) {
        if news.warning || told.contains(&news.reason.as_str()) {
            ctx.events.news(machine, &news).await;
        }
    }
}

/// What is done about a sick machine, and why nothing is: each decision once.
pub(super) async fn of_repair(ctx: &Context, machine: &Machine, conditions: &[Condition]) {
    let old = machine.status.as_ref().map(|status| status.conditions.as_slice());
    let on_the_way = |repair: &Condition| {
        repair.status == "True" || ["Waiting", "Recovered"].contains(&repair.reason.as_str())
    };
    let types = [condition::REMEDIATION];
    for news in news(old.unwrap_or_default(), conditions, &types, |repair| {
        !on_the_way(repair)
    }) {
        ctx.events.news(machine, &news).await;
    }
}
