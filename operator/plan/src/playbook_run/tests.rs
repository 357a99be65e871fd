use crds::inputs::RunInputs;
use crds::lock::{LockMode, LockView, Operation};
use crds::names::{condition, finalizer};
use crds::playbook_run::RunPhase;
use crds::{ClusterDeployment, PlaybookRun, PlaybookRunStatus, conditions};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::de::DeserializeOwned;

use super::{Action, Grant, InputsSeen, LogSeen, RunObserved, Stage, Trouble, grant, playbook_run, stage};
use crate::inputs::InputsProblem;
use crate::settles::settles;

fn object<K: DeserializeOwned>(text: &str) -> K {
    serde_yaml::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn run(more: &str) -> PlaybookRun {
    object(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: r, namespace: fleet, uid: u, creationTimestamp: 2026-01-01T00:00:00Z}}, spec: {{clusterName: a, intent: Custom, steps: [prepare], hosts: [x]{more}}}}}"
    ))
}

fn job(status: &str) -> Job {
    object(&format!(
        "{{metadata: {{name: r, namespace: fleet, creationTimestamp: 2026-01-01T00:00:05Z, finalizers: [clusterwright.dev/outcome-recorded]}}, spec: {{template: {{spec: {{containers: [{{name: executor, args: [run, --token, '7', --attempt, '2', --digest, sha256:d]}}]}}}}}}, status: {{{status}}}}}"
    ))
}

fn pod(meta: &str, spec: &str, status: &str) -> Pod {
    object(&format!(
        "{{metadata: {{name: r-1, namespace: fleet, finalizers: [clusterwright.dev/outcome-recorded]{meta}}}, spec: {{containers: [{{name: executor, image: img}}]{spec}}}, status: {{{status}}}}}"
    ))
}

fn ended(code: i32, message: &str) -> Pod {
    let message = serde_json::to_string(message).unwrap();
    let state = format!(
        "phase: Failed, containerStatuses: [{{name: executor, image: i, imageID: i, ready: false, restartCount: 0, state: {{terminated: {{exitCode: {code}, message: {message}}}}}}}]"
    );
    pod("", ", nodeName: n1", &state)
}

const RUNNING: &str = "phase: Running, containerStatuses: [{name: executor, image: i, imageID: i, ready: true, restartCount: 0, state: {running: {}}}]";

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

fn observed<'a>(run: &'a PlaybookRun, job: Option<&'a Job>, pods: &'a [Pod]) -> RunObserved<'a> {
    RunObserved {
        run,
        now: now(),
        image: "img",
        pod: None,
        grant: Grant::NotLookedAt,
        inputs: InputsSeen::NotLookedAt,
        job,
        pods,
        trouble: None,
        log: &LogSeen::NotLookedAt,
    }
}

fn started(more_status: &str) -> PlaybookRun {
    let mut run = run("");
    run.status = Some(object(&format!(
        "{{startedAt: 2026-01-01T00:00:05Z, phase: Running, inputs: {{digest: 'sha256:d', configMap: r, secret: r}}{more_status}}}"
    )));
    run
}

/// Whether it has ended, with the reason: as a Job, it is then either Complete or Failed.
fn complete(status: &PlaybookRunStatus) -> (&str, &str) {
    let complete = conditions::find(&status.conditions, condition::COMPLETE).unwrap();
    let failed = conditions::find(&status.conditions, condition::FAILED);
    let has_succeeded = status.phase == Some(RunPhase::Succeeded);
    let has_ended = status.phase.is_some_and(RunPhase::is_final);
    assert_eq!(complete.status == "True", has_succeeded, "{status:?}");
    assert_eq!(failed.is_some(), has_ended && !has_succeeded, "{status:?}");
    match failed {
        Some(failed) => (failed.status.as_str(), failed.reason.as_str()),
        None => (complete.status.as_str(), complete.reason.as_str()),
    }
}

