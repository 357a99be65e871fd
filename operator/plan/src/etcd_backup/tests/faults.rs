//! Faults at each phase of a backup: while its run takes it, while it is verified, and while it is removed.

use std::collections::BTreeSet;

use crds::Reason;
use crds::playbook_run::end;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

impl World {
    /// Looked at often, in no time, and nothing more is made.
    fn rests(&mut self) {
        let before = (self.runs.len(), self.jobs.len(), self.is_gone);
        for _ in 0..100 {
            let plan = self.plan();
            plan.actions.into_iter().for_each(|action| self.apply(action));
            self.backup.status = Some(plan.status);
            assert_eq!((self.runs.len(), self.jobs.len(), self.is_gone), before);
        }
    }

    /// The last run ends for a reason that its conditions state.
    fn end_for(&mut self, phase: RunPhase, reason: &str) {
        let now = Time(self.now);
        let status = self.end_run(phase, true).status.as_mut().unwrap();
        status.conditions = crds::conditions::state(&[], &end(phase, reason, "so"), None, &now);
    }

    fn succeed(&mut self) {
        self.end_run(RunPhase::Succeeded, false).status.as_mut().unwrap().backup = Some(content());
        assert_eq!(self.step().0, BackupPhase::Succeeded);
    }

    /// Taken, and is being verified.
    fn verifying() -> Self {
        let mut world = Self::new();
        world.backup.spec.deletion_policy = crds::etcd_backup::BackupDeletionPolicy::Delete;
        world.backup.spec.verify = serde_json::from_value(json!({ "how": "Hash" })).unwrap();
        world.step();
        world.succeed();
        world.step();
        assert_eq!(world.jobs.len(), 1);
        world
    }
}

#[test]
fn whatever_ends_a_run_that_takes_a_backup_another_one_takes_it_rows_13_14_15_17_and_20_to_23() {
    for ending in [RunPhase::Unknown, RunPhase::DeadlineExceeded, RunPhase::Failed] {
        let mut world = World::new();
        let mut names = BTreeSet::new();
        for attempt in 1..=2 {
            world.step();
            assert!(names.insert(world.runs.last().unwrap().name().to_owned()));
            world.rests();
            world.end_run(ending, true);
            assert_eq!((world.step().0, world.runs.len()), (BackupPhase::Pending, attempt), "not before its time");
            world.rests();
            world.now += SignedDuration::from_mins(30);
        }
        assert_eq!((world.step().0, world.runs.len()), (BackupPhase::Pending, 3), "{ending:?}");
        world.succeed();
        world.rests();
    }
}

#[test]
fn a_run_that_waits_to_be_started_is_shown_and_not_doubled_row_16() {
    let mut world = World::new();
    world.step();
    world.runs[0].status.as_mut().unwrap().message = Some("cannot pull image x".into());
    let (_, message) = world.step();
    assert!(message.contains("cannot pull image x"), "{message}");
    world.rests();
}

#[test]
fn a_run_that_is_deleted_is_followed_by_another_whichever_it_was_rows_18_and_30() {
    let mut world = World::new();
    world.step();
    world.runs.clear();
    assert_eq!((world.step().0, world.runs.len()), (BackupPhase::Pending, 1));
    // The first of two: the third has a name of its own.
    world.end_run(RunPhase::Unknown, true);
    world.now += SignedDuration::from_mins(30);
    world.step();
    world.end_run(RunPhase::Unknown, true);
    world.runs.remove(0);
    world.now += SignedDuration::from_mins(30);
    world.step();
    assert_eq!(world.runs.len(), 2);
    assert!(world.runs[1].name().ends_with("-2"), "{}", world.runs[1].name());
    world.succeed();
}

#[test]
fn a_run_that_lost_its_owner_keeps_its_name_and_another_takes_the_backup_row_30() {
    let mut world = World::new();
    world.step();
    world.runs[0].metadata.owner_references = None;
    for _ in 0..3 {
        world.step();
        assert_eq!(world.runs.len(), 2);
    }
    assert!(world.runs[1].name().ends_with("-1"), "{}", world.runs[1].name());
    world.succeed();
}

#[test]
fn a_job_that_is_deleted_is_made_again_while_a_backup_is_verified_and_while_it_is_removed_row_18() {
    let mut world = World::verifying();
    world.rests();
    world.jobs.clear();
    world.step();
    assert_eq!(world.jobs.len(), 1);
    assert_eq!(world.backup.condition("Verified").unwrap().reason, "VerificationPending");

    let mut world = World::deleted("Delete");
    world.step();
    world.rests();
    world.jobs.clear();
    world.step();
    assert_eq!((world.jobs.len(), world.is_gone), (1, false));
}

#[test]
fn what_lost_its_finalizer_gets_it_again_in_every_phase_while_something_is_to_be_removed_row_30() {
    let held = |mut world: World| {
        world.backup.spec.deletion_policy = crds::etcd_backup::BackupDeletionPolicy::Delete;
        world.backup.metadata.finalizers = None;
        world.step();
        assert_eq!(world.backup.metadata.finalizers.as_ref().map(Vec::len), Some(1));
    };
    let begun = || {
        let mut world = World::new();
        world.step();
        world
    };
    held(begun());
    let mut world = begun();
    world.end_run(RunPhase::Failed, true);
    held(world);
    let mut world = begun();
    world.succeed();
    held(world);
    held(World::verifying());
    let mut world = World::new();
    world.backup.spec.deletion_policy = crds::etcd_backup::BackupDeletionPolicy::Delete;
    world.storage = None;
    world.step();
    assert_eq!(world.backup.metadata.finalizers, None, "nothing of it is anywhere");
}

