//! Executors that are lost, and machines that drop the connection. Every run that follows has a higher token, which
//! ends what may still be at work (the guards of this world refuse any other), and nothing is done twice at a time.

use crds::ObjectExt;
use crds::names::annotation;
use crds::step::Intent;

use super::super::ready;
use super::{DEEDS, Deed, ends, holder, last, leaving, runs, worker_hosts};
use crate::testing::Fate;

#[test]
fn whatever_ended_an_executor_its_work_is_taken_up_again_with_a_higher_token_rows_13_14_and_15() {
    for deed in DEEDS {
        for reason in ["PodDeleted", "Evicted", "ExecutorKilled", "OutOfMemory", "ContactLost"] {
            let mut world = deed.at_work();
            ends(&mut world, deed, reason);
            let runs = deed.settle(&mut world);
            let [(hosts, first), (again, second)] = runs.as_slice() else {
                panic!("{deed:?} after {reason}: {runs:?}");
            };
            assert_eq!(hosts, again, "{deed:?} after {reason}");
            assert!(second > first, "{deed:?} after {reason}: {runs:?}");
        }
    }
}

#[test]
fn a_job_that_a_person_deletes_is_made_again_and_only_a_reset_waits_for_a_word_row_18() {
    for deed in [Deed::Join, Deed::Repair] {
        let mut world = deed.at_work();
        ends(&mut world, deed, "JobDeleted");
        assert_eq!(deed.settle(&mut world).len(), 2, "{deed:?}");
    }
    let deed = Deed::Remove;
    let mut world = deed.at_work();
    ends(&mut world, deed, "JobDeleted");
    world.settle();
    assert_eq!(runs(&world, deed).len(), 1);
    let (reason, message) = leaving(&world);
    assert_eq!(reason, "WaitingForReset");
    assert!(message.contains("was stopped (JobDeleted)") && message.contains("clusterwright.dev/retry=2"), "{message}");
    let machine = world.machines.iter_mut().find(|machine| machine.is_deleting());
    let annotations = machine.unwrap().metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::RETRY.into(), "2".into());
    assert_eq!(deed.settle(&mut world).len(), 2);
}

/// The machine drops its connections, or reboots, in the middle of a task.
#[test]
fn a_reset_whose_machine_drops_the_connection_is_played_again_until_it_is_clean_rows_21_and_23() {
    for fate in [Fate::Unreachable, Fate::Lost(0), Fate::FailsAfter(0)] {
        let deed = Deed::Remove;
        let mut world = deed.begun();
        world.fates = vec![fate];
        let runs = deed.settle(&mut world);
        let [(hosts, first), (again, second)] = runs.as_slice() else {
            panic!("{fate:?}: {runs:?}");
        };
        assert!(hosts == again && second > first, "{fate:?}: {runs:?}");
        assert_eq!(holder(&world, &hosts[0]), None, "{fate:?}");
        assert!(!world.dirty.contains(&hosts[0]), "{fate:?}");
    }
}

#[test]
fn a_repair_whose_machine_drops_the_connection_goes_on_with_what_can_still_help_rows_21_and_23() {
    // Nobody knows whether the services were restarted: they are once more.
    let deed = Deed::Repair;
    let mut world = deed.begun();
    world.fates = vec![Fate::Lost(0)];
    assert_eq!(deed.settle(&mut world).len(), 2);
    assert_eq!(worker_hosts(&world), ["h2", "h3"]);
    // The machine lets nobody in any more: another one takes its place, and it is cleaned once it does.
    let mut world = deed.begun();
    world.fates = vec![Fate::Unreachable];
    assert_eq!(deed.settle(&mut world).len(), 1);
    assert_eq!(worker_hosts(&world), ["h3", "h4"], "{:?}", ready(&world));
    assert_eq!(holder(&world, "h2"), None);
    assert!(!world.dirty.contains("h2"));
    let resets = world.runs.iter().filter(|run| run.spec.intent == Intent::Reset);
    assert_eq!(resets.count(), 1);
}

/// A join goes on where it stopped, and is never begun on another machine beside it.
#[test]
fn a_join_that_is_cut_short_goes_on_where_it_stopped_rows_21_and_23() {
    for fate in [Fate::Lost(3), Fate::Lost(5)] {
        let deed = Deed::Join;
        let mut world = deed.begun();
        world.fates = vec![fate];
        assert_eq!(deed.settle(&mut world).len(), 2, "{fate:?}");
        let index = last(&world, deed).unwrap();
        assert!(world.runs[index].spec.resume, "{fate:?}");
        assert_eq!(worker_hosts(&world), ["h2", "h3", "h4"], "{fate:?}");
    }
}
