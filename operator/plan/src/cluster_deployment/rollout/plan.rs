//! What is still to be done to machines that stay, in words: by what the operations themselves take for due.

use std::collections::BTreeSet;

use crds::cluster_deployment::{PlannedChange, PlannedOperation, RolloutPlan};
use crds::step::Role;

use crate::cluster_deployment::operations::renew_certificates;
use crate::cluster_deployment::outdated_machine::Outdated;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::message::{count, cut};

/// Changes that are listed.
const LISTED: usize = 64;
/// Machines that are named for each.
const NAMED: usize = 5;
/// What is said of a change.
const LONGEST: usize = 128;

/// The plan, but for its approval; none: nothing is to be done.
pub(super) fn plan(state: &ClusterState<'_>) -> Option<RolloutPlan> {
    let mut changes = Changes::default();
    upgrades(state, &mut changes);
    settings(state, &mut changes);
    drifted(state, &mut changes);
    for machine in renew_certificates::due_now(state) {
        changes.add(PlannedOperation::Renew, "certificates", &machine, Effect::None);
    }
    let mut changes = changes.0;
    let summary = cut(summary(&changes));
    changes.truncate(LISTED);
    (!changes.is_empty()).then(|| RolloutPlan { summary, changes, ..RolloutPlan::default() })
}

/// What is wanted and disrupts machines: each change by itself, whatever machines are left.
pub(super) fn wishes(state: &ClusterState<'_>) -> BTreeSet<String> {
    // All minors on the way are approved at once.
    let via: String = state.deployment.spec.upgrade_path.via.iter().map(|version| format!(" {version}")).collect();
    let upgrade = state.upgrade.iter().map(|upgrade| format!("Upgrade{via} {}", upgrade.wanted));
    let disruptive = state.outdated.iter().flat_map(Outdated::effects).filter(|(_, restarts)| *restarts);
    let settings = disruptive.map(|(difference, _)| format!("{} {}", difference.field, difference.wanted));
    let repairs = state.drifted.iter().filter(|drifted| drifted.is_disruptive());
    let repairs = repairs.map(|drifted| format!("Repair {}", drifted.named()));
    upgrade.chain(settings).chain(repairs).map(|wish| wish.chars().take(LONGEST).collect()).collect()
}

fn upgrades(state: &ClusterState<'_>, changes: &mut Changes) {
    let Some(upgrade) = &state.upgrade else { return };
    for machine in &upgrade.due {
        let effect = if upgrade.drains(machine) { Effect::Drains } else { Effect::Restarts };
        changes.add(PlannedOperation::Upgrade, &upgrade.change(machine), machine, effect);
    }
}

fn settings(state: &ClusterState<'_>, changes: &mut Changes) {
    for outdated in &state.outdated {
        for (difference, restarts) in outdated.effects() {
            let effect = match restarts {
                true if difference.drains => Effect::Drains,
                true => Effect::Restarts,
                false => Effect::None,
            };
            changes.add(PlannedOperation::Configure, &difference.field, &outdated.machine, effect);
        }
    }
}

fn drifted(state: &ClusterState<'_>, changes: &mut Changes) {
    for drifted in &state.drifted {
        let effect = if drifted.is_disruptive() { Effect::Restarts } else { Effect::None };
        changes.add(PlannedOperation::Repair, &drifted.named(), &drifted.machine, effect);
    }
}

/// What a machine's users notice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    None,
    Restarts,
    Drains,
}

#[derive(Default)]
struct Changes(Vec<PlannedChange>);

impl Changes {
    fn add(&mut self, operation: PlannedOperation, what: &str, machine: &ClusterMachine<'_>, effect: Effect) {
        let of_machine = PlannedChange {
            operation,
            what: what.chars().take(LONGEST).collect(),
            role: machine.machine.spec.role,
            machines: 1,
            names: vec![machine.name().to_owned()],
            disruptive: effect != Effect::None,
            drained: effect == Effect::Drains,
        };
        let is_same = |there: &&mut PlannedChange| {
            (there.operation, &there.what, there.role, there.disruptive, there.drained)
                == (operation, &of_machine.what, of_machine.role, of_machine.disruptive, of_machine.drained)
        };
        match self.0.iter_mut().find(is_same) {
            Some(there) => {
                there.machines += 1;
                there.names.extend(of_machine.names.into_iter().take(NAMED.saturating_sub(there.names.len())));
            }
            None => self.0.push(of_machine),
        }
    }
}

/// Operation, what, whether it disrupts, whether Nodes are drained.
type Kind<'a> = (PlannedOperation, &'a str, bool, bool);

/// `Upgrade 1.34.4 -> 1.35.4: 3 control planes, 197 workers (restarts, drained); Configure controlPlane.certSANs: ...`.
fn summary(changes: &[PlannedChange]) -> String {
    let mut all: Vec<(Kind<'_>, Vec<String>)> = Vec::new();
    for change in changes {
        let key = (change.operation, change.what.as_str(), change.disruptive, change.drained);
        let number = usize::try_from(change.machines).unwrap_or_default();
        let machines = count(number, thing(change.role));
        match all.iter_mut().find(|(there, _)| *there == key) {
            Some((_, there)) => there.push(machines),
            None => all.push((key, vec![machines])),
        }
    }
    let told = all.into_iter().map(|((operation, what, disruptive, drained), machines)| {
        let effect = match (disruptive, drained) {
            (_, true) => " (restarts, drained)",
            (true, false) => " (restarts)",
            (false, false) => "",
        };
        format!("{operation:?} {what}: {}{effect}", machines.join(", "))
    });
    told.collect::<Vec<_>>().join("; ")
}

fn thing(role: Role) -> &'static str {
    match role {
        Role::ControlPlane => "control plane",
        Role::Etcd => "etcd member",
        Role::Worker => "worker",
    }
}