#[test]
fn a_pause_is_no_attempt_and_the_run_after_it_waits_for_the_cluster_row_32() {
    let mut world = World::new();
    for runs in 1..=5 {
        world.step();
        assert_eq!(world.runs.len(), runs);
        world.end_for(RunPhase::Canceled, "Paused");
    }
    world.step();
    world.succeed();

    // One before a restore, too: the restore is held as well.
    let mut world = World::new();
    world.backup.metadata.labels = Some([("clusterwright.dev/restore".to_owned(), "back".to_owned())].into());
    world.step();
    world.end_for(RunPhase::Canceled, "Paused");
    assert_eq!((world.step().0, world.runs.len()), (BackupPhase::Pending, 2));
}

#[test]
fn a_run_that_says_that_it_succeeded_and_shows_no_backup_is_not_believed_row_44() {
    let mut world = World::new();
    for _ in 1..=3 {
        world.step();
        world.end_run(RunPhase::Succeeded, false);
        world.now += SignedDuration::from_mins(30);
    }
    assert_eq!((world.step().0, world.runs.len()), (BackupPhase::Failed, 3));
    assert_eq!(world.backup.status.as_ref().unwrap().backup, None);
}

/// What stays wrong until somebody acts: the executor says that no other attempt helps.
const STAYING: [Reason; 4] =
    [Reason::DiskFull, Reason::HostKeyChanged, Reason::AuthenticationFailed, Reason::StorageClockSkewed];

#[test]
fn what_is_wrong_with_a_machine_or_its_credentials_ends_a_backup_with_that_reason_rows_24_25_and_26() {
    for reason in STAYING {
        let mut world = World::new();
        world.step();
        let said = json!({
            "phase": "Failed", "retriable": false, "reason": reason.as_str(), "message": "so", "digest": "sha256:d",
        });
        world.end_run(RunPhase::Failed, false).status.as_mut().unwrap().outcome = serde_json::from_value(said).unwrap();
        let (phase, message) = world.step();
        assert_eq!((phase, world.runs.len()), (BackupPhase::Failed, 1), "{message}");
        assert!(message.contains("the storage does not answer"), "what the run said: {message}");
        for type_ in ["Failed", "Stalled"] {
            assert_eq!(world.backup.condition(type_).unwrap().reason, reason.as_str());
        }
        world.now += SignedDuration::from_hours(1000);
        world.rests();
    }
}

#[test]
fn members_whose_certificates_have_ended_are_not_read_and_the_backup_goes_on_once_they_are_renewed_row_48() {
    let show = |world: &mut World, machine: usize, days: i64| {
        let end = Time(world.now + SignedDuration::from_hours(24 * days));
        let seen = json!([{ "name": "etcd-server", "expiresAt": end }, { "name": "apiserver", "expiresAt": end }]);
        world.machines[machine].status.as_mut().unwrap().certificates = serde_json::from_value(seen).unwrap();
    };
    let mut world = World::new();
    show(&mut world, 0, -7);
    show(&mut world, 1, -7);
    let (phase, message) = world.step();
    assert_eq!((phase, world.runs.len()), (BackupPhase::Pending, 0));
    assert_eq!(world.backup.condition("Complete").unwrap().reason, "CertificatesExpired");
    let expected = "etcd of cluster paris cannot be read: certificate etcd-server of host-b ended on 2026-11-16";
    assert!(message.starts_with(expected), "{message}");
    world.rests();
    assert!(matches!(world.plan().next, Next::After(_)), "nobody is woken when they are renewed");
    show(&mut world, 0, 365);
    assert_eq!((world.step().0, world.runs.len()), (BackupPhase::Pending, 0), "one of two is no majority");
    show(&mut world, 1, 365);
    assert_eq!((world.step().0, world.runs.len()), (BackupPhase::Pending, 1));
    // A run that has begun is not stopped.
    show(&mut world, 0, -7);
    show(&mut world, 1, -7);
    assert_eq!(world.step().0, BackupPhase::Running);
    world.succeed();

    // One before a restore does not hold it up: nothing is renewed meanwhile.
    let mut world = World::new();
    world.backup.metadata.labels = Some([("clusterwright.dev/restore".to_owned(), "back".to_owned())].into());
    show(&mut world, 0, -7);
    show(&mut world, 1, -7);
    let (phase, message) = world.step();
    assert_eq!((phase, world.runs.len()), (BackupPhase::Failed, 0), "{message}");
}

#[test]
fn a_machine_without_a_member_is_not_asked_however_sick_it_is_row_46() {
    let mut world = World::new();
    world.step();
    assert_eq!(world.runs[0].spec.hosts, ["host-a", "host-b"], "neither the worker nor one that joins");
    world.succeed();
}
