//! ScaleDown: which Machines go when there are too many, and how many of them at once.

use crds::Conditions;
use crds::Machine;
use crds::ObjectExt;
use crds::machine_set::DeletionOrder;
use crds::names::{annotation, condition};
use crds::step::Role;

use super::members::{is_live, ordinal_of};
use super::observed::Observed;
use crate::cluster_deployment::removals;
use crate::departure::is_out;
use crate::disruption;
use crate::lifecycle::is_provisioned;
use crate::message::count;

/// Who goes now, and why nobody more does.
#[derive(Default)]
pub(super) struct ScaleDown<'a> {
    pub go: Vec<&'a Machine>,
    pub waits: Option<String>,
    /// Why healthy ones stay although they are too many.
    pub held: Option<String>,
}

/// Of `excess` Machines too many, those that go now.
pub(super) fn scale_down<'a>(observed: &Observed<'_>, own: &[&'a Machine], excess: usize) -> ScaleDown<'a> {
    let live: Vec<&Machine> = own.iter().copied().filter(|machine| is_live(machine)).collect();
    let mut go = in_order(observed, &live);
    go.truncate(excess);
    let held = hold(observed, &mut go);
    let (go, waits) = in_turn(observed, own, &live, go);
    ScaleDown { go, waits: waits.or_else(|| held.clone()), held }
}

/// Of those that would go, the ones that go now, and why no others do.
fn in_turn<'a>(
    observed: &Observed<'_>,
    own: &[&'a Machine],
    live: &[&'a Machine],
    mut go: Vec<&'a Machine>,
) -> (Vec<&'a Machine>, Option<String>) {
    if !observed.formed.is_some_and(|cluster| cluster.is_installed) {
        return (go, None);
    }
    if observed.set.spec.role == Role::Worker {
        return in_service(observed, live, go);
    }
    let Some(first) = go.first().copied() else {
        return (go, None);
    };
    let waits = |message: String| (Vec::new(), Some(message));
    if let Some(other) = own.iter().find(|machine| is_on_its_way(machine)) {
        let other = other.name();
        return waits(format!("waits for machine {other} to leave: one goes at a time"));
    }
    // Members of etcd decide by majority; so many must be well once it is gone.
    if is_provisioned(first) {
        let stay =
            || live.iter().filter(|machine| is_provisioned(machine) && machine.metadata.uid != first.metadata.uid);
        let (members, well) = (stay().count(), stay().filter(|machine| is_ready(machine)).count());
        if well < members / 2 + 1 {
            let name = first.name();
            let role = observed.set.spec.role.name();
            return waits(format!(
                "machine {name} cannot go: {well} of the other {} are known to be well, and {} must be",
                count(members, &format!("{role} machine")),
                members / 2 + 1
            ));
        }
    }
    go.truncate(1);
    (go, None)
}

/// While too many machines of the cluster are sick only those go that nobody would miss; says so if any stays for it.
fn hold(observed: &Observed<'_>, go: &mut Vec<&Machine>) -> Option<String> {
    let why = observed.formed?.removals_held?;
    let all = go.len();
    go.retain(|machine| !removals::is_in_service(machine));
    let stay = all - go.len();
    (stay > 0).then(|| format!("{} too many: {why}", count(stay, "healthy machine")))
}

/// Of workers that would go, those that do: a Ready one stays while, of the count wanted, more than `maxUnavailable`
/// would not be Ready without it.
fn in_service<'a>(
    observed: &Observed<'_>,
    live: &[&Machine],
    mut go: Vec<&'a Machine>,
) -> (Vec<&'a Machine>, Option<String>) {
    let wanted = usize::try_from(observed.set.spec.replicas).unwrap_or_default();
    let most = disruption::most(observed.set, observed.deployment());
    let ready = live.iter().filter(|machine| serves(machine)).count();
    let mut may_go = ready.saturating_sub(wanted.saturating_sub(most));
    let mut kept = None;
    go.retain(|machine| {
        if !serves(machine) {
            return true;
        }
        let goes = may_go > 0;
        may_go = may_go.saturating_sub(1);
        kept = kept.or((!goes).then_some(*machine));
        goes
    });
    let waits = kept.map(|machine| {
        let name = machine.name();
        format!(
            "machine {name} cannot go: {ready} of the {wanted} wanted are Ready, and maxUnavailable comes to {most}"
        )
    });
    (go, waits)
}

/// Whether the machine leaves, and its cluster still has a part in it.
fn is_on_its_way(machine: &Machine) -> bool {
    let deleting = machine.condition(condition::DELETING);
    let out = deleting.is_some_and(|there| there.status == "True" && is_out(&there.reason));
    !is_live(machine) && !out
}

/// Marked ones first, then Machines without a Host, then those that are not well, then those that are drained, then by
/// the set's order.
fn in_order<'a>(observed: &Observed<'_>, live: &[&'a Machine]) -> Vec<&'a Machine> {
    let class = |machine: &Machine| {
        let marked = machine.annotation(annotation::DELETE_FIRST).is_some();
        (!marked, machine.spec.host_ref.is_some(), health(machine), machine.spec.drain_for.is_empty())
    };
    let mut machines = live.to_vec();
    machines.sort_by_key(|machine| {
        (machine.metadata.creation_timestamp.clone(), ordinal_of(machine), machine.metadata.name.clone())
    });
    if observed.set.spec.deletion.order == DeletionOrder::Newest {
        machines.reverse();
    }
    // Stable: within a class the order stays.
    machines.sort_by_key(|machine| class(machine));
    machines
}

/// Not well, not known, well. What is not known may be well: those that are surely not go before.
fn health(machine: &Machine) -> u8 {
    let ready = machine.condition(condition::READY);
    match ready.map(|ready| ready.status.as_str()) {
        Some("True") => 2,
        Some("Unknown") => 1,
        _ => 0,
    }
}

pub(super) fn is_ready(machine: &Machine) -> bool {
    health(machine) == 2
}

/// Whether it is Ready, and takes Pods.
pub(super) fn serves(machine: &Machine) -> bool {
    is_ready(machine) && machine.spec.drain_for.is_empty()
}
