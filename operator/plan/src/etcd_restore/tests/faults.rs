//! Faults at each phase of a restore. Before the approval nothing is touched, and it goes on by itself; afterwards it
//! halts, and goes on when a person approves of that very attempt.

use std::collections::BTreeSet;

use crds::conditions;
use crds::etcd_restore::RestorePhase;
use crds::names::finalizer;
use crds::playbook_run::{RunPhase, end};
use crds::step::Step;
use crds::{Conditions, ObjectExt};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::{World, holds_the_cluster};
use crate::etcd_restore::keeps_others_out;

/// How a run ends whose executor was ended, whose time was over, whose machine went away, or that was stopped.
const ENDS: [RunPhase; 4] = [RunPhase::Unknown, RunPhase::DeadlineExceeded, RunPhase::Failed, RunPhase::Canceled];

impl World {
    /// Whatever is tried by itself is tried within that time; each hour it is looked at often.
    fn rests(&mut self) {
        let (runs, phase) = (self.runs.len(), self.step().0);
        for look in 0..160 {
            self.now += SignedDuration::from_mins(i64::from(look % 4 == 0) * 60);
            assert_eq!((self.step().0, self.runs.len()), (phase, runs), "by itself");
        }
    }

    /// The last run ends for a reason that its conditions state.
    fn end_for(&mut self, phase: RunPhase, reason: &str) {
        self.end(phase, Some(0));
        let now = Time(self.now);
        let status = self.runs.last_mut().unwrap().status.as_mut().unwrap();
        status.conditions = conditions::state(&[], &end(phase, reason, "so"), None, &now);
    }

    /// The last run is not there any more.
    fn lose_run(&mut self) -> String {
        self.runs.pop().unwrap().name().to_owned()
    }

    /// The data of before comes back.
    fn undoing() -> Self {
        let mut world = Self::restoring();
        world.end(RunPhase::Unknown, Some(1));
        let (_, message) = world.step();
        world.approve(&message, "undo");
        assert_eq!(world.step().0, RestorePhase::Undoing);
        world
    }

    /// The control plane stands on the data of the backup.
    fn restarting() -> Self {
        let mut world = Self::restoring();
        world.succeed();
        assert_eq!(world.step().0, RestorePhase::Restarting);
        world
    }

    /// How often data was to be replaced, whatever became of it.
    fn made(&self, step: Step) -> usize {
        self.runs.iter().filter(|run| run.spec.steps.contains(&step)).count()
    }
}

#[test]
fn whatever_ends_a_run_that_restores_it_halts_until_that_attempt_is_approved_rows_13_to_18_and_21_to_23() {
    for ending in ENDS {
        for step in 0..3 {
            let mut world = World::restoring();
            for attempt in 1..=2 {
                world.end(ending, Some(step));
                let (phase, message) = world.step();
                assert_eq!(phase, RestorePhase::Interrupted, "{ending:?} in step {step}: {message}");
                assert_eq!(world.restore.condition("Stalled").unwrap().reason, "RestoreInterrupted");
                world.rests();
                assert!(holds_the_cluster(&world.restore));
                world.approve(&message, "restore");
                assert_eq!((world.step().0, world.made(Step::RestoreEtcd)), (RestorePhase::Restoring, attempt + 1));
                assert!(world.last().spec.resume);
                world.rests();
            }
            world.succeed();
            assert_eq!(world.step().0, RestorePhase::Restarting);
        }
    }
}

#[test]
fn whatever_ends_a_run_that_undoes_a_restore_it_halts_until_that_attempt_is_approved_rows_13_to_18_and_21_to_23() {
    for ending in ENDS {
        for step in 0..3 {
            let mut world = World::undoing();
            for attempt in 1..=2 {
                world.end(ending, Some(step));
                let (phase, message) = world.step();
                assert_eq!(phase, RestorePhase::Interrupted, "{ending:?} in step {step}: {message}");
                world.rests();
                world.approve(&message, "undo");
                assert_eq!((world.step().0, world.made(Step::UndoRestore)), (RestorePhase::Undoing, attempt + 1));
                world.rests();
            }
            world.succeed();
            assert_eq!((world.step().0, world.made(Step::RestoreEtcd)), (RestorePhase::Undone, 1));
        }
    }
}

