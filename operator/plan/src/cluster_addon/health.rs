//! Whether an object is healthy, by what it says itself: the conventions of kstatus.

use serde_json::Value;

/// How an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// As it is wanted.
    Healthy,
    /// Not yet; why.
    Progressing(String),
    /// It says that it has failed; why.
    Failed(String),
}

use Health::{Failed, Healthy, Progressing};

/// How an object is, by its status alone.
pub fn health(object: &Value) -> Health {
    if object["metadata"]["deletionTimestamp"].is_string() {
        return Progressing("it is being deleted".into());
    }
    let (generation, observed) = (&object["metadata"]["generation"], &object["status"]["observedGeneration"]);
    if let (Some(generation), Some(observed)) = (generation.as_i64(), observed.as_i64())
        && observed < generation
    {
        return Progressing(format!("its controller has seen generation {observed} of {generation}"));
    }
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    match (group, object["kind"].as_str().unwrap_or_default()) {
        ("apps", "Deployment") => deployment(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("apps", "ReplicaSet") => replica_set(object),
        ("batch", "Job") => job(object),
        ("", "Pod") => pod(object),
        ("", "PersistentVolumeClaim") => phase_is(object, "Bound"),
        ("", "Service") => service(object),
        ("policy", "PodDisruptionBudget") => budget(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        ("apiregistration.k8s.io", "APIService") => needs(object, "Available"),
        _ => by_conditions(object),
    }
}

/// Status and message of a condition.
fn condition<'a>(object: &'a Value, type_: &str) -> Option<(&'a str, String)> {
    let mut conditions = object["status"]["conditions"].as_array()?.iter();
    let condition = conditions.find(|condition| condition["type"] == type_)?;
    let text = |field: &str| condition[field].as_str().unwrap_or_default();
    let why = match (text("reason"), text("message")) {
        ("", "") => format!("{type_} is {}", text("status")),
        (reason, "") => format!("{type_} is {}: {reason}", text("status")),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    };
    Some((text("status"), why))
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

fn replicas(object: &Value) -> i64 {
    object["spec"]["replicas"].as_i64().unwrap_or(1)
}

/// The first of these counts that is short of what is wanted.
fn short(object: &Value, wanted: i64, counts: &[(&str, &str)]) -> Option<Health> {
    counts.iter().find_map(|(field, what)| {
        let there = number(object, &format!("/status/{field}"));
        (there < wanted).then(|| Progressing(format!("{there} of {wanted} {what}")))
    })
}

fn deployment(object: &Value) -> Health {
    if let Some((_, why)) = condition(object, "Progressing")
        && why.starts_with("ProgressDeadlineExceeded")
    {
        return Failed(why);
    }
    let wanted = replicas(object);
    let counts = [("replicas", "replicas are made"), ("updatedReplicas", "replicas are updated")];
    if let Some(short) = short(object, wanted, &counts) {
        return short;
    }
    let (there, updated) = (number(object, "/status/replicas"), number(object, "/status/updatedReplicas"));
    if there > updated {
        return Progressing(format!("{} old replicas are still to end", there - updated));
    }
    let counts = [("availableReplicas", "replicas are available"), ("readyReplicas", "replicas are ready")];
    short(object, wanted, &counts).unwrap_or(Healthy)
}

fn stateful_set(object: &Value) -> Health {
    if object["spec"]["updateStrategy"]["type"] == "OnDelete" {
        return Healthy;
    }
    let wanted = replicas(object);
    if let Some(short) =
        short(object, wanted, &[("replicas", "replicas are made"), ("readyReplicas", "replicas are ready")])
    {
        return short;
    }
    let there = number(object, "/status/replicas");
    if there > wanted {
        return Progressing(format!("{} replicas are still to end", there - wanted));
    }
    let partition = number(object, "/spec/updateStrategy/rollingUpdate/partition");
    if partition > 0 {
        return short(object, wanted - partition, &[("updatedReplicas", "replicas are updated")]).unwrap_or(Healthy);
    }
    let (current, update) = (&object["status"]["currentRevision"], &object["status"]["updateRevision"]);
    match current == update {
        true => Healthy,
        false => short(object, wanted, &[("updatedReplicas", "replicas are updated")])
            .unwrap_or_else(|| Progressing("its revision is being updated".into())),
    }
}

fn daemon_set(object: &Value) -> Health {
    if object["status"]["observedGeneration"].is_null() {
        return Progressing("its controller has not seen it yet".into());
    }
    let counts = [
        ("currentNumberScheduled", "Pods are scheduled"),
        ("updatedNumberScheduled", "Pods are updated"),
        ("numberAvailable", "Pods are available"),
        ("numberReady", "Pods are ready"),
    ];
    short(object, number(object, "/status/desiredNumberScheduled"), &counts).unwrap_or(Healthy)
}

fn replica_set(object: &Value) -> Health {
    if let Some(("True", why)) = condition(object, "ReplicaFailure") {
        return Progressing(why);
    }
    let counts = [
        ("fullyLabeledReplicas", "replicas have their labels"),
        ("availableReplicas", "replicas are available"),
        ("readyReplicas", "replicas are ready"),
    ];
    short(object, replicas(object), &counts).unwrap_or(Healthy)
}

/// One that is suspended waits for whoever has done that.
fn job(object: &Value) -> Health {
    match (condition(object, "Failed"), condition(object, "Complete")) {
        (Some(("True", why)), _) => Failed(why),
        (_, Some(("True", _))) => Healthy,
        _ if object["spec"]["suspend"] == true => Healthy,
        _ => Progressing(format!("{} Pods are active, it is not complete", number(object, "/status/active"))),
    }
}

fn pod(object: &Value) -> Health {
    let statuses = object["status"]["containerStatuses"].as_array().into_iter().flatten();
    let mut waiting = statuses.filter_map(|container| container["state"]["waiting"]["reason"].as_str());
    if waiting.any(|reason| reason == "CrashLoopBackOff") {
        return Failed("a container of it crashes again and again (CrashLoopBackOff)".into());
    }
    match object["status"]["phase"].as_str().unwrap_or("Pending") {
        "Succeeded" => Healthy,
        "Failed" => Failed("its phase is Failed".into()),
        "Running" => needs(object, "Ready"),
        phase => match condition(object, "PodScheduled") {
            Some(("False", why)) => Progressing(why),
            _ => Progressing(format!("its phase is {phase}")),
        },
    }
}

fn phase_is(object: &Value, wanted: &str) -> Health {
    match object["status"]["phase"].as_str() {
        Some(phase) if phase == wanted => Healthy,
        phase => Progressing(format!("its phase is {}, not {wanted}", phase.unwrap_or("unknown"))),
    }
}

fn service(object: &Value) -> Health {
    let has_address = object["status"]["loadBalancer"]["ingress"].as_array().is_some_and(|list| !list.is_empty());
    match object["spec"]["type"] == "LoadBalancer" && !has_address {
        true => Progressing("its load balancer has no address yet".into()),
        false => Healthy,
    }
}

fn budget(object: &Value) -> Health {
    let (there, wanted) = (number(object, "/status/currentHealthy"), number(object, "/status/desiredHealthy"));
    match there < wanted {
        true => Progressing(format!("{there} of {wanted} Pods are healthy")),
        false => Healthy,
    }
}

fn definition(object: &Value) -> Health {
    match condition(object, "NamesAccepted") {
        Some(("False", why)) => Failed(why),
        _ => needs(object, "Established"),
    }
}

fn needs(object: &Value, type_: &str) -> Health {
    match condition(object, type_) {
        Some(("True", _)) => Healthy,
        Some((_, why)) => Progressing(why),
        None => Progressing(format!("it has no condition {type_} yet")),
    }
}

/// Of any kind: what most controllers write.
fn by_conditions(object: &Value) -> Health {
    match (condition(object, "Stalled"), condition(object, "Reconciling"), condition(object, "Ready")) {
        (Some(("True", why)), ..) => Failed(why),
        (_, Some(("True", why)), _) => Progressing(why),
        (.., Some(("False" | "Unknown", why))) => Progressing(why),
        _ => Healthy,
    }
}

#[cfg(test)]
mod tests;
