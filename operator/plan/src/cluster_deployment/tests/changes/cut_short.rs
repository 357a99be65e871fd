//! Executors that are lost, that never come up, whose time is over, or that say what is not so.

use crds::playbook_run::RunPhase;
use crds::step::{Intent, Role};
use jiff::SignedDuration;

use super::super::rows::end_run;
use super::{Change, KINDS, Minor, Patch, Renewal, UPGRADES, is_at_work, pass};
use crate::rotation::Subject;
use crate::testing::{Fate, World};

/// Where the run that works stands among all.
fn index(world: &World) -> usize {
    world.runs.iter().position(is_at_work).unwrap()
}

/// After the run that worked at that moment, one with the same steps on the same machines was made, with a higher
/// token, and none beside it.
fn is_taken_up(change: Change, moment: &World, end: &World, whole: usize, place: &str) {
    let cut = change.work(moment).unwrap();
    let runs = change.runs(end);
    let told: Vec<_> = runs.iter().map(|run| (&run.spec.steps, &run.spec.hosts)).collect();
    assert_eq!(runs.len(), whole + 1, "{place}: {told:?}");
    let place_of = runs.iter().position(|run| run.metadata.name == cut.metadata.name).unwrap();
    let again =
        runs[place_of + 1..].iter().find(|run| run.spec.steps == cut.spec.steps && run.spec.hosts == cut.spec.hosts);
    let token = |run: &crds::PlaybookRun| run.status.as_ref().unwrap().token;
    assert!(again.is_some_and(|again| token(again) > token(cut)), "{place}: {told:?}");
}

#[test]
fn whatever_ended_an_executor_its_change_is_taken_up_again_with_a_higher_token_rows_13_14_15_and_18() {
    let reasons = ["PodDeleted", "Evicted", "ExecutorKilled", "OutOfMemory", "ContactLost", "JobDeleted"];
    let mut reasons = reasons.into_iter().cycle();
    for change in KINDS {
        let whole = change.whole();
        for moment in change.at_work() {
            for reason in reasons.by_ref().take(2) {
                let mut world = moment.clone();
                end_run(&mut world, index(&moment), RunPhase::Unknown, reason);
                change.finish(&mut world);
                is_taken_up(change, &moment, &world, whole, &format!("{change:?} after {reason}"));
            }
        }
    }
}

/// The machine drops the connection or reboots in the middle of a step: in each step of each run.
#[test]
fn a_machine_that_drops_the_connection_in_any_step_is_brought_to_the_end_rows_21_23_and_45() {
    for change in KINDS {
        let whole = change.whole();
        for moment in change.at_work() {
            let run = change.work(&moment).unwrap();
            if run.spec.intent == Intent::Prefetch {
                continue;
            }
            for done in 0..run.spec.steps.len() {
                let fate = [Fate::Lost(done), Fate::FailsAfter(done), Fate::Unreachable][done % 3];
                let mut world = moment.clone();
                world.fates = vec![fate];
                // Nobody else reaches it meanwhile, either.
                world.cut = done % 2 == 0;
                world.run_for(1);
                world.cut = false;
                change.finish(&mut world);
                is_taken_up(change, &moment, &world, whole, &format!("{change:?} after {fate:?}"));
            }
        }
    }
}

#[test]
fn a_change_whose_executors_do_not_come_up_says_so_and_goes_on_once_they_do_row_16() {
    for change in KINDS {
        let whole = change.whole();
        for moment in change.at_work() {
            let mut world = moment.clone();
            let place = index(&world);
            end_run(&mut world, place, RunPhase::Failed, "NotStarted");
            world.write_statuses();
            let says = change.says(&world);
            assert!(says.contains("NotStarted"), "{change:?}: {says}");
            let hosts = world.runs[place].spec.hosts.len();
            world.fates = vec![Fate::NotStarted; 4 * hosts];
            change.finish(&mut world);
            assert_eq!(change.runs(&world).len(), whole + 5, "{change:?}: it counts for no limit");
        }
    }
}