#[test]
fn an_ended_run_is_complete_or_failed_as_a_job_is_and_says_which_generation_it_speaks_of() {
    let waits = |run: &PlaybookRun| playbook_run(&observed(run, None, &[])).status;
    let mut run = run("");
    run.metadata.generation = Some(3);
    let status = waits(&run);
    assert_eq!(complete(&status), ("False", "WaitingForLock"));
    assert_eq!(status.observed_generation, Some(3));
    run.spec.cancel = true;
    let status = waits(&run);
    assert_eq!(complete(&status), ("True", "Canceled"));
    let is_true = |type_: &str| conditions::is_true(&status.conditions, type_);
    assert!(is_true(condition::FAILED) && !is_true(condition::COMPLETE));
}

#[test]
fn a_run_waits_for_its_lock_and_says_who_holds_it() {
    let deployment = |status: &str| -> ClusterDeployment {
        object(&format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: a}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1}}}}, status: {{{status}}}}}"
        ))
    };
    let held = deployment("operations: [{run: other, mode: Exclusive, token: 4, startedAt: 2026-01-01T00:00:00Z}]");
    let ours = deployment("operations: [{run: r, mode: Exclusive, token: 5, startedAt: 2026-01-01T00:00:00Z}]");
    let run = run("");
    assert_eq!(grant(&run, "ClusterDeployment", Some(ours.lock())), Grant::Given { token: 5 });
    let waits = grant(&run, "ClusterDeployment", Some(held.lock()));
    let message = "waits for the lock of ClusterDeployment a: held by other (Exclusive)";
    assert_eq!(waits, Grant::Waits { message: message.into() });
    let plan = playbook_run(&RunObserved { grant: waits, ..observed(&run, None, &[]) });
    assert_eq!((plan.actions, plan.status.phase), (vec![], Some(RunPhase::Pending)));
    assert_eq!(plan.status.message.as_deref(), Some(message));
}

#[test]
fn the_lock_may_be_of_another_kind_and_says_so_where_there_is_none() {
    let ours = [Operation {
        run: "r".into(),
        mode: LockMode::Exclusive,
        hosts: Vec::new(),
        token: 5,
        started_at: Time(Timestamp::UNIX_EPOCH),
    }];
    let grant = |operations, paused| grant(&run(""), "Plane", Some(LockView { operations, paused }));
    assert_eq!(grant(&ours, false), Grant::Given { token: 5 });
    assert_eq!(grant(&[], true), Grant::Waits { message: "waits for the lock of Plane a, which is paused".into() });
    let message = "waits for Plane a, which is not there";
    assert_eq!(super::grant(&run(""), "Plane", None), Grant::Waits { message: message.into() });
}

#[test]
fn a_reserved_variable_is_refused_before_the_lock_is_looked_at() {
    let run = run(", vars: {ansible_user: x}");
    let plan = playbook_run(&observed(&run, None, &[]));
    assert_eq!((plan.status.phase, plan.status.retriable), (Some(RunPhase::Failed), Some(false)));
    assert_eq!(complete(&plan.status), ("True", "ReservedVariable"));
    assert!(plan.actions.is_empty());
}

#[test]
fn a_probe_that_would_change_a_machine_is_refused_and_never_gets_a_job() {
    let mut run = run("");
    run.spec.intent = crds::Intent::Probe;
    run.spec.steps = vec![crds::Step::Reset];
    for cluster in [None, Some("a".to_owned())] {
        run.spec.cluster_name = cluster;
        assert!(matches!(grant(&run, "ClusterDeployment", None), Grant::Waits { .. }), "it needs a lock");
        // Also with a lock that somebody gave it.
        let plan = playbook_run(&RunObserved {
            grant: Grant::Given { token: 7 },
            inputs: model(),
            ..observed(&run, None, &[])
        });
        assert!(plan.actions.is_empty());
        assert_eq!(complete(&plan.status), ("True", "StepNotAllowed"));
        assert_eq!(plan.status.phase, Some(RunPhase::Failed));
        assert_eq!(plan.status.retriable, Some(false));
    }
}

