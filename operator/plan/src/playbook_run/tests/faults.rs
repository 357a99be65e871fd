//! What may happen to a Job, its Pod and its node, and what is told of it.

use super::{ended, job, object, observed, pod, run, started};
use crds::PlaybookRun;
use crds::conditions;
use crds::names::{annotation, condition};
use crds::playbook_run::RunPhase;
use crds::step::Intent;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use crate::playbook_run::{Action, LogSeen, RunObserved, Stage, Trouble, has_log, playbook_run, stage};

/// Installs, joins, scale-ins and deletions alike: a run's end does not depend on what it is for.
const INTENTS: [Intent; 4] = [Intent::Install, Intent::Join, Intent::Remove, Intent::Reset];

const AT_WORK: &str = ", progress: {step: container-runtime, task: start containerd, done: 12, total: 58}";

fn terminated(meta: &str, status: &str, terminated: &str) -> Pod {
    let status = format!(
        "phase: Failed{status}, containerStatuses: [{{name: executor, image: i, imageID: i, ready: false, restartCount: 0, state: {{terminated: {{{terminated}}}}}}}]"
    );
    pod(meta, ", nodeName: n1", &status)
}

fn disrupted(reason: &str) -> String {
    format!(", conditions: [{{type: DisruptionTarget, status: 'True', reason: {reason}, message: 'because'}}]")
}

/// The end must be the same for every intent; the message must hold all of these.
fn check(run: &PlaybookRun, job: Option<&Job>, pods: &[Pod], expected: (RunPhase, Option<bool>, &str), said: &[&str]) {
    for intent in INTENTS {
        let mut run = run.clone();
        run.spec.intent = intent;
        let plan = playbook_run(&observed(&run, job, pods));
        let complete = conditions::find(&plan.status.conditions, condition::COMPLETE).unwrap();
        let message = plan.status.message.unwrap_or_default();
        let found = (plan.status.phase.unwrap(), plan.status.retriable, complete.reason.as_str());
        assert_eq!(found, expected, "{intent:?}: {message}");
        let succeeded = expected.0 == RunPhase::Succeeded;
        assert_eq!(complete.status == "True", succeeded);
        let failed = conditions::is_true(&plan.status.conditions, condition::FAILED);
        assert_eq!(failed, !succeeded);
        for words in said {
            assert!(message.contains(words), "{words:?} in {message:?}");
        }
        assert!(!plan.actions.iter().any(|step| matches!(step, Action::Start(_))));
    }
}

const PLACE: &str = "in container-runtime, task 12 of 58: start containerd, on x";
const STOPPED: &str =
    r#"{"phase":"Canceled","reason":"Canceled","message":"stopped in container-runtime","digest":"sha256:d"}"#;

#[test]
fn an_executor_that_is_killed_leaves_it_unknown_where_things_stand() {
    let job = job("failed: 1, conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]");
    let run = started(AT_WORK);
    let unknown = |reason| (RunPhase::Unknown, None, reason);
    check(
        &run,
        Some(&job),
        &[ended(137, "")],
        unknown("ExecutorKilled"),
        &["on n1 was killed", PLACE, "ended before the next run begins"],
    );
    let oom = terminated("", "", "exitCode: 137, reason: OOMKilled");
    check(&run, Some(&job), &[oom], unknown("OutOfMemory"), &["ran out of memory", PLACE]);
}

#[test]
fn a_pod_that_is_deleted_or_evicted_leaves_it_unknown_and_names_who_did_it() {
    let job = job("active: 1");
    let run = started(AT_WORK);
    let message = serde_json::to_string(STOPPED).unwrap();
    let word = format!("exitCode: 143, message: {message}");
    let deleted = ", deletionTimestamp: 2026-01-01T00:59:50Z";
    let unknown = |reason| (RunPhase::Unknown, None, reason);
    let graceful = terminated(deleted, "", &word);
    let said = ["its Pod was deleted", "stopped in container-runtime"];
    check(&run, Some(&job), &[graceful], unknown("PodDeleted"), &said);
    let by_api = terminated(deleted, &disrupted("EvictionByEvictionAPI"), &word);
    let said = ["its Pod was evicted: because", "stopped in container-runtime"];
    check(&run, Some(&job), &[by_api], unknown("Evicted"), &said);
    let by_kubelet = terminated(
        "",
        &format!(", reason: Evicted, message: 'low on memory'{}", disrupted("TerminationByKubelet")),
        "exitCode: 137, reason: Error",
    );
    let said = ["its Pod was evicted: low on memory", PLACE];
    check(&run, Some(&job), &[by_kubelet], unknown("Evicted"), &said);
}

