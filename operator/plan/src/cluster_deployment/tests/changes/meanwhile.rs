//! What people do while a change is under way: they edit the spec, delete the cluster, take Machines from their sets,
//! lose runs, and pause.

use std::collections::BTreeSet;

use crds::ObjectExt;
use crds::names::annotation;
use crds::playbook_run::RunPhase;
use crds::step::Intent;
use serde_json::json;

use super::super::ready;
use super::{Change, KINDS, Minor, Patch, Renewal, UPGRADES, is_at_work, pass};
use crate::testing::World;

fn phase_of(world: &World, name: &str) -> Option<RunPhase> {
    let run = world.runs.iter().find(|run| run.name() == name)?;
    run.status.as_ref()?.phase
}

/// What is edited, and whether it is met.
fn edit(change: Change, world: &mut World) {
    world.change_spec("a", |spec| {
        if change == Minor || change == Patch {
            spec.kubernetes_version = if change == Minor { "1.36.1" } else { "1.35.10" }.parse().unwrap();
        }
        spec.workers[0].labels = serde_json::from_value(json!({ "pool": "new" })).unwrap();
    });
}

#[test]
fn a_spec_that_changes_while_a_change_works_is_met_after_it_row_28() {
    for change in KINDS.into_iter().chain([Patch]) {
        for moment in change.at_work() {
            let mut world = moment.clone();
            let asked = change.work(&moment).unwrap().clone();
            edit(change, &mut world);
            world.write_statuses();
            let status = world.deployment.status.clone().unwrap();
            assert_eq!(status.pending_generation, world.deployment.metadata.generation, "{change:?}");
            change.finish(&mut world);
            let run = world.runs.iter().find(|run| run.name() == asked.name()).unwrap();
            assert_eq!(
                (&run.spec, phase_of(&world, asked.name())),
                (&asked.spec, Some(RunPhase::Succeeded)),
                "{change:?}"
            );
            let status = world.deployment.status.clone().unwrap();
            assert_eq!(status.pending_generation, None, "{change:?}");
            let labels = json!(world.sets[1].spec.template.labels);
            assert_eq!(labels, json!({ "pool": "new" }), "{change:?}");
        }
    }
}

/// Whoever wants to be asked first protects the cluster.
#[test]
fn a_cluster_that_is_deleted_while_a_change_works_stops_it_and_cleans_every_machine_once_row_29() {
    for change in KINDS {
        for moment in change.at_work() {
            let mut world = moment.clone();
            let name = change.work(&moment).unwrap().name().to_owned();
            world.delete();
            world.write_statuses();
            world.settle();
            assert!(world.gone && world.dirty.is_empty(), "{change:?}: {:?}", world.dirty);
            assert_eq!(phase_of(&world, &name), Some(RunPhase::Canceled), "{change:?}");
            let resets = world.runs.iter().filter(|run| run.spec.intent == Intent::Reset);
            let cleaned: Vec<&String> = resets.flat_map(|run| &run.spec.hosts).collect();
            let once: BTreeSet<&&String> = cleaned.iter().collect();
            assert_eq!((cleaned.len(), once.len()), (5, 5), "{change:?}: no machine is cleaned twice");
        }
    }
}

#[test]
fn a_protected_cluster_that_is_deleted_in_an_upgrade_waits_for_an_approval_row_29() {
    for moment in Minor.at_work() {
        let mut world = moment.clone();
        world.change_spec("a", |spec| spec.deletion_protection = true);
        world.delete();
        (0..30).for_each(|_| pass(&mut world));
        assert!(!world.gone && world.dirty.len() == 5, "{:?}", ready(&world));
        let resets = world.runs.iter().filter(|run| run.spec.intent == Intent::Reset);
        assert_eq!(resets.count(), 0);
        let status = world.deployment.status.clone().unwrap();
        assert!(status.message.clone().unwrap().contains("delete-confirmed"), "{:?}", status.message);
        world.request("a", annotation::DELETE_CONFIRMED);
        world.settle();
        assert!(world.gone && world.dirty.is_empty());
    }
}

/// What ties it to its set is taken off the Machine that is worked on, runs that have ended are deleted, and so is the
/// status of the MachineSets.
#[test]
fn a_machine_that_loses_its_owner_and_runs_that_are_deleted_change_nothing_row_30() {
    for change in KINDS {
        let whole = change.whole();
        for moment in change.at_work() {
            let mut world = moment.clone();
            let host = change.work(&moment).unwrap().spec.hosts[0].clone();
            let machine = world
                .machines
                .iter_mut()
                .find(|machine| machine.spec.host_ref.as_ref().is_some_and(|named| named.name == host));
            let metadata = &mut machine.unwrap().metadata;
            (metadata.owner_references, metadata.finalizers) = (None, None);
            let before = change.runs(&world).len();
            world.runs.retain(|run| !crate::attempts::is_over(run) || !change.intents().contains(&run.spec.intent));
            let lost = before - change.runs(&world).len();
            world.lose(crate::testing::Kind::MachineSet);
            change.finish(&mut world);
            assert_eq!(change.runs(&world).len() + lost, whole, "{change:?}");
            let is_whole = |machine: &crds::Machine| {
                machine.metadata.owner_references.is_some() && machine.metadata.finalizers.is_some()
            };
            assert!(world.machines.iter().all(is_whole) && world.machines.len() == 5, "{change:?}");
        }
    }
}

#[test]
fn a_pause_lets_the_step_end_holds_the_change_and_is_no_attempt_row_32() {
    for change in KINDS {
        let whole = change.whole();
        for moment in change.at_work() {
            let mut world = moment.clone();
            let name = change.work(&moment).unwrap().name().to_owned();
            let steps = change.work(&moment).unwrap().spec.steps.len();
            world.change_spec("a", |spec| spec.paused = true);
            world.write_statuses();
            let before = change.runs(&world).len();
            (0..12).for_each(|_| pass(&mut world));
            let place = format!("{change:?}: {}", change.says(&world));
            assert!(!world.runs.iter().any(is_at_work), "{place}");
            assert_eq!(change.runs(&world).len(), before, "{place}");
            let held = phase_of(&world, &name);
            assert_eq!(held, Some(RunPhase::Canceled), "{place}");
            world.change_spec("a", |spec| spec.paused = false);
            change.finish(&mut world);
            assert_eq!(change.runs(&world).len(), whole + 1, "{change:?} with {steps} steps");
        }
    }
}

/// What was undone by hand while the operator was away is done anew.
#[test]
fn a_status_that_is_lost_in_any_phase_of_a_change_makes_nothing_begin_beside_it() {
    for change in KINDS.into_iter().filter(|change| *change != Renewal) {
        for moment in change.at_work() {
            let mut world = moment.clone();
            world.lose_status();
            (0..40).for_each(|_| pass(&mut world));
            // The world asserts that no run is beside another that excludes it, and that no guard is overtaken.
            assert_eq!(world.machines.len(), 5, "{change:?}");
            assert_eq!(ready(&world).0, "True", "{change:?}: {:?}", ready(&world));
        }
    }
    assert_eq!(UPGRADES.len(), 2);
}