#[test]
fn what_is_missing_is_waited_for() {
    let run = run("");
    let problem = InputsProblem::waits(crds::Reason::SecretNotFound, "Secret fleet is not there");
    let inputs = InputsSeen::Problem(problem);
    let plan = playbook_run(&RunObserved { grant: Grant::Given { token: 1 }, inputs, ..observed(&run, None, &[]) });
    assert_eq!(complete(&plan.status), ("False", "SecretNotFound"));
    assert_eq!(plan.status.phase, Some(RunPhase::Pending));
    assert!(plan.actions.is_empty() && plan.waits_for.is_some());
}

fn model() -> InputsSeen {
    let text = r#"{"namespace":"fleet","run":"r","intent":"Custom","steps":["prepare"],"hosts":{}}"#.to_owned();
    let model: RunInputs = serde_json::from_str(&text).unwrap();
    InputsSeen::Model { text, model: Box::new(model), settings: None }
}

#[test]
fn inputs_that_do_not_fit_are_refused_with_their_size() {
    let run = run("");
    let InputsSeen::Model { model, .. } = model() else { unreachable!() };
    let inputs = InputsSeen::Model { text: "x".repeat(1_000_001), model, settings: None };
    let plan = playbook_run(&RunObserved { grant: Grant::Given { token: 1 }, inputs, ..observed(&run, None, &[]) });
    assert_eq!(complete(&plan.status), ("True", "InputsTooLarge"));
    assert!(plan.status.message.unwrap().contains("1000001 bytes"));
}

#[test]
fn a_run_says_what_it_is_doing() {
    let job = job("active: 1");
    let check = |run: PlaybookRun, pods: &[Pod], trouble: Option<&str>, phase: RunPhase, message: &str| {
        let trouble = trouble.map(|message| Trouble::new("FailedCreate", message));
        let plan = playbook_run(&RunObserved { trouble: trouble.as_ref(), ..observed(&run, Some(&job), pods) });
        assert_eq!((plan.status.phase, plan.status.message.as_deref()), (Some(phase), Some(message)));
        assert_eq!((plan.status.token, plan.status.attempt), (7, 2));
        assert!(plan.actions.is_empty(), "{:?}", plan.actions);
    };
    let waiting = |reason: &str| {
        let status = format!(
            "phase: Pending, containerStatuses: [{{name: executor, image: i, imageID: i, ready: false, restartCount: 0, state: {{waiting: {{reason: {reason}, message: not found}}}}}}]"
        );
        pod("", ", nodeName: n1", &status)
    };
    let unscheduled = pod(
        "",
        "",
        "phase: Pending, conditions: [{type: PodScheduled, status: 'False', message: 0/2 nodes are available}]",
    );
    let running = pod("", ", nodeName: n1", RUNNING);
    let progress = started(", progress: {step: container-runtime, task: start containerd, done: 12, total: 58}");
    check(run(""), &[], None, RunPhase::Pending, "waits for its Pod");
    check(run(""), &[], Some("exceeded quota"), RunPhase::Pending, "waits for its Pod: exceeded quota");
    check(run(""), &[unscheduled], None, RunPhase::Pending, "waits for a node: 0/2 nodes are available");
    check(run(""), &[waiting("ErrImagePull")], None, RunPhase::Pending, "cannot pull image img: not found");
    check(run(""), &[waiting("ContainerCreating")], None, RunPhase::Pending, "its Pod is being started on n1");
    check(run(""), std::slice::from_ref(&running), None, RunPhase::Running, "the executor starts");
    check(progress, &[running], None, RunPhase::Running, "container-runtime, task 12 of 58: start containerd");
}