#[test]
fn what_changes_nothing_or_comes_after_the_release_is_tried_again_by_itself_rows_13_to_18_and_20_to_23() {
    for ending in [RunPhase::Unknown, RunPhase::DeadlineExceeded, RunPhase::Failed] {
        let mut world = World::new();
        for attempt in 1..=2 {
            assert_eq!((world.step().0, world.runs.len()), (RestorePhase::Staging, attempt));
            world.end(ending, Some(0));
            assert_eq!((world.step().0, world.runs.len()), (RestorePhase::Staging, attempt), "not before its time");
            world.now += SignedDuration::from_mins(30);
        }
        assert_eq!((world.step().0, world.runs.len()), (RestorePhase::Staging, 3));
        assert!(!holds_the_cluster(&world.restore));

        let mut world = World::restarting();
        for attempt in 1..=2 {
            world.end(ending, Some(0));
            assert_eq!(world.step().0, RestorePhase::Restarting);
            world.now += SignedDuration::from_mins(30);
            assert_eq!(world.step().0, RestorePhase::Restarting);
            assert_eq!((world.made(Step::RestartServices), world.made(Step::RestoreEtcd)), (attempt + 1, 1));
        }
        world.succeed();
        assert_eq!(world.step().0, RestorePhase::Succeeded);
    }
}

#[test]
fn a_run_whose_executor_never_came_up_has_touched_nothing_and_is_followed_under_its_approval_row_16() {
    let starts = [(World::restoring as fn() -> World, Step::RestoreEtcd), (World::undoing, Step::UndoRestore)];
    for (start, step) in starts {
        let mut world = start();
        let mut names = BTreeSet::from([world.last().name().to_owned()]);
        for attempt in 1..=4 {
            world.end_for(RunPhase::Failed, "NotStarted");
            let (phase, message) = world.step();
            assert_ne!(phase, RestorePhase::Interrupted, "{message}");
            assert_eq!(world.made(step), attempt, "not before its time: {message}");
            world.now += SignedDuration::from_mins(30);
            world.step();
            assert_eq!(world.made(step), attempt + 1);
            assert!(names.insert(world.last().name().to_owned()), "{names:?}");
        }
        // What has begun is another thing.
        world.end(RunPhase::Unknown, Some(0));
        assert_eq!(world.step().0, RestorePhase::Interrupted);
        world.rests();
    }
}

#[test]
fn a_run_that_waits_to_be_started_is_shown_and_not_doubled_row_16() {
    let phases = [
        (World::new as fn() -> World, RestorePhase::Staging),
        (World::restoring, RestorePhase::Restoring),
        (World::restarting, RestorePhase::Restarting),
        (World::undoing, RestorePhase::Undoing),
    ];
    for (start, phase) in phases {
        let mut world = start();
        world.step();
        world.runs.last_mut().unwrap().status.as_mut().unwrap().message = Some("cannot pull image x".into());
        let (told, message) = world.step();
        assert_eq!(told, phase);
        assert!(message.contains("cannot pull image x"), "{message}");
        world.rests();
    }
}

