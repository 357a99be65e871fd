//! What a Pod says of itself, in words.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};

/// The executor's container, as far as the Pod tells.
fn container(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.first()
}

/// How the executor's process ended, if it did.
pub(super) fn terminated(pod: &Pod) -> Option<&ContainerStateTerminated> {
    container(pod)?.state.as_ref()?.terminated.as_ref()
}

/// True when nothing of the Pod runs any more.
pub fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    terminated(pod).is_some() || matches!(phase, Some("Succeeded" | "Failed"))
}

/// True once the executor's process was there.
pub(super) fn has_begun(pod: &Pod) -> bool {
    let state = container(pod).and_then(|container| container.state.as_ref());
    state.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
}

/// The node that the Pod is on.
pub fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// Why a Pod does not run yet.
pub(super) fn waits_for(pod: &Pod) -> String {
    let status = pod.status.clone().unwrap_or_default();
    let unscheduled = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    if let Some(condition) = unscheduled {
        let message = condition.message.as_deref().unwrap_or("no node takes it");
        return format!("waits for a node: {message}");
    }
    let image = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.containers.first())
        .and_then(|first| first.image.as_deref());
    let image = image.unwrap_or("of the executor");
    let waiting = container(pod)
        .and_then(|container| container.state.as_ref()?.waiting.clone())
        .unwrap_or_default();
    let message = waiting.message.unwrap_or_default();
    let node = node_of(pod).unwrap_or("a node");
    match waiting.reason.as_deref() {
        Some("ImagePullBackOff" | "ErrImagePull" | "InvalidImageName" | "ErrImageNeverPull") => {
            format!("cannot pull image {image}: {message}")
        }
        None | Some("ContainerCreating" | "PodInitializing") => format!("its Pod is being started on {node}"),
        Some(reason) => format!("its Pod does not start on {node}: {reason}: {message}"),
    }
}