#[test]
fn a_pod_that_is_evicted_before_it_began_touched_nothing() {
    let job = job("failed: 1, conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]");
    let evicted = pod("", ", nodeName: n1", "phase: Failed, reason: Evicted, message: 'low on disk'");
    let not_started = (RunPhase::Failed, Some(true), "NotStarted");
    let said = ["no host was touched", "low on disk"];
    check(&run(""), Some(&job), std::slice::from_ref(&evicted), not_started, &said);
    // One that was seen at work was not.
    let unknown = (RunPhase::Unknown, None, "ContactLost");
    check(&started(AT_WORK), Some(&job), &[evicted], unknown, &[PLACE]);
}

#[test]
fn a_node_that_is_lost_makes_the_run_unknown_after_grace_and_patience_or_sooner_when_the_node_is_silent() {
    let job = job("active: 1");
    let run = started(AT_WORK);
    let silent = ", conditions: [{type: DisruptionTarget, status: 'True', reason: DeletionByTaintManager}, {type: Ready, status: 'False'}, {type: ContainersReady, status: 'True'}]";
    let tainted = ", conditions: [{type: DisruptionTarget, status: 'True', reason: DeletionByTaintManager}, {type: Ready, status: 'True'}, {type: ContainersReady, status: 'True'}]";
    // It is 01:00:00. `ends` is when the grace of 120 s is over.
    let at = |ends: &str, conditions: &str, given_up: bool| {
        let meta = format!(", deletionTimestamp: 2026-01-01T{ends}Z, deletionGracePeriodSeconds: 120");
        let pods = [pod(&meta, ", nodeName: n1", &format!("{}{conditions}", super::RUNNING))];
        let plan = playbook_run(&observed(&run, Some(&job), &pods));
        let phase = if given_up { RunPhase::Unknown } else { RunPhase::Running };
        assert_eq!(plan.status.phase, Some(phase), "{ends} {conditions}");
    };
    at("00:59:29", "", true);
    at("00:59:31", "", false);
    at("01:01:29", silent, true);
    at("01:01:31", silent, false);
    at("01:01:29", tainted, false);
    let meta = ", deletionTimestamp: 2026-01-01T00:50:00Z";
    let stuck = pod(meta, ", nodeName: n1", super::RUNNING);
    let said = ["node n1 does not answer", "may still be at work", PLACE];
    check(&run, Some(&job), &[stuck], (RunPhase::Unknown, None, "ContactLost"), &said);
}

#[test]
fn a_pod_of_a_lost_node_is_let_go_and_one_that_comes_back_is_stopped() {
    let mut run = started("");
    run.status.as_mut().unwrap().phase = Some(RunPhase::Unknown);
    let job = job("active: 1");
    let steps = |pod: Pod| playbook_run(&observed(&run, Some(&job), &[pod])).actions;
    let stuck = pod(", deletionTimestamp: 2026-01-01T00:50:00Z", ", nodeName: n1", super::RUNNING);
    assert!(matches!(steps(stuck).as_slice(), [Action::ReleasePod(_), Action::ReleaseJob(_)]));
    let another = pod("", ", nodeName: n2", super::RUNNING);
    assert!(matches!(steps(another).as_slice(), [Action::StopPod(_), Action::ReleaseJob(_)]));
}

