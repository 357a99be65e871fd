//! What came of a run: how it ended, seen against what was asked of it. Lost contact is Unknown: never Failed, never
//! "still running".

use crds::ObjectExt;
use crds::Reason;
use crds::playbook_run::RunPhase;
use k8s_openapi::api::core::v1::Pod;

use super::ending::{Conclusion, Ending, end_of, ending};
use super::observed::RunObserved;
use super::pod::{Why, ended_by};
use super::progress::progress;

/// What people are told of hosts that nobody saw quiet.
const LEFT: &str = "what it left there is ended before the next run begins";
/// Hosts that a message names.
const MOST_NAMES: usize = 5;

/// What came of the run; none while something may still come.
pub(super) fn conclude(observed: &RunObserved<'_>) -> Option<Conclusion> {
    let (ending, pod) = ending(observed)?;
    Some(match ending {
        Ending::Said(said) if said.phase == RunPhase::Canceled => stopped(observed, pod, said),
        Ending::Said(said) => said,
        Ending::Died(why) => died(observed, pod, &why),
        Ending::Lost(why) => lost(observed, &why),
        Ending::NeverBegan(why) => never_began(observed, &why),
    })
}

/// The executor says that it was stopped: by whom decides what that means.
fn stopped(observed: &RunObserved<'_>, pod: Option<&Pod>, said: Conclusion) -> Conclusion {
    if observed.is_killed() {
        return killed(observed);
    }
    if observed.stop_is_asked() {
        let unquiet = not_quiet(observed);
        let confirmed = said.reason != Reason::CanceledUnconfirmed && unquiet.is_empty();
        let reason = if confirmed { Reason::Canceled } else { Reason::CanceledUnconfirmed };
        let silent = unquiet.iter().any(|host| !said.message.contains(*host));
        let message = match silent {
            true => format!("{}; not confirmed quiet: {}; {LEFT}", said.message, names(&unquiet)),
            false => said.message,
        };
        return Conclusion::new(RunPhase::Canceled, false, reason, message);
    }
    if said.reason == Reason::Paused {
        return Conclusion::new(RunPhase::Canceled, true, Reason::Paused, said.message);
    }
    if over_time(observed) {
        let message = format!("its time was over: {}", said.message);
        return Conclusion::new(RunPhase::DeadlineExceeded, true, Reason::DeadlineExceeded, message);
    }
    let why = stopped_by(observed, pod);
    let message = format!("{}, and the executor said: {}", why.message, said.message);
    Conclusion::new(RunPhase::Unknown, true, why.reason, message)
}

/// The process is gone, and said nothing.
fn died(observed: &RunObserved<'_>, pod: Option<&Pod>, why: &Why) -> Conclusion {
    if observed.is_killed() {
        return killed(observed);
    }
    let place = place(observed);
    if observed.stop_is_asked() {
        let message =
            format!("stopped, but the executor did not say that its hosts are quiet ({}{place}); {LEFT}", why.message);
        return Conclusion::new(RunPhase::Canceled, false, Reason::CanceledUnconfirmed, message);
    }
    if over_time(observed) {
        let message = format!("its time was over: {}{place}; {LEFT}", why.message);
        return Conclusion::new(RunPhase::DeadlineExceeded, true, Reason::DeadlineExceeded, message);
    }
    let cause = pod.and_then(ended_by).or(job_deleted(observed));
    let (reason, message) = match cause {
        Some(cause) => (cause.reason, format!("{}: {}", cause.message, why.message)),
        None => (why.reason, why.message.clone()),
    };
    Conclusion::new(RunPhase::Unknown, true, reason, format!("{message}{place}; {LEFT}"))
}

/// Whether the process still works is not known: neither a cancel nor a kill makes that better.
fn lost(observed: &RunObserved<'_>, why: &str) -> Conclusion {
    let asked = match (observed.is_killed(), observed.stop_is_asked()) {
        (true, _) => "killed, but ",
        (false, true) => "asked to stop, but ",
        (false, false) => "",
    };
    let message =
        format!("{asked}contact with the executor is lost: {why}{}; it may still be at work: {LEFT}", place(observed));
    Conclusion::new(RunPhase::Unknown, true, Reason::ContactLost, message)
}

/// Nothing has touched a host.
fn never_began(observed: &RunObserved<'_>, why: &str) -> Conclusion {
    if observed.stop_is_asked() {
        return Conclusion::new(RunPhase::Canceled, false, Reason::Canceled, "canceled before it began");
    }
    let message = format!("the executor did not start, no host was touched: {why}");
    Conclusion::new(RunPhase::Failed, true, Reason::NotStarted, message)
}

fn killed(observed: &RunObserved<'_>) -> Conclusion {
    let message = format!("killed{}; {LEFT}", place(observed));
    Conclusion::new(RunPhase::Canceled, false, Reason::Killed, message)
}

/// Who stopped an executor that nobody asked to stop.
fn stopped_by(observed: &RunObserved<'_>, pod: Option<&Pod>) -> Why {
    let of_job = job_deleted(observed);
    let of_pod = pod.and_then(ended_by);
    // A Job that goes has its Pod deleted by us.
    of_job.or(of_pod).unwrap_or_else(|| Why::new(Reason::PodStopped, "its Pod was stopped from outside"))
}

fn job_deleted(observed: &RunObserved<'_>) -> Option<Why> {
    let there = observed.job.is_some_and(|job| !job.is_deleting());
    (!there).then(|| Why::new(Reason::JobDeleted, "its Job was deleted"))
}

/// The Job's own deadline has passed, the one behind the executor's.
fn over_time(observed: &RunObserved<'_>) -> bool {
    observed.job.and_then(end_of) == Some("DeadlineExceeded")
}

/// Hosts whose guard did not say that nothing of the run is left.
fn not_quiet<'a>(observed: &RunObserved<'a>) -> Vec<&'a str> {
    let status = observed.run.status.as_ref();
    let hosts = status.map(|status| status.hosts.as_slice()).unwrap_or_default();
    let unquiet = hosts.iter().filter(|host| host.quiet == Some(false));
    unquiet.map(|host| host.name.as_str()).collect()
}

/// `, in container-runtime, task 12 of 58: start containerd, on a, b`.
fn place(observed: &RunObserved<'_>) -> String {
    let hosts: Vec<&str> = observed.run.spec.hosts.iter().map(String::as_str).collect();
    let on = if hosts.is_empty() { String::new() } else { format!(", on {}", names(&hosts)) };
    match progress(observed) {
        Some(progress) => format!(", in {progress}{on}"),
        None => on,
    }
}

fn names(hosts: &[&str]) -> String {
    let shown: Vec<&str> = hosts.iter().take(MOST_NAMES).copied().collect();
    match hosts.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
