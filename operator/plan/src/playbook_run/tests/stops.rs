//! Cancel, kill, pause: what is done, and what is told of it.

use super::{ended, job, now, observed, pod, run, started};
use crds::PlaybookRun;
use crds::conditions;
use crds::names::{annotation, condition};
use crds::playbook_run::RunPhase;
use k8s_openapi::api::core::v1::Pod;

use crate::playbook_run::{Action, Grant, RunObserved, playbook_run};

fn killed(value: &str) -> PlaybookRun {
    let mut run = started("");
    run.metadata.generation = Some(2);
    run.metadata.annotations = Some([(annotation::KILL.to_owned(), value.to_owned())].into());
    run
}

fn canceled(status: &str) -> PlaybookRun {
    let mut run = started(status);
    run.spec.cancel = true;
    run
}

fn running(meta: &str) -> Pod {
    pod(meta, ", nodeName: n1", super::RUNNING)
}

/// Phase, reason and message of the run, once it is concluded.
fn concluded(run: &PlaybookRun, pods: &[Pod]) -> (RunPhase, String, String) {
    let job = job("active: 1");
    let plan = playbook_run(&observed(run, Some(&job), pods));
    let reason = &conditions::find(&plan.status.conditions, condition::COMPLETE).unwrap().reason;
    (plan.status.phase.unwrap(), reason.clone(), plan.status.message.unwrap())
}

#[test]
fn a_kill_takes_the_pod_away_without_grace_even_one_that_has_been_asked_to_end() {
    let job = job("active: 1");
    let asked = ", deletionTimestamp: 2026-01-01T01:01:00Z, deletionGracePeriodSeconds: ";
    let check = |value: &str, pod: Pod, kills: bool| {
        let run = killed(value);
        let plan = playbook_run(&observed(&run, Some(&job), &[pod]));
        let found = matches!(plan.actions.as_slice(), [Action::KillPod(_)]);
        assert_eq!(found, kills, "{:?}", plan.actions);
    };
    check("2", running(""), true);
    check("2", running(&format!("{asked}120")), true);
    check("2", running(&format!("{asked}0")), false);
    check("1", running(""), false);
}

#[test]
fn a_kill_for_another_generation_is_ignored_and_says_so() {
    let run = killed("1");
    let job = job("active: 1");
    let plan = playbook_run(&observed(&run, Some(&job), &[running("")]));
    let message = plan.status.message.unwrap();
    assert!(message.contains(r#"is ignored: it names generation "1", this is 2"#), "{message}");
    assert!(plan.actions.is_empty());
}

#[test]
fn a_killed_run_is_canceled_and_says_that_its_hosts_are_not_quiet() {
    let (phase, reason, message) = concluded(&killed("2"), &[ended(137, "")]);
    assert_eq!((phase, reason.as_str()), (RunPhase::Canceled, "Killed"));
    assert!(message.contains("on x"), "{message}");
    assert!(message.contains("is ended before the next run begins"), "{message}");
}

#[test]
fn what_a_killed_or_canceled_run_had_done_before_counts() {
    let done = ", outcome: {phase: Succeeded, reason: Complete, message: done, digest: 'sha256:d'}";
    let mut run = killed("2");
    run.status = started(done).status;
    assert_eq!(concluded(&run, &[ended(0, "")]).0, RunPhase::Succeeded);
    assert_eq!(concluded(&canceled(done), &[ended(0, "")]).0, RunPhase::Succeeded);
}

#[test]
fn a_canceled_run_says_what_its_executor_said_of_its_hosts() {
    let word = "outcome: {phase: Canceled, reason: Canceled, message: 'stopped in etcd', digest: 'sha256:d'}";
    let quiet = format!(", {word}, hosts: [{{name: x, quiet: true}}]");
    let loud = format!(", {word}, hosts: [{{name: x, quiet: false}}]");
    let of = |status: &str| concluded(&canceled(status), &[ended(143, "")]);
    assert_eq!(of(&quiet), (RunPhase::Canceled, "Canceled".into(), "stopped in etcd".into()));
    let (phase, reason, message) = of(&loud);
    assert_eq!((phase, reason.as_str()), (RunPhase::Canceled, "CanceledUnconfirmed"));
    assert!(message.starts_with("stopped in etcd; not confirmed quiet: x;"), "{message}");
}

#[test]
fn a_canceled_run_whose_executor_said_nothing_is_not_taken_for_quiet() {
    let check = |pod: Pod| {
        let (phase, reason, message) = concluded(&canceled(""), &[pod]);
        assert_eq!((phase, reason.as_str()), (RunPhase::Canceled, "CanceledUnconfirmed"));
        assert!(
            message.contains("did not say that its hosts are quiet") || message.contains("no further word"),
            "{message}"
        );
    };
    check(ended(137, ""));
    check(ended(143, ""));
}

#[test]
fn a_canceled_run_whose_node_is_silent_is_unknown() {
    let stuck = running(", deletionTimestamp: 2026-01-01T00:50:00Z");
    let (phase, reason, message) = concluded(&canceled(""), &[stuck]);
    assert_eq!((phase, reason.as_str()), (RunPhase::Unknown, "ContactLost"));
    assert!(message.starts_with("asked to stop, but contact with the executor is lost"), "{message}");
    assert_eq!(concluded(&canceled(""), &[ended(137, "")]).0, RunPhase::Canceled);
}

const HELD: &str = ", outcome: {phase: Canceled, retriable: true, reason: Paused, message: 'paused before step etcd', digest: 'sha256:d'}";

#[test]
fn a_run_that_held_for_a_pause_is_recorded_as_paused_whoever_asked() {
    let paused = (RunPhase::Canceled, "Paused".to_owned(), "paused before step etcd".to_owned());
    // The pause may be over by now.
    assert_eq!(concluded(&started(HELD), &[ended(30, "")]), paused);
    let word = r#"{"phase":"Canceled","retriable":true,"reason":"Paused","message":"paused before step etcd","digest":"sha256:d"}"#;
    assert_eq!(concluded(&started(""), &[ended(30, word)]), paused);
}

#[test]
fn a_run_that_is_canceled_while_it_holds_does_not_go_on_after_the_pause() {
    let (phase, reason, _) = concluded(&canceled(HELD), &[ended(30, "")]);
    assert_eq!((phase, reason.as_str()), (RunPhase::Canceled, "Canceled"));
}

#[test]
fn a_paused_run_without_a_job_starts_none() {
    let run = run(", paused: true");
    let plan = playbook_run(&RunObserved {
        grant: Grant::Given { token: 1 },
        inputs: super::model(),
        ..observed(&run, None, &[])
    });
    assert_eq!((plan.actions, plan.status.phase), (vec![], Some(RunPhase::Pending)));
    assert_eq!(plan.status.conditions[0].reason, "Paused");
}

#[test]
fn a_run_that_is_killed_before_it_began_is_canceled() {
    let mut run = killed("2");
    run.status = None;
    let plan = playbook_run(&observed(&run, None, &[]));
    assert_eq!(plan.status.phase, Some(RunPhase::Canceled));
    assert_eq!(plan.status.finished_at.unwrap().0, now());
}
