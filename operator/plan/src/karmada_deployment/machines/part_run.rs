//! The run that brings parts to machines.

use std::collections::BTreeMap;

use crds::PlaybookRun;
use crds::names::annotation;
use crds::playbook_run::{Digest, KarmadaPart};
use crds::step::{Intent, Role};
use serde_json::{Map, Value};

use super::super::component::Component;
use super::order::{Part, in_order, steps};
use super::part_wanted::PartWanted;
use super::placed::digest_in;
use super::state::PlaneState;
use crate::attempts;
use crate::departure::has_sick_member;
use crate::naming::short_hash;
use crate::run_request::{Attempt, RunRequest, Target};

/// The variable by which members of an etcd that exists are started again at once.
const AT_ONCE: &str = "etcd_members_at_once";

/// The run that brings these parts to these machines, each machine's one after the other; its name follows from all of
/// that.
pub(super) fn part_run(state: &PlaneState<'_>, wanted: &[&PartWanted], targets: &[Target<'_>]) -> PlaybookRun {
    let mut wanted = wanted.to_vec();
    wanted.sort_by_key(|one| in_order(one.part));
    let parts: Vec<Part> = wanted.iter().map(|one| one.part).collect();
    let (brought, mut vars) = parts_of_run(&wanted, targets);
    let words = brought.iter().flat_map(|one| {
        let digests = one.digests.iter().map(|(host, digest)| format!("{host}={}", digest.0));
        [one.part.clone()].into_iter().chain(digests)
    });
    let words: Vec<String> = words.collect();
    let key = short_hash(&words.iter().map(String::as_str).collect::<Vec<_>>(), 16);
    if parts.contains(&Part::Etcd) && are_down_together(targets) {
        vars.insert(AT_ONCE.to_owned(), Value::Bool(true));
    }
    let mut run = state.request(RunRequest {
        name_of: Some(vec![key.clone()]),
        vars,
        parts: brought,
        rolls_out: Some(key),
        ..RunRequest::new(
            Intent::Configure,
            steps(&parts),
            targets,
            Attempt::from_start(number(state, &wanted, targets)),
        )
    });
    // Of which members of a dedicated etcd it tells the API server.
    if parts.contains(&Part::Component(Component::ApiServer))
        && state.cluster.etcd_role == Some(Role::Etcd)
        && let Some(since) = state.membership().changed_at()
    {
        let annotations = run.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::ETCD_CHANGE.to_owned(), since.to_string());
    }
    run
}

/// What a run says that it brings with these parts, in their order, and what its playbooks need for that.
pub(super) fn parts_of_run(
    wanted: &[&PartWanted],
    targets: &[Target<'_>],
) -> (Vec<KarmadaPart>, BTreeMap<String, Value>) {
    (wanted.iter().map(|one| karmada_part(one, targets)).collect(), variables(wanted, targets))
}

/// Whether the members of etcd on all these machines are down, so that none gets well before the others start again.
fn are_down_together(targets: &[Target<'_>]) -> bool {
    targets.len() > 1 && targets.iter().all(|(machine, _)| has_sick_member(machine.machine))
}

fn karmada_part(wanted: &PartWanted, targets: &[Target<'_>]) -> KarmadaPart {
    let digest = |(machine, _): &Target<'_>| {
        let digest = wanted.digests.get(machine.name())?.clone();
        Some((machine.host_name()?.to_owned(), Digest(digest)))
    };
    KarmadaPart { part: wanted.part.name().to_owned(), digests: targets.iter().filter_map(digest).collect() }
}

/// After all attempts at any of this: of each of these parts the last attempt has the highest number.
fn number(state: &PlaneState<'_>, wanted: &[&PartWanted], targets: &[Target<'_>]) -> i32 {
    let is_same = |run: &&PlaybookRun| {
        wanted.iter().any(|one| {
            targets.iter().any(|(machine, _)| {
                let digest = digest_in(run, one.part, machine);
                digest.is_some() && digest == one.digests.get(machine.name()).map(String::as_str)
            })
        })
    };
    let tried = state.own_runs().filter(|run| run.spec.intent == Intent::Configure);
    attempts::number_after(tried.filter(is_same))
}

/// What playbooks need of these parts.
fn variables(wanted: &[&PartWanted], targets: &[Target<'_>]) -> BTreeMap<String, Value> {
    let mut vars: BTreeMap<String, Value> = wanted.iter().flat_map(|one| one.vars.clone()).collect();
    if wanted.iter().any(|one| one.part.has_programs()) {
        let programs: Vec<Value> = wanted.iter().filter_map(|one| one.program.clone()).collect();
        vars.insert("karmada_programs".to_owned(), Value::Array(programs));
    }
    if wanted.iter().all(|one| one.services.is_empty()) {
        return vars;
    }
    let of_host = |(machine, _): &Target<'_>| {
        let host = machine.host_name()?;
        let services: Vec<Value> = wanted.iter().filter_map(|one| one.services.get(host).cloned()).collect();
        let own = Map::from_iter([("karmada_services".to_owned(), Value::Array(services))]);
        Some((host.to_owned(), Value::Object(own)))
    };
    vars.insert("karmada_hosts".to_owned(), Value::Object(targets.iter().filter_map(of_host).collect()));
    vars
}
