//! What a Pod says of itself, in words.

use crds::ObjectExt;
use crds::Reason;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod, PodCondition};

/// Why something does not run, or runs no more: a reason in CamelCase and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Why {
    pub reason: Reason,
    pub message: String,
}

impl Why {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// The executor's container, as far as the Pod tells.
fn container(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.first()
}

/// How the executor's process ended, if it did.
pub(crate) fn terminated(pod: &Pod) -> Option<&ContainerStateTerminated> {
    container(pod)?.state.as_ref()?.terminated.as_ref()
}

/// True when nothing of the Pod runs any more.
pub fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    terminated(pod).is_some() || matches!(phase, Some("Succeeded" | "Failed"))
}

/// True once the executor's process was there.
pub(crate) fn has_begun(pod: &Pod) -> bool {
    let state = container(pod).and_then(|container| container.state.as_ref());
    state.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
}

/// When the executor's process began, while it runs.
pub(super) fn running_since(pod: &Pod) -> Option<i64> {
    let running = container(pod)?.state.as_ref()?.running.as_ref()?;
    Some(running.started_at.as_ref()?.0.as_second())
}

/// The node that the Pod is on.
pub fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// The image that the Pod was made with.
pub(super) fn image_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.containers.first()?.image.as_deref()
}

fn condition<'a>(pod: &'a Pod, type_: &str, state: &str) -> Option<&'a PodCondition> {
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == type_ && condition.status == state)
}

/// Why a Pod does not run yet.
pub(crate) fn waits_for(pod: &Pod) -> Why {
    if let Some(condition) = condition(pod, "PodScheduled", "False") {
        let message = condition.message.as_deref().unwrap_or("no node takes it");
        return Why::new(Reason::Unschedulable, format!("waits for a node: {message}"));
    }
    let image = image_of(pod).unwrap_or("of the executor");
    let waiting = container(pod).and_then(|container| container.state.as_ref()?.waiting.clone()).unwrap_or_default();
    let message = waiting.message.unwrap_or_default();
    let node = node_of(pod).unwrap_or("a node");
    match waiting.reason.as_deref() {
        Some("ImagePullBackOff" | "ErrImagePull" | "InvalidImageName" | "ErrImageNeverPull") => {
            // The same failure is told with and without the wait before the next try.
            let message = message.split_once("ErrImagePull: ").map_or(&*message, |(_, why)| why);
            Why::new(Reason::ImagePullFailed, format!("cannot pull image {image}: {message}"))
        }
        None | Some("ContainerCreating" | "PodInitializing") => {
            Why::new(Reason::WaitingForPod, format!("its Pod is being started on {node}"))
        }
        Some(reason) => {
            Why::new(Reason::PodNotStarted, format!("its Pod does not start on {node}: {reason}: {message}"))
        }
    }
}

/// Why the Pod was ended, if it was ended from outside.
pub(super) fn ended_by(pod: &Pod) -> Option<Why> {
    let status = pod.status.clone().unwrap_or_default();
    if status.reason.as_deref() == Some("Evicted") {
        let message = status.message.unwrap_or_else(|| "its node lacked room".to_owned());
        return Some(Why::new(Reason::Evicted, format!("its Pod was evicted: {message}")));
    }
    if let Some(condition) = condition(pod, "DisruptionTarget", "True") {
        let reason = condition.reason.as_deref().unwrap_or_default();
        let message = condition.message.as_deref().unwrap_or(reason);
        return Some(match reason {
            "DeletionByTaintManager" | "DeletionByPodGC" => {
                let node = node_of(pod).unwrap_or("its node");
                Why::new(Reason::NodeLost, format!("{node} was lost: {message}"))
            }
            _ => Why::new(Reason::Evicted, format!("its Pod was evicted: {message}")),
        });
    }
    let deleted = pod.is_deleting();
    deleted.then(|| Why::new(Reason::PodDeleted, "its Pod was deleted"))
}

/// True when Kubernetes took the Pod off a node that does not answer: only the controller of nodes calls a Pod not
/// ready whose containers are.
pub(super) fn node_is_silent(pod: &Pod) -> bool {
    let taken = condition(pod, "DisruptionTarget", "True")
        .is_some_and(|condition| condition.reason.as_deref() == Some("DeletionByTaintManager"));
    taken && condition(pod, "Ready", "False").is_some() && condition(pod, "ContainersReady", "True").is_some()
}
