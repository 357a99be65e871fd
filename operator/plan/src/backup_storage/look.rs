//! What a Job that looks at a storage has found.

use crds::backup::StorageLook;
use crds::names::label;
use crds::{ObjectExt, Reason};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use crate::message::quote;

/// What is known of a look.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Look {
    /// It goes on; what its Pod waits for.
    UnderWay(Option<String>),
    /// Somebody looked.
    Found(Box<StorageLook>),
    /// Nobody could look: reason and message.
    Unusable(String, String),
}

/// What came of this Job.
pub(super) fn of(job: &Job, pods: &[Pod]) -> Look {
    let of_job = |pod: &&Pod| {
        let storage = pod.metadata.labels.as_ref().and_then(|labels| labels.get(label::STORAGE));
        storage.is_some() && pod.is_owned_by(job.uid())
    };
    let pod = pods.iter().find(of_job);
    let container = pod.and_then(container);
    let ended = container.and_then(|container| container.state.as_ref()?.terminated.as_ref());
    if let Some(ended) = ended {
        let said = ended.message.as_deref().unwrap_or_default();
        return match serde_json::from_str(said) {
            Ok(look) => Look::Found(Box::new(look)),
            Err(_) => {
                let message = format!("the executor's Pod that looked ended with code {}: {said}", ended.exit_code);
                Look::Unusable(Reason::StorageFailed.into(), quote(message))
            }
        };
    }
    let waiting = container.and_then(|container| container.state.as_ref()?.waiting.as_ref());
    let waiting = waiting.map(|waiting| {
        let reason = waiting.reason.as_deref().unwrap_or("Waiting");
        waiting.message.as_ref().map_or_else(|| reason.to_owned(), |message| format!("{reason}: {message}"))
    });
    let trouble = waiting.filter(|_| pod.is_some()).or_else(|| pod.and_then(unscheduled));
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let failed = conditions.clone().find(|condition| condition.type_ == "Failed" && condition.status == "True");
    match failed {
        Some(failed) => {
            let why = trouble.or(failed.message.clone()).unwrap_or_else(|| "its Job failed".into());
            let message = format!("the executor's Pod that looks did not come up in time: {why}");
            Look::Unusable(Reason::PodNotStarted.into(), quote(message))
        }
        None => Look::UnderWay(trouble.map(quote)),
    }
}

fn container(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.first()
}

/// Why no node takes the Pod: a claim that is not bound, or not there.
fn unscheduled(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions.iter().find(|condition| condition.type_ == "PodScheduled")?;
    (scheduled.status == "False").then(|| scheduled.message.clone()).flatten()
}
