//! Pods of a plane: without root, without a capability, on a root file system that nobody writes, and without a token
//! of the host cluster.

use crds::karmada_deployment::{PodSettings, Resources};
use crds::names::{annotation, label};
use crds::{KarmadaDeployment, ObjectExt};
use serde_json::{Value, json};

use super::component::Component;
pub(super) use super::confinement::{confined, security};
use super::files::{DIRECTORY, File, digest, volume};
use super::material::pull_secret;
use super::names::{labels, pod_selector};
use super::sidecars;
use super::token_restart::restarted_at;

/// What a program that serves an API has to answer what it was asked, in seconds. Watches that are open end no sooner:
/// it waits for them until it is killed.
const TO_ANSWER: i64 = 10;

/// How a container is asked whether it works.
pub(super) struct Probe {
    pub ready: &'static str,
    pub live: &'static str,
    pub port: u16,
    pub scheme: &'static str,
    /// A port that it opens once it works, whatever it says of itself before; none: it is ready when `ready` says so.
    pub opens: Option<u16>,
}

/// What a component runs.
pub(super) struct Container {
    pub command: Vec<String>,
    pub probe: Probe,
    /// Names and numbers of the ports that it listens at.
    pub ports: Vec<(&'static str, u16)>,
    /// Mounts beside the files and `/tmp`.
    pub mounts: Vec<Value>,
    pub env: Vec<Value>,
}

/// The template of a component's Pods, in this version, with the files of this Secret.
pub(super) fn template(
    object: &KarmadaDeployment,
    (component, version): (Component, &str),
    (secret, files): (&str, &[File]),
    container: &Container,
) -> Value {
    let pod = component.pod(&object.spec);
    let own = main_container(object, (component, version), container, &pod.resources);
    let containers: Vec<Value> = [own].into_iter().chain(sidecars::containers(object, component)).collect();
    let own = [volume(secret, files), json!({ "name": "tmp", "emptyDir": {} })];
    let volumes: Vec<Value> = own.into_iter().chain(sidecars::volumes(object, component)).collect();
    let mut template = json!({
        "metadata": { "labels": pod_labels(object, component, &pod), "annotations": annotations(object, component, &pod, files) },
        "spec": {
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "securityContext": security(),
            "affinity": affinity(object, component, &pod),
            "tolerations": pod.tolerations,
            "imagePullSecrets": pull_secret_refs(object),
            "containers": containers,
            "volumes": volumes,
        },
    });
    if let Some(class) = &pod.priority_class_name {
        template["spec"]["priorityClassName"] = json!(class);
    }
    if component.serves_api() {
        template["spec"]["terminationGracePeriodSeconds"] = json!(TO_ANSWER);
    }
    template
}

/// The Secrets with which images are pulled.
pub(super) fn pull_secret_refs(object: &KarmadaDeployment) -> Vec<Value> {
    let references = object.spec.images.pull_secret_refs.iter();
    references.map(|secret| json!({ "name": pull_secret(object, &secret.name) })).collect()
}

fn main_container(
    object: &KarmadaDeployment,
    (component, version): (Component, &str),
    container: &Container,
    resources: &Resources,
) -> Value {
    let mounts = [
        json!({ "name": "files", "mountPath": DIRECTORY, "readOnly": true }),
        json!({ "name": "tmp", "mountPath": "/tmp" }),
    ];
    let mounts: Vec<Value> = mounts.into_iter().chain(container.mounts.iter().cloned()).collect();
    let port = |(name, port): &(&str, u16)| json!({ "name": name, "containerPort": port, "protocol": "TCP" });
    let ports: Vec<Value> = container.ports.iter().map(port).collect();
    // The file of this program has the capability, and is not executed where it cannot be had.
    let added = if component == Component::ApiServer { vec!["NET_BIND_SERVICE"] } else { Vec::new() };
    let Probe { ready, live, port, scheme, opens } = container.probe;
    let probe = |path: &str, period: i32, failures: i32| {
        json!({
            "httpGet": { "path": path, "port": port, "scheme": scheme },
            "periodSeconds": period, "failureThreshold": failures, "timeoutSeconds": 5,
        })
    };
    let readiness = match opens {
        None => probe(ready, 5, 3),
        Some(port) => {
            json!({ "tcpSocket": { "port": port }, "periodSeconds": 5, "failureThreshold": 3, "timeoutSeconds": 5 })
        }
    };
    json!({
        "name": component.name(),
        "image": component.image(&object.spec, version),
        "imagePullPolicy": object.spec.images.pull_policy.as_str(),
        "command": container.command,
        "env": container.env,
        "ports": ports,
        "resources": resources,
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"], "add": added },
        },
        "startupProbe": probe(live, 2, 150),
        "livenessProbe": probe(live, 10, 3),
        "readinessProbe": readiness,
        "volumeMounts": mounts,
    })
}