#[test]
fn every_end_has_its_phase() {
    let failed = job("failed: 1, conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]");
    let deadline = job("failed: 1, conditions: [{type: Failed, status: 'True', reason: DeadlineExceeded}]");
    let going = job("active: 1");
    let check = |run: PlaybookRun, job: Option<&Job>, pods: &[Pod], phase: RunPhase, reason: &str| {
        let plan = playbook_run(&observed(&run, job, pods));
        let found = (plan.status.phase, complete(&plan.status));
        assert_eq!(found, (Some(phase), ("True", reason)), "{:?}", plan.status.message);
    };
    let said = ", outcome: {phase: Failed, retriable: true, reason: DigestMismatch, message: m, digest: 'sha256:d'}";
    let other = ", outcome: {phase: Succeeded, reason: Complete, message: m, digest: 'sha256:other'}";
    let short = r#"{"outcome":"Succeeded","reason":"Complete","step":"prepare","counts":{},"digest":"sha256:d"}"#;
    let long = r#"{"outcome":"Failed","phase":"Failed","retriable":true,"reason":"TaskFailed","message":"m","digest":"sha256:d"}"#;
    let stopped = r#"{"outcome":"Canceled","reason":"Canceled","digest":"sha256:d"}"#;
    let mut canceled = started("");
    canceled.spec.cancel = true;
    check(started(""), Some(&failed), &[ended(20, long)], RunPhase::Failed, "TaskFailed");
    check(started(said), Some(&failed), &[ended(20, "")], RunPhase::Failed, "DigestMismatch");
    check(started(said), Some(&failed), &[], RunPhase::Failed, "DigestMismatch");
    check(started(other), Some(&failed), &[ended(1, "")], RunPhase::Unknown, "ExecutorDied");
    check(started(""), Some(&failed), &[ended(0, short)], RunPhase::Succeeded, "Complete");
    check(started(""), Some(&failed), &[ended(0, "")], RunPhase::Unknown, "ResultLost");
    check(started(""), Some(&failed), &[ended(137, "")], RunPhase::Unknown, "ExecutorKilled");
    check(started(""), Some(&failed), &[ended(12, "")], RunPhase::Failed, "AuthenticationFailed");
    check(started(""), Some(&failed), &[ended(143, stopped)], RunPhase::Unknown, "PodStopped");
    check(canceled, Some(&failed), &[ended(143, stopped)], RunPhase::Canceled, "Canceled");
    check(started(""), Some(&failed), &[], RunPhase::Unknown, "ContactLost");
    check(started(""), None, &[], RunPhase::Unknown, "ContactLost");
    check(run(""), Some(&deadline), &[], RunPhase::Failed, "NotStarted");
    let silent = pod(", deletionTimestamp: 2026-01-01T00:50:00Z", ", nodeName: n1", RUNNING);
    check(started(""), Some(&going), &[silent], RunPhase::Unknown, "ContactLost");
}

#[test]
fn a_pod_that_never_pulled_its_image_did_nothing() {
    let job = job("failed: 1");
    let status = "phase: Failed, containerStatuses: [{name: executor, image: i, imageID: i, ready: false, restartCount: 0, state: {terminated: {exitCode: 137, reason: ContainerStatusUnknown}}}]";
    let pods = [pod(", deletionTimestamp: 2026-01-01T00:50:00Z", ", nodeName: n1", status)];
    let check = |run: PlaybookRun, phase: RunPhase| {
        assert_eq!(playbook_run(&observed(&run, Some(&job), &pods)).status.phase, Some(phase));
    };
    let mut canceled = run("");
    canceled.spec.cancel = true;
    check(run(""), RunPhase::Failed);
    check(canceled, RunPhase::Canceled);
    check(started(""), RunPhase::Unknown);
}

#[test]
fn a_pod_that_was_asked_to_end_has_its_time() {
    let run = started("");
    let job = job("active: 1");
    let ending = [pod(", deletionTimestamp: 2026-01-01T00:59:30Z", ", nodeName: n1", RUNNING)];
    let plan = playbook_run(&observed(&run, Some(&job), &ending));
    assert_eq!(plan.status.phase, Some(RunPhase::Running));
}

#[test]
fn cancel_asks_the_pod_to_end_and_keeps_the_job() {
    let mut run = started("");
    run.spec.cancel = true;
    let job = job("active: 1");
    let pods = [pod("", ", nodeName: n1", RUNNING)];
    let plan = playbook_run(&observed(&run, Some(&job), &pods));
    assert!(matches!(plan.actions.as_slice(), [Action::StopPod(_)]), "{:?}", plan.actions);
}