#[test]
fn a_run_that_restores_and_is_deleted_is_not_made_anew_before_that_is_approved_rows_18_and_30() {
    for loses_all in [false, true] {
        let mut world = World::restoring();
        let mut names = BTreeSet::from([world.last().name().to_owned()]);
        for _ in 1..=3 {
            let gone = world.lose_run();
            if loses_all {
                world.runs.clear();
            }
            let (phase, message) = world.step();
            assert_eq!(phase, RestorePhase::Interrupted, "{message}");
            assert!(message.contains(&format!("run {gone} was deleted")), "{message}");
            assert!(!message.contains("undo."), "an API server may have written since: {message}");
            world.rests();
            assert!(holds_the_cluster(&world.restore));
            world.approve(&message, "restore");
            assert_eq!(world.step().0, RestorePhase::Restoring);
            assert!(names.insert(world.last().name().to_owned()), "{names:?}");
            assert!(world.last().spec.resume);
        }
        // What one of those that are gone did is not known afterwards either.
        world.end(RunPhase::Unknown, Some(1));
        let (phase, message) = world.step();
        assert!(phase == RestorePhase::Interrupted && !message.contains("undo."), "{message}");
        world.approve(&message, "restore");
        world.step();
        world.succeed();
        assert_eq!(world.step().0, RestorePhase::Restarting);
    }
}

#[test]
fn a_run_that_undoes_and_is_deleted_leaves_only_the_way_back_once_that_is_approved_rows_18_and_30() {
    let mut world = World::undoing();
    for attempt in 1..=3 {
        world.lose_run();
        let (phase, message) = world.step();
        assert_eq!(phase, RestorePhase::Interrupted, "{message}");
        assert!(!message.contains("to go on"), "{message}");
        world.rests();
        world.approve(&message, "undo");
        assert_eq!(world.step().0, RestorePhase::Undoing);
        assert!(world.last().name().ends_with(&format!("-{attempt}")), "{}", world.last().name());
    }
    world.succeed();
    assert_eq!((world.step().0, world.made(Step::RestoreEtcd)), (RestorePhase::Undone, 1));
}

#[test]
fn what_was_released_is_not_restored_again_whichever_of_its_runs_are_deleted_rows_18_and_30() {
    let mut world = World::restarting();
    world.runs.retain(|run| run.spec.steps.contains(&Step::RestartServices));
    assert_eq!((world.step().0, world.runs.len()), (RestorePhase::Restarting, 1));
    world.runs.clear();
    assert_eq!(world.step().0, RestorePhase::Restarting);
    assert_eq!((world.made(Step::RestartServices), world.made(Step::RestoreEtcd)), (1, 0));
    world.succeed();
    let (phase, message) = world.step();
    assert_eq!((phase, world.made(Step::RestoreEtcd)), (RestorePhase::Succeeded, 0), "{message}");
}

#[test]
fn what_lost_its_owner_is_taken_for_deleted_and_what_lost_its_finalizer_gets_it_again_row_30() {
    let mut world = World::restoring();
    world.runs.last_mut().unwrap().metadata.owner_references = None;
    let (phase, message) = world.step();
    assert!(phase == RestorePhase::Interrupted && message.contains("was deleted"), "{message}");

    for (start, step) in [(World::new as fn() -> World, Step::StageBackup), (World::restarting, Step::RestartServices)]
    {
        let mut world = start();
        world.step();
        world.runs.last_mut().unwrap().metadata.owner_references = None;
        world.runs.last_mut().unwrap().status.as_mut().unwrap().phase = Some(RunPhase::Canceled);
        world.step();
        assert_eq!((world.made(step), world.made(Step::RestoreEtcd) < 2), (2, true));
        assert!(world.last().name().ends_with("-1"), "{}", world.last().name());
    }

    for start in [World::restoring, World::undoing, World::restarting] {
        let mut world = start();
        world.restore.metadata.finalizers = None;
        let phase = world.restore.status.as_ref().unwrap().phase;
        assert_eq!(Some(world.step().0), phase);
        assert_eq!(world.restore.metadata.finalizers, Some(vec![finalizer::RESTORE.to_owned()]));
    }
}

#[test]
fn a_staging_that_is_deleted_is_made_anew_and_touches_nothing_row_18() {
    let (mut world, _) = World::staged();
    world.lose_run();
    let (phase, message) = world.step();
    assert_eq!((phase, world.runs.len()), (RestorePhase::Staging, 1), "{message}");
    assert!(!holds_the_cluster(&world.restore));
}