#[test]
fn a_job_that_somebody_deletes_has_its_pod_stopped_and_its_end_says_so() {
    let going: Job = {
        let mut job = job("active: 1");
        job.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(super::now()));
        job
    };
    let run = started(AT_WORK);
    let running = pod("", ", nodeName: n1", super::RUNNING);
    let plan = playbook_run(&observed(&run, Some(&going), &[running]));
    assert!(matches!(plan.actions.as_slice(), [Action::StopPod(_)]), "{:?}", plan.actions);
    let message = serde_json::to_string(STOPPED).unwrap();
    let deleted = ", deletionTimestamp: 2026-01-01T00:59:50Z";
    let stopped = terminated(deleted, "", &format!("exitCode: 143, message: {message}"));
    let unknown = |reason| (RunPhase::Unknown, None, reason);
    check(&run, Some(&going), &[stopped], unknown("JobDeleted"), &["its Job was deleted", "stopped in"]);
    // Finalizers stripped by hand: no trace is left.
    check(&run, None, &[], unknown("ContactLost"), &["its Job and its Pod are gone", PLACE]);
    // What the executor had said by then counts, even so (TTL, or a hand that was too quick).
    let said = started(", outcome: {phase: Succeeded, reason: Complete, message: done, digest: 'sha256:d'}");
    check(&said, None, &[], (RunPhase::Succeeded, None, "Complete"), &["done"]);
    let ended_well = ended(0, r#"{"phase":"Succeeded","reason":"Complete","message":"done","digest":"sha256:d"}"#);
    check(&run, Some(&going), &[ended_well], (RunPhase::Succeeded, None, "Complete"), &["done"]);
}

#[test]
fn a_deadline_that_passes_is_told_as_one_and_not_as_a_stop() {
    let over = job("failed: 1, conditions: [{type: FailureTarget, status: 'True', reason: DeadlineExceeded}]");
    let run = started(AT_WORK);
    let deadline = (RunPhase::DeadlineExceeded, None, "DeadlineExceeded");
    check(&run, Some(&over), &[ended(143, STOPPED)], deadline, &["its time was over", "stopped in"]);
    check(&run, Some(&over), &[ended(137, "")], deadline, &["its time was over", PLACE]);
    let own = r#"{"phase":"DeadlineExceeded","reason":"DeadlineExceeded","message":"stopped by its deadline","digest":"sha256:d"}"#;
    check(&run, Some(&job("failed: 1")), &[ended(31, own)], deadline, &["stopped by its deadline"]);
}

/// What waits, and the Pod that waits.
fn held_up() -> [(&'static str, &'static str, Vec<Pod>, Option<Trouble>); 4] {
    let waiting = |reason: &str| {
        let status = format!(
            "phase: Pending, containerStatuses: [{{name: executor, image: img, imageID: '', ready: false, restartCount: 0, state: {{waiting: {{reason: {reason}, message: 'no such image'}}}}}}]"
        );
        vec![pod("", ", nodeName: n1", &status)]
    };
    let unscheduled = pod(
        "",
        "",
        "phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: '0/2 nodes are available'}]",
    );
    let quota = "Error creating: pods \"r-x\" is forbidden: exceeded quota: q, requested: pods=1";
    let mount = "MountVolume.SetUp failed for volume \"secrets\" : secret \"r\" not found";
    [
        ("ImagePullFailed", "no such image", waiting("ImagePullBackOff"), None),
        ("Unschedulable", "0/2 nodes are available", vec![unscheduled], None),
        ("QuotaExceeded", "exceeded quota: q", vec![], Some(Trouble::new("FailedCreate", quota))),
        (
            "MountFailed",
            "secret \"r\" not found",
            waiting("ContainerCreating"),
            Some(Trouble::new("FailedMount", mount)),
        ),
    ]
}

#[test]
fn what_keeps_a_pod_from_starting_is_named_and_waited_for() {
    for (reason, said, pods, trouble) in held_up() {
        for intent in INTENTS {
            let mut run = run("");
            run.spec.intent = intent;
            let job = job("active: 1");
            let plan = playbook_run(&RunObserved { trouble: trouble.as_ref(), ..observed(&run, Some(&job), &pods) });
            let complete = conditions::find(&plan.status.conditions, condition::COMPLETE).unwrap();
            assert_eq!((complete.status.as_str(), complete.reason.as_str()), ("False", reason));
            let message = plan.status.message.unwrap();
            assert!(message.contains(said), "{message}");
            assert_eq!((plan.status.phase, plan.actions), (Some(RunPhase::Pending), vec![]));
            assert_eq!(plan.waits_for, Some(message));
        }
    }
}