#[test]
fn the_log_is_kept_before_anything_is_released() {
    let run = started("");
    let job = job("failed: 1");
    let pods = [ended(20, "")];
    let log = LogSeen::Parts(vec![vec![1], vec![2]]);
    let plan = playbook_run(&RunObserved { log: &log, ..observed(&run, Some(&job), &pods) });
    let names: Vec<&str> = plan.status.log_refs.iter().map(|log| log.name.as_str()).collect();
    assert_eq!(names, ["r-log-0", "r-log-1"]);
    assert!(matches!(plan.actions.as_slice(), [Action::KeepLog(parts)] if parts.len() == 2), "{:?}", plan.actions);
    let mut run = run;
    run.status = Some(plan.status);
    let plan = playbook_run(&observed(&run, Some(&job), &pods));
    assert!(matches!(plan.actions.as_slice(), [Action::ReleasePod(_), Action::ReleaseJob(_)]), "{:?}", plan.actions);
}

/// What a metadata cluster does with the steps, in small.
struct World {
    run: PlaybookRun,
    job: Option<Job>,
    pods: Vec<Pod>,
    end: Pod,
    jobs_made: usize,
    kept: bool,
    permitted: bool,
}

impl World {
    fn turn(&mut self) -> Vec<Action> {
        let plan = playbook_run(&RunObserved {
            grant: Grant::Given { token: 3 },
            inputs: model(),
            log: &LogSeen::Parts(vec![vec![1]]),
            ..observed(&self.run, self.job.as_ref(), &self.pods)
        });
        let over = plan.status.phase.is_some_and(RunPhase::is_final);
        // As the operator does: the status after the steps; here nothing is lost by doing it before.
        self.run.status = Some(plan.status);
        if plan.actions.is_empty() && !over && self.job.is_some() {
            // Time passes: a Pod comes, and ends.
            match self.pods.is_empty() {
                true => self.pods.push(pod("", ", nodeName: n1", RUNNING)),
                false => self.pods = vec![self.end.clone()],
            }
            return vec![Action::Withdraw];
        }
        match plan.actions.is_empty() && over && stage(&self.run, self.job.as_ref(), &self.pods) != Stage::Over {
            true => vec![Action::Withdraw],
            false => plan.actions,
        }
    }

    fn apply(&mut self, step: &Action) {
        match step {
            Action::Hold => self.run.metadata.finalizers = Some(vec![finalizer::RUN.into()]),
            Action::Start(job) => {
                self.jobs_made += 1;
                let mut job = job.clone();
                job.metadata.creation_timestamp = Some(Time(now()));
                self.job = Some(*job);
            }
            Action::StopPod(_) | Action::KillPod(_) => self.pods = vec![self.end.clone()],
            Action::StopJob(_) => self.job = None,
            Action::KeepLog(_) => self.kept = true,
            Action::ReleasePod(_) => self.pods.clear(),
            Action::ReleaseJob(_) => {
                if let Some(job) = &mut self.job {
                    job.metadata.finalizers = None;
                }
            }
            Action::Release => self.run.metadata.finalizers = None,
            Action::Freeze { .. } | Action::DropSecrets => {}
            Action::MakeReceiver(_) => {}
            Action::Permit(_) => self.permitted = true,
            Action::Withdraw => self.permitted = false,
            Action::Prolong(..) => {}
        }
    }
}

#[test]
fn every_run_comes_to_rest_with_one_job_its_log_kept_and_nothing_held() {
    for (code, phase) in [(20, RunPhase::Failed), (0, RunPhase::Unknown), (31, RunPhase::DeadlineExceeded)] {
        let mut world = World {
            run: run(""),
            job: None,
            pods: vec![],
            end: ended(code, ""),
            jobs_made: 0,
            kept: false,
            permitted: false,
        };
        settles(&mut world, 20, World::turn, World::apply, |world| assert!(world.jobs_made <= 1));
        assert_eq!(stage(&world.run, world.job.as_ref(), &world.pods), Stage::Over);
        assert_eq!(world.run.status.as_ref().unwrap().phase, Some(phase));
        assert!(world.kept && world.jobs_made == 1 && !world.permitted);
    }
}