#[test]
fn a_pause_holds_a_restore_that_has_begun_and_is_no_attempt_at_what_changes_nothing_row_32() {
    let mut world = World::restoring();
    world.end_for(RunPhase::Canceled, "Paused");
    assert_eq!(world.step().0, RestorePhase::Interrupted);
    world.rests();

    for (start, step) in [(World::new as fn() -> World, Step::StageBackup), (World::restarting, Step::RestartServices)]
    {
        let mut world = start();
        world.step();
        for pauses in 1..=5 {
            world.end_for(RunPhase::Canceled, "Paused");
            world.step();
            assert_eq!(world.made(step), pauses + 1);
        }
    }
}

#[test]
fn a_store_that_may_be_older_lets_nothing_begin_and_forgets_what_was_approved_before_row_34() {
    let compared = |world: &mut World| {
        let status = world.deployment.as_mut().unwrap().status.as_mut().unwrap();
        status.compared_since = world.resumed_at.map(Time);
    };
    let mut world = World::new();
    world.resumed_at = Some(world.now);
    let (phase, message) = world.step();
    assert_eq!((phase, world.runs.len()), (RestorePhase::Pending, 0), "{message}");
    assert!(message.contains("StoreIsOlder"), "{message}");
    world.rests();
    compared(&mut world);
    assert_eq!(world.step().0, RestorePhase::Staging);

    let (mut world, before) = World::staged();
    world.approve(&before, "restore");
    world.resumed_at = Some(world.now);
    world.rests();
    assert!(world.safety.is_none());
    compared(&mut world);
    let (phase, message) = world.step();
    assert_eq!(phase, RestorePhase::AwaitingApproval);
    world.rests();
    world.approve(&message, "restore");
    assert_eq!(world.step().0, RestorePhase::BackingUp);

    for what in ["restore", "undo"] {
        let mut world = World::restoring();
        world.end(RunPhase::Unknown, Some(1));
        let (_, message) = world.step();
        world.approve(&message, what);
        world.resumed_at = Some(world.now);
        assert_eq!(world.step().0, RestorePhase::Interrupted);
        world.rests();
        compared(&mut world);
        world.rests();
        let (_, message) = world.step();
        world.approve(&message, what);
        assert_ne!(world.step().0, RestorePhase::Interrupted);
    }
}

#[test]
fn a_run_that_says_more_than_its_steps_have_done_is_not_believed_row_44() {
    let mut world = World::restoring();
    world.end(RunPhase::Succeeded, Some(1));
    assert_eq!(world.step().0, RestorePhase::Interrupted);
    world.rests();

    let mut world = World::new();
    for _ in 1..=3 {
        assert_eq!(world.step().0, RestorePhase::Staging);
        world.succeed();
        world.now += SignedDuration::from_mins(30);
    }
    assert_eq!((world.step().0, world.made(Step::RestoreEtcd)), (RestorePhase::Failed, 0), "nothing lies ready");
}

#[test]
fn a_restore_needs_nobody_to_say_what_is_there_rows_35_and_37() {
    let (mut world, _) = World::staged();
    world.runs[0].status.as_mut().unwrap().staged.as_mut().unwrap().current_revision = None;
    let (phase, message) = world.step();
    assert_eq!(phase, RestorePhase::AwaitingApproval);
    assert!(message.contains("no member says what was written since"), "{message}");
    world.approve(&message, "restore");
    world.step();
    world.back_up("Failed");
    assert_eq!(world.step().0, RestorePhase::Restoring, "etcd without a majority gives no backup");
}