#[test]
fn a_pod_that_never_started_until_the_deadline_is_no_failed_attempt() {
    let over = job("failed: 1, conditions: [{type: FailureTarget, status: 'True', reason: DeadlineExceeded}]");
    for (_, said, mut pods, trouble) in held_up() {
        // What the run said while it waited is what is known of it when its Pod goes.
        let waiting = job("active: 1");
        let mut run = run("");
        run.status = Some(
            playbook_run(&RunObserved { trouble: trouble.as_ref(), ..observed(&run, Some(&waiting), &pods) }).status,
        );
        for pod in &mut pods {
            let on_node = pod.spec.as_ref().unwrap().node_name.is_some();
            let gone = ", deletionTimestamp: 2026-01-01T00:59:59Z";
            *pod = match on_node {
                true => terminated(gone, "", "exitCode: 137, reason: ContainerStatusUnknown"),
                false => {
                    let mut pod = pod.clone();
                    pod.metadata.deletion_timestamp =
                        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(super::now()));
                    pod
                }
            };
        }
        let not_started = (RunPhase::Failed, Some(true), "NotStarted");
        check(&run, Some(&over), &pods, not_started, &["no host was touched", said]);
    }
}

#[test]
fn what_a_pod_waited_for_is_told_until_it_is_gone() {
    let job = job("active: 1");
    let [(_, said, pods, _), ..] = held_up();
    let mut run = run("");
    let shown = |run: &PlaybookRun, pods: &[Pod]| playbook_run(&observed(run, Some(&job), pods)).status;
    run.status = Some(shown(&run, &pods));
    let waited = run.status.as_ref().unwrap().message.clone().unwrap();
    assert!(waited.contains(said));
    // Its container is not told of any more by then.
    let going = pod(", deletionTimestamp: 2026-01-01T00:59:59Z", ", nodeName: n1", "phase: Pending");
    run.status = Some(shown(&run, &[going]));
    assert_eq!(run.status.as_ref().unwrap().message.as_ref(), Some(&waited));
}

#[test]
fn an_image_that_cannot_be_pulled_is_told_the_same_before_and_between_tries() {
    let waiting = |reason: &str, message: &str| {
        let status = format!(
            "phase: Pending, containerStatuses: [{{name: executor, image: img, imageID: '', ready: false, restartCount: 0, state: {{waiting: {{reason: {reason}, message: '{message}'}}}}}}]"
        );
        let pods = [pod("", ", nodeName: n1", &status)];
        let trouble = Trouble::new("Failed", &format!("Error: {reason}"));
        let job = job("active: 1");
        let run = run("");
        let plan = playbook_run(&RunObserved { trouble: Some(&trouble), ..observed(&run, Some(&job), &pods) });
        plan.status.message
    };
    let first = waiting("ErrImagePull", "no such host");
    let between = waiting("ImagePullBackOff", "Back-off pulling image \"img\": ErrImagePull: no such host");
    assert_eq!(first, between);
    assert_eq!(first.as_deref(), Some("cannot pull image img: no such host"));
}

#[test]
fn an_image_that_was_replaced_is_not_waited_for_any_more() {
    let job = job("active: 1");
    let [(_, _, pods, _), ..] = held_up();
    let run = run("");
    let steps = |image: &'static str| playbook_run(&RunObserved { image, ..observed(&run, Some(&job), &pods) }).actions;
    assert!(steps("img").is_empty());
    assert!(matches!(steps("mended").as_slice(), [Action::StopPod(_)]));
    // One that works is left alone.
    let running = [pod("", ", nodeName: n1", super::RUNNING)];
    let plan = playbook_run(&RunObserved { image: "mended", ..observed(&run, Some(&job), &running) });
    assert!(plan.actions.is_empty());
}

#[test]
fn a_run_whose_pod_waited_long_still_has_its_whole_time_once() {
    let mut run = started("");
    run.spec.timeout_seconds = 600;
    let since = |time: &str| {
        let status = super::RUNNING.replace("running: {}", &format!("running: {{startedAt: '2026-01-01T{time}Z'}}"));
        [pod("", ", nodeName: n1", &status)]
    };
    let with_deadline = |seconds: i64| {
        let mut job = job("active: 1, startTime: 2026-01-01T00:00:00Z");
        job.spec.as_mut().unwrap().active_deadline_seconds = Some(seconds);
        job
    };
    let steps = |seconds: i64, time: &str| {
        let job = with_deadline(seconds);
        playbook_run(&observed(&run, Some(&job), &since(time))).actions
    };
    assert!(matches!(steps(600, "00:08:20").as_slice(), [Action::Prolong(_, 1100)]));
    assert!(steps(1100, "00:08:20").is_empty());
    assert!(steps(600, "00:00:50").is_empty());
}