#[test]
fn a_run_that_is_deleted_before_it_began_makes_nothing() {
    let mut run = run("");
    run.metadata.deletion_timestamp = Some(Time(now()));
    run.metadata.finalizers = Some(vec![finalizer::RUN.into()]);
    let plan = playbook_run(&RunObserved { grant: Grant::Given { token: 1 }, ..observed(&run, None, &[]) });
    assert_eq!(plan.actions, [Action::Withdraw, Action::DropSecrets, Action::Release]);
}

mod faults;
mod stops;

mod arbitrary {
    use super::{World, ended, finalizer, job, observed, pod, run, settles};
    use crate::playbook_run::{Action, LogSeen, RunObserved, Stage, playbook_run, stage};
    use crds::playbook_run::RunPhase;
    use k8s_openapi::api::batch::v1::Job;
    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

    fn pods() -> impl Strategy<Value = Vec<Pod>> {
        let deleted = ", deletionTimestamp: 2026-01-01T00:59:50Z";
        prop_oneof![
            Just(vec![]),
            Just(vec![pod("", "", "phase: Pending")]),
            Just(vec![pod("", ", nodeName: n1", super::RUNNING)]),
            Just(vec![pod(deleted, ", nodeName: n1", super::RUNNING)]),
            Just(vec![pod(deleted, "", "phase: Pending")]),
            any::<u8>().prop_map(|code| vec![ended(code.into(), "")]),
            Just(vec![ended(0, "not JSON"), pod("", ", nodeName: n1", super::RUNNING)]),
        ]
    }

    fn jobs() -> impl Strategy<Value = Option<Job>> {
        prop_oneof![
            Just(None),
            Just(Some(job("active: 1"))),
            Just(Some(job("failed: 1, conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]"))),
            Just(Some(job("conditions: [{type: Failed, status: 'True', reason: DeadlineExceeded}]"))),
        ]
    }

    proptest! {
        /// Whatever is found, a run comes to rest, with nothing held, at most one Job made, and none beside one that is
        /// there.
        #[test]
        fn a_run_found_in_any_state_comes_to_rest(
            job in jobs(), pods in pods(), cancel in any::<bool>(), deleted in any::<bool>(), held in any::<bool>(), code in any::<u8>()
        ) {
            let mut run = run("");
            run.spec.cancel = cancel;
            run.metadata.finalizers = held.then(|| vec![finalizer::RUN.into()]);
            run.metadata.deletion_timestamp = deleted.then(|| Time(super::now()));
            let had_job = job.is_some();
            let pods = if had_job { pods } else { vec![] };
            let mut world = World { run, job, pods, end: ended(code.into(), ""), jobs_made: 0, kept: false, permitted: false };
            settles(&mut world, 30, World::turn, World::apply, |world| {
                assert!(world.jobs_made <= usize::from(!had_job && !cancel && !deleted));
            });
            let over = world.run.status.as_ref().and_then(|status| status.phase).is_some_and(RunPhase::is_final);
            assert!(over || deleted, "{:?}", world.run.status);
            if over {
                assert_eq!(stage(&world.run, world.job.as_ref(), &world.pods), Stage::Over);
            }
        }

        /// What is over stays as it is.
        #[test]
        fn a_run_that_is_over_is_never_taken_up_again(job in jobs(), pods in pods()) {
            let mut run = super::started("");
            run.status.as_mut().unwrap().phase = Some(RunPhase::Unknown);
            let plan = playbook_run(&RunObserved { log: &LogSeen::Parts(vec![vec![1]]), ..observed(&run, job.as_ref(), &pods) });
            assert_eq!(Some(plan.status), run.status);
            assert!(!plan.actions.iter().any(|step| matches!(step, Action::Start(_) | Action::Freeze { .. } | Action::KeepLog(_))));
        }
    }
}
