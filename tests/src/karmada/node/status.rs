//! What is said of a Pod whose program runs, or ends again and again.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

/// How the program of a Pod is.
#[derive(Clone, Default)]
pub struct Process {
    pub is_ready: bool,
    /// How often it was started again.
    pub restarts: i32,
    /// Whether it runs no more.
    pub has_ended: bool,
    /// With what it has ended last; none: it never has.
    pub exit: Option<i32>,
}

/// The status of a Pod.
pub fn status(pod: &Pod, process: &Process, address: Ipv4Addr) -> Value {
    let container = pod.spec.as_ref().and_then(|spec| spec.containers.first()).cloned().unwrap_or_default();
    let is_true = |holds: bool| if holds { "True" } else { "False" };
    let since = &pod.metadata.creation_timestamp;
    let condition =
        |type_: &str, holds: bool| json!({"type": type_, "status": is_true(holds), "lastTransitionTime": since});
    let state = match process.has_ended {
        true => json!({"waiting": {"reason": "CrashLoopBackOff", "message": "its program ends again and again"}}),
        false => json!({"running": {"startedAt": since}}),
    };
    let last = process.exit.map(|code| json!({"terminated": {"exitCode": code, "reason": "Error"}}));
    json!({ "status": {
        "phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "startTime": since,
        "conditions": [
            condition("PodScheduled", true), condition("Initialized", true),
            condition("ContainersReady", process.is_ready), condition("Ready", process.is_ready),
        ],
        "containerStatuses": [{
            "name": container.name, "image": container.image, "imageID": "", "ready": process.is_ready,
            "started": process.is_ready, "restartCount": process.restarts, "state": state, "lastState": last,
        }],
    } })
}