fn pod_labels(object: &KarmadaDeployment, component: Component, pod: &PodSettings) -> Value {
    let mut all = json!(pod.labels);
    for more in [labels(object), pod_selector(object, component)] {
        for (key, value) in more.as_object().into_iter().flatten() {
            all[key] = value.clone();
        }
    }
    all
}

fn annotations(object: &KarmadaDeployment, component: Component, pod: &PodSettings, files: &[File]) -> Value {
    let mut all = json!(pod.annotations);
    all[annotation::FILES] = json!(digest(files));
    if let Some(at) = restarted_at(object, component) {
        all[annotation::RESTARTED_AT] = json!(at.to_string());
    }
    all
}

fn affinity(object: &KarmadaDeployment, component: Component, pod: &PodSettings) -> Value {
    if !pod.affinity.is_empty() {
        return json!(pod.affinity);
    }
    json!({ "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 100,
        "podAffinityTerm": {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": { "matchLabels": pod_selector(object, component) },
        },
    }] } })
}

/// Why a Pod of a component does not run, as the first one says that has something to say: the image that cannot be
/// pulled, the program that ends, the node that is not found.
pub(super) fn trouble(pods: &[Value], object: &KarmadaDeployment, component: Component) -> Option<String> {
    first_trouble(pods.iter().filter(|pod| is_of(pod, object, component)))
}

/// The same of these Pods.
pub(super) fn first_trouble<'a>(mut pods: impl Iterator<Item = &'a Value>) -> Option<String> {
    pods.find_map(|pod| {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        Some(format!("Pod {name}: {}", container_trouble(pod).or_else(|| not_scheduled(pod))?))
    })
}

fn container_trouble(pod: &Value) -> Option<String> {
    let mut statuses = pod["status"]["containerStatuses"].as_array()?.iter();
    statuses.find_map(|status| {
        let waiting = &status["state"]["waiting"];
        let reason = waiting["reason"].as_str().filter(|reason| !STARTING.contains(reason))?;
        let image = status["image"].as_str().unwrap_or_default();
        let ended = status["lastState"]["terminated"]["exitCode"].as_i64();
        let ended = ended.map(|code| format!(", its program ended with {code}")).unwrap_or_default();
        let why = waiting["message"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
        Some(format!("{reason} of {image}{ended}{why}"))
    })
}

/// What every Pod says on its way.
const STARTING: [&str; 2] = ["ContainerCreating", "PodInitializing"];

fn not_scheduled(pod: &Value) -> Option<String> {
    let mut conditions = pod["status"]["conditions"].as_array()?.iter();
    let condition = conditions.find(|one| one["type"] == "PodScheduled" && one["status"] == "False")?;
    let text = |field: &str| condition[field].as_str().unwrap_or_default();
    Some(format!("{}: {}", text("reason"), text("message")))
}

/// Whether a Pod is one of a component.
pub(super) fn is_of(pod: &Value, object: &KarmadaDeployment, component: Component) -> bool {
    let labels = &pod["metadata"]["labels"];
    labels["app.kubernetes.io/name"] == component.name() && labels[label::KARMADA_UID] == object.uid()
}

/// The Deployment of a component, in other words: all but etcd's.
pub(super) fn deployment(
    metadata: Value,
    object: &KarmadaDeployment,
    component: Component,
    pods: (i32, Value),
) -> Value {
    let (replicas, template) = pods;
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": pod_selector(object, component) },
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 0, "maxSurge": 1 } },
            "template": template,
        },
    })
}