#[test]
fn nothing_takes_a_job_away_before_its_outcome_is_recorded() {
    let mut run = run("");
    run.metadata.annotations = Some([(annotation::ATTEMPT.to_owned(), "3".to_owned())].into());
    let plan = playbook_run(&RunObserved {
        grant: super::Grant::Given { token: 1 },
        inputs: super::model(),
        ..observed(&run, None, &[])
    });
    let job = plan.actions.iter().find_map(|step| match step {
        Action::Start(job) => Some(job),
        _ => None,
    });
    let spec = job.unwrap().spec.clone().unwrap();
    assert_eq!(spec.ttl_seconds_after_finished, None);
    assert!(spec.template.metadata.unwrap().finalizers.is_some());
    assert!(job.unwrap().metadata.finalizers.is_some());
    // A TTL that somebody sets deletes the Job: both are held until the outcome is there.
    let mut going = super::job("succeeded: 1");
    going.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(super::now()));
    assert_eq!(stage(&run, Some(&going), &[]), Stage::Working);
}

fn never_began() -> Pod {
    terminated("", "", "exitCode: 137, reason: ContainerStatusUnknown")
}

#[test]
fn a_log_that_is_lost_is_told() {
    let job = job("failed: 1");
    let run = started("");
    let check = |log: LogSeen, pods: &[Pod], expected: (&str, &str)| {
        let plan = playbook_run(&RunObserved { log: &log, ..observed(&run, Some(&job), pods) });
        let kept = conditions::find(&plan.status.conditions, condition::LOG_KEPT).unwrap();
        assert_eq!((kept.status.as_str(), kept.reason.as_str()), expected, "{}", kept.message);
    };
    check(LogSeen::Parts(vec![vec![1]]), &[ended(20, "")], ("True", "Kept"));
    check(LogSeen::Parts(vec![]), &[ended(20, "")], ("False", "NoLog"));
    check(LogSeen::Lost("node n1 does not answer".into()), &[ended(137, "")], ("False", "NoLog"));
    assert!(has_log(&ended(137, "")) && !has_log(&never_began()));
    let stuck = [pod(", deletionTimestamp: 2026-01-01T00:50:00Z", ", nodeName: n1", super::RUNNING)];
    check(LogSeen::NotLookedAt, &stuck, ("False", "NoLog"));
}

#[test]
fn a_log_that_cannot_be_read_now_is_read_again_before_the_outcome_is_recorded() {
    let (run, job) = (started(""), job("failed: 1"));
    let log = LogSeen::NotYet("connection refused".into());
    let plan = playbook_run(&RunObserved { log: &log, ..observed(&run, Some(&job), &[ended(20, "")]) });
    assert_eq!(plan.status.phase, run.status.as_ref().and_then(|status| status.phase));
    assert_eq!((plan.next, plan.actions), (crate::Next::after_seconds(2), Vec::new()));
    assert!(plan.waits_for.unwrap().contains("connection refused"));
}

#[test]
fn a_word_about_other_inputs_than_the_jobs_is_not_believed() {
    // Whoever can write the status can write there what was frozen; the Job's arguments nobody can edit.
    let mut run = started(", outcome: {phase: Succeeded, reason: Complete, message: m, digest: 'sha256:forged'}");
    run.status.as_mut().unwrap().inputs.as_mut().unwrap().digest = "sha256:forged".into();
    let job: Job = object(
        "{metadata: {name: r, namespace: fleet, finalizers: [clusterwright.dev/outcome-recorded]}, spec: {template: {spec: {containers: [{name: executor, args: [run, --digest, sha256:d]}]}}}, status: {failed: 1}}",
    );
    let plan = playbook_run(&observed(&run, Some(&job), &[ended(137, "")]));
    assert_eq!(plan.status.phase, Some(RunPhase::Unknown));
}
