//! How far a run is that goes on.

use crds::playbook_run::RunPhase;
use crds::{ObjectExt, Reason};
use k8s_openapi::api::batch::v1::Job;

use super::observed::RunObserved;
use super::pod::{Why, waits_for};

/// `container-runtime, task 12 of 58: start containerd`; none before the first step.
pub(super) fn progress(observed: &RunObserved<'_>) -> Option<String> {
    let progress = observed.run.status.as_ref()?.progress.as_ref();
    let progress = progress.filter(|progress| !progress.step.is_empty())?;
    let place = match (progress.done, progress.total) {
        (0, _) => progress.step.clone(),
        (done, total) if total >= done => format!("{}, task {done} of {total}", progress.step),
        (done, _) => format!("{}, task {done}", progress.step),
    };
    Some(if progress.task.is_empty() { place } else { format!("{place}: {}", progress.task) })
}

/// Why no Pod works yet.
pub(super) fn pending(observed: &RunObserved<'_>) -> Why {
    let said = match observed.pods.first() {
        Some(pod) if pod.is_deleting() => {
            // What it waited for is told until it is gone: then it is why nothing was done.
            let waited_for = waited_for(observed).unwrap_or("its Pod is being ended");
            return Why::new(Reason::Stopping, waited_for);
        }
        Some(pod) => waits_for(pod),
        None => Why::new(Reason::WaitingForPod, "waits for its Pod"),
    };
    match observed.trouble {
        Some(trouble) if said.reason != Reason::ImagePullFailed && !said.message.contains(&trouble.message) => Why {
            reason: trouble.reason().unwrap_or(said.reason),
            message: format!("{}: {}", said.message, trouble.message),
        },
        _ => said,
    }
}

/// What was last said of a Pod that did not come up.
pub(super) fn waited_for<'a>(observed: &RunObserved<'a>) -> Option<&'a str> {
    let status = observed.run.status.as_ref();
    let status = status.filter(|status| status.phase == Some(RunPhase::Pending))?;
    status.message.as_deref()
}

pub(super) fn argument<'a>(job: &'a Job, name: &str) -> Option<&'a str> {
    let container = job.spec.as_ref()?.template.spec.as_ref()?.containers.first()?;
    let arguments = container.args.as_ref()?;
    let position = arguments.iter().position(|argument| argument == name)?;
    arguments.get(position + 1).map(String::as_str)
}