#[test]
fn what_is_wrong_with_a_machine_or_its_credentials_halts_a_restore_and_is_named_rows_24_25_and_26() {
    for reason in ["DiskFull", "HostKeyChanged", "AuthenticationFailed"] {
        let halt = |world: &mut World, step: usize| {
            world.end(RunPhase::Failed, Some(step));
            let status = world.runs.last_mut().unwrap().status.as_mut().unwrap();
            let said = json!({
                "phase": "Failed", "retriable": false, "reason": reason, "message": "so", "digest": "sha256:d"
            });
            (status.retriable, status.outcome) = (Some(false), serde_json::from_value(said).unwrap());
        };
        // Nothing of the cluster was touched: whoever has mended it asks anew.
        let mut world = World::new();
        world.step();
        halt(&mut world, 0);
        let (phase, message) = world.step();
        assert_eq!((phase, world.made(Step::StageBackup)), (RestorePhase::Failed, 1), "{message}");
        assert_eq!(world.restore.condition("Failed").unwrap().reason, reason);
        assert!(message.contains("the machine a does not answer"), "what the run said: {message}");
        assert!(!holds_the_cluster(&world.restore));

        // Later it halts where it is, and the next attempt has the keys of then.
        for start in [World::restoring, World::undoing] {
            let mut world = start();
            halt(&mut world, 1);
            let (phase, message) = world.step();
            assert_eq!(phase, RestorePhase::Interrupted, "{message}");
            assert!(message.contains("the machine a does not answer"), "what the run said: {message}");
            world.rests();
        }
        // The data is there, and is not undone for it.
        let mut world = World::restarting();
        halt(&mut world, 0);
        let (phase, message) = world.step();
        assert_eq!(phase, RestorePhase::Succeeded, "{message}");
        assert!(message.contains("not all machines were restarted over it"), "{message}");
    }
}

#[test]
fn a_restore_waits_until_certificates_that_have_ended_are_renewed_row_48() {
    let show = |world: &mut World, days: i64| {
        let end = Time(world.now + SignedDuration::from_hours(24 * days));
        let seen = json!([{ "name": "etcd-peer", "expiresAt": end }]);
        world.machines[1].status.as_mut().unwrap().certificates = serde_json::from_value(seen).unwrap();
    };
    let waits = |world: &mut World, runs: usize| {
        let (phase, message) = world.step();
        assert_eq!((phase, world.runs.len()), (RestorePhase::Pending, runs), "{message}");
        assert_eq!(world.restore.condition("Complete").unwrap().reason, "CertificatesExpired");
        assert!(message.starts_with("certificate etcd-peer of a ended on 2026-02-22"), "{message}");
        // What renews them is let in.
        assert!(!keeps_others_out(&world.restore) && !holds_the_cluster(&world.restore));
    };
    let mut world = World::new();
    show(&mut world, -7);
    waits(&mut world, 0);
    show(&mut world, 365);
    assert_eq!(world.step().0, RestorePhase::Staging);

    // They end while it waits for its approval, and while what is there is backed up.
    let (mut world, message) = World::staged();
    world.approve(&message, "restore");
    show(&mut world, -7);
    waits(&mut world, 1);
    show(&mut world, 365);
    assert_eq!(world.step().0, RestorePhase::BackingUp);
    show(&mut world, -7);
    waits(&mut world, 1);
    show(&mut world, 365);
    world.back_up("Succeeded");
    assert_eq!(world.step().0, RestorePhase::Restoring);

    // Those of a worker are its kubelet's own.
    let mut world = World::new();
    show(&mut world, -7);
    world.machines[1].spec.role = crds::step::Role::Worker;
    assert_eq!(world.step().0, RestorePhase::Staging);
}

#[test]
fn one_sick_machine_without_a_member_does_not_keep_a_restore_from_its_end_row_46() {
    let mut world = World::restarting();
    for attempt in 1..=3 {
        assert_eq!(world.made(Step::RestartServices), attempt);
        world.end(RunPhase::Failed, Some(0));
        world.step();
        world.now += SignedDuration::from_mins(30);
        world.step();
    }
    let (phase, message) = world.step();
    assert_eq!((phase, world.made(Step::RestoreEtcd)), (RestorePhase::Succeeded, 1), "{message}");
    assert!(message.contains("not all machines were restarted over it"), "{message}");
    world.rests();
}
