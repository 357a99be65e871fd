//! Parts that machines have and that are wanted no more: a component that was switched off. It is taken off all
//! machines at once, since nothing in the plane leads to it any more.

use std::collections::BTreeMap;

use crds::playbook_run::Digest;
use crds::step::Intent;
use serde_json::{Map, Value, json};

use super::super::component::Component;
use super::act::Act;
use super::order::{Part, parts};
use super::placed::{digest_in, placed};
use super::rollout::part_run;
use super::state::PlaneState;
use crate::attempts::{self, RetryDecision};
use crate::cluster_machine::ClusterMachine;
use crate::moment::clock;
use crate::run_request::Target;

/// The run that takes the first of them off, if one is due, and what is said; none: nothing is to be taken off.
pub(super) fn taken_off(state: &PlaneState<'_>) -> Option<(Option<Act>, String)> {
    let wanted = parts(&state.object.spec);
    let is_wanted = |part: Part| wanted.iter().any(|(_, wanted)| *wanted == part);
    let all = Component::ALL.into_iter().filter(|component| *component != Component::Etcd).map(Part::Component);
    let (part, machines) = all.filter(|part| !is_wanted(*part)).find_map(|part| {
        let has = |machine: &ClusterMachine<'_>| placed(machine, part, state.seen.runs).is_some();
        let machines: Vec<ClusterMachine<'_>> = state.working(part.role(&state.object.spec)).filter(has).collect();
        (!machines.is_empty()).then_some((part, machines))
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
    let hosts: Vec<&str> = targets.iter().filter_map(|(machine, _)| machine.host_name()).collect();
    let digests = hosts.iter().map(|host| ((*host).to_owned(), Digest(Digest::ABSENT.to_owned()))).collect();
    let service = json!({ "karmada_service": {
        "name": part.name(), "state": Digest::ABSENT, "unit": part.unit(), "directory": format!("/etc/karmada/pki/{}", part.name()),
    } });
    let of_hosts: Map<String, Value> = hosts.iter().map(|host| ((*host).to_owned(), service.clone())).collect();
    let vars = BTreeMap::from([
        ("karmada_hosts".to_owned(), Value::Object(of_hosts)),
        ("karmada_programs".to_owned(), json!([])),
    ]);
    let run = part_run(state, part, digests, vars, &targets);
    Some((Some(Act::create(run)), message))
}

fn decision(state: &PlaneState<'_>, part: Part, machine: &ClusterMachine<'_>) -> RetryDecision {
    let tried: Vec<_> = state.own_runs().filter(|run| digest_in(run, part, machine) == Some(Digest::ABSENT)).collect();
    let tried = attempts::tried(&tried, &[Intent::Configure], machine.uid());
    let policy = state.terms.endless(state.terms.asked_retries(machine.machine));
    attempts::retry_decision(&tried, &policy, state.now)
}