#[test]
fn a_setting_a_renewal_and_a_rotation_whose_time_is_over_are_tried_again_row_17() {
    for change in KINDS.into_iter().filter(|change| !UPGRADES.contains(change)) {
        let whole = change.whole();
        for moment in change.at_work() {
            let mut world = moment.clone();
            end_run(&mut world, index(&moment), RunPhase::DeadlineExceeded, "DeadlineExceeded");
            change.finish(&mut world);
            is_taken_up(change, &moment, &world, whole, &format!("{change:?}"));
        }
    }
}

/// What only brings programs ahead is tried again by itself.
#[test]
fn a_machine_whose_upgrade_takes_too_long_waits_for_a_person_and_so_do_all_others_row_17() {
    for change in UPGRADES {
        let whole = change.whole();
        for moment in change.at_work() {
            let mut world = moment.clone();
            let cut = change.work(&moment).unwrap().clone();
            end_run(&mut world, index(&moment), RunPhase::DeadlineExceeded, "DeadlineExceeded");
            if cut.spec.intent == Intent::Upgrade {
                let before = change.runs(&world).len();
                (0..30).for_each(|_| pass(&mut world));
                assert_eq!(change.runs(&world).len(), before, "{change:?}: {}", change.says(&world));
                let says = change.says(&world);
                for said in
                    ["False UpgradeFailed", "(DeadlineExceeded: ", "clusterwright.dev/retry=", "stay as they are"]
                {
                    assert!(says.contains(said), "{change:?}: {says}");
                }
                world.request("a", crds::names::annotation::RETRY);
            }
            change.finish(&mut world);
            is_taken_up(change, &moment, &world, whole, &format!("{change:?}"));
        }
    }
}

/// The version of a machine is what its Node says, whatever a run has said.
#[test]
fn an_upgrade_that_only_said_that_it_is_done_holds_all_other_machines_row_44() {
    for change in UPGRADES {
        for moment in change.at_work() {
            let lies = change.work(&moment).unwrap().clone();
            let mut world = moment.clone();
            let before = change.runs(&world).len();
            world.lie();
            if lies.spec.intent == Intent::Prefetch {
                continue;
            }
            (0..30).for_each(|_| pass(&mut world));
            assert!(change.begun(&world, before).is_empty(), "{change:?}: {}", change.says(&world));
            let says = change.says(&world);
            let role = world.role_of(&lies.spec.hosts[0]).unwrap();
            let waits = match role {
                Role::Worker => "workers have it; waits for ",
                Role::ControlPlane | Role::Etcd => "waits for its Node to say that its kubelet is",
            };
            assert!(says.contains(waits), "{change:?}: {says}");
            world.make_true(&lies);
            change.finish(&mut world);
        }
    }
}

/// When certificates end is what the machine serves.
#[test]
fn a_renewal_that_only_said_that_it_is_done_is_no_renewal_row_44() {
    let moment = Renewal.at_work().remove(0);
    let lies = Renewal.work(&moment).unwrap().spec.hosts[0].clone();
    let mut world = moment;
    let end = world.certificates[&lies];
    world.lie();
    (0..60).for_each(|_| pass(&mut world));
    let seen = world.machine_on(&lies).unwrap().status.clone().unwrap().certificates_expire_at.unwrap();
    assert_eq!(seen.0, end);
    let renewed = ["h1", "h2", "h3"].into_iter().filter(|host| world.certificates[*host] > end).count();
    assert_eq!(renewed, 2, "those of the others are: {}", Renewal.says(&world));
    world.jump(SignedDuration::from_hours(24 * 30));
    (0..3).for_each(|_| pass(&mut world));
    let says = Renewal.says(&world);
    assert!(says.contains("False ") && says.contains(&format!("({lies})")), "{says}");
}

/// Each topology, subject and kind of upgrade comes to its end where nothing is in its way.
#[test]
fn every_change_comes_to_its_end_and_a_patch_drains_nobody() {
    for change in super::ALL {
        let mut world = change.asked();
        world.pods = (1..=5).map(|number| (format!("h{number}"), 1)).collect();
        change.finish(&mut world);
        let drains = match change {
            Minor | super::MaxPods | super::Rotation(Subject::Ca) => true,
            Patch | super::Mirror | Renewal | super::Rotation(_) => false,
        };
        assert_eq!(!world.evictions.is_empty(), drains, "{change:?}");
        assert!(change.runs(&world).len() >= 3, "{change:?}");
    }
}
