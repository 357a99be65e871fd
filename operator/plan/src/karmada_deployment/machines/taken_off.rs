//! Parts that machines have and that are wanted no more: a component that was switched off. It is taken off all
//! machines at once, since nothing in the plane leads to it any more.

use crds::playbook_run::Digest;
use crds::step::Intent;
use serde_json::{Value, json};

use super::super::component::Component;
use super::act::Act;
use super::estimators;
use super::order::{Part, parts};
use super::part_run::part_run;
use super::part_wanted::PartWanted;
use super::placed::{digest_in, placed};
use super::state::PlaneState;
use crate::attempts::{self, RetryDecision};
use crate::cluster_machine::ClusterMachine;
use crate::moment::clock;
use crate::run_request::Target;

/// The run that takes the first of them off, if one is due, and what is said; none: nothing is to be taken off.
/// `keeps_estimators`: those stay for now.
pub(super) fn taken_off(state: &PlaneState<'_>, keeps_estimators: bool) -> Option<(Option<Act>, String)> {
    let wanted = parts(&state.object.spec);
    let is_wanted = |part: Part| wanted.iter().any(|(_, wanted)| *wanted == part);
    let mut all = Component::every().filter(|component| *component != Component::Etcd);
    let (component, part, machines) = all.find_map(|component| {
        let part = Part::of(component);
        if is_wanted(part) || (part == Part::Estimators && keeps_estimators) {
            return None;
        }
        let has = |machine: &ClusterMachine<'_>| placed(machine, part, state.seen.runs).is_some();
        let machines: Vec<ClusterMachine<'_>> = state.working(part.role(&state.object.spec)).filter(has).collect();
        (!machines.is_empty()).then_some((component, part, machines))
    })?;
    let message = format!("taking {} off machine {}", part.title(), machines[0].title());
    if let Some(run) = state.under_way() {
        return Some((None, state.describe(run)));
    }
    let mut targets: Vec<Target<'_>> = Vec::new();
    let mut waits = None;
    for machine in machines {
        match decision(state, part, &machine) {
            decision @ (RetryDecision::Now { .. } | RetryDecision::Done { .. }) => {
                targets.push((machine, decision.retry()));
            }
            RetryDecision::Later { at, .. } => waits = Some(format!("{message}: tried again at {}", clock(at))),
            RetryDecision::Halted { .. } | RetryDecision::UnderWay { .. } => {}
        }
    }
    if targets.is_empty() {
        return Some((None, waits.unwrap_or(message)));
    }
    let mut absent = PartWanted::new(component.stage(), part);
    for (machine, _) in &targets {
        absent.digests.insert(machine.name().to_owned(), Digest::ABSENT.to_owned());
        if part != Part::Estimators {
            absent.services.extend(machine.host_name().map(|host| (host.to_owned(), service(part))));
        }
    }
    if part == Part::Estimators {
        absent.vars.insert(estimators::VARIABLE.to_owned(), estimators::none());
    }
    Some((Some(Act::create(part_run(state, &[&absent], &targets))), message))
}

/// The service of a component that is not to be there.
fn service(part: Part) -> Value {
    json!({
        "name": part.name(), "state": Digest::ABSENT, "unit": part.unit(), "directory": format!("/etc/karmada/pki/{}", part.name()),
    })
}

fn decision(state: &PlaneState<'_>, part: Part, machine: &ClusterMachine<'_>) -> RetryDecision {
    let tried: Vec<_> = state.own_runs().filter(|run| digest_in(run, part, machine) == Some(Digest::ABSENT)).collect();
    let tried = attempts::tried(&tried, &[Intent::Configure], machine.uid());
    let policy = state.terms.endless(state.terms.asked_retries(machine.machine));
    attempts::retry_decision(&tried, &policy, state.now)
}
