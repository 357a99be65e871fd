//! Pull: an agent in the member reads the plane's API. Its certificate is of a user of its own, whose rights end at the
//! namespaces of its member; it can make no Cluster, so that one that is started again after its member has left does
//! not bring it back.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::KarmadaDeployment;
use serde_json::{Value, json};

use super::super::leaves::LeafWanted;
use super::super::material::{Material, PULL_SECRET_KEY, pull_secret};
use super::super::names::{MEMBERS_NAMESPACE, PLANE_NAMESPACE};
use super::super::restoring::set_back_as;
use super::action::Place;
use super::agents::{AGENT, version};
use super::cluster::cluster;
use super::leaf::Certificate;
use super::manifest::{Stage, Wanted, all_rights, metadata, namespace, role};
use super::observed::Facts;
use super::target::Target;
use crate::naming::short_hash;
use crate::rotation::Subject;

/// The namespace of the agent in the member. The name is Karmada's.
pub(super) const AGENT_NAMESPACE: &str = "karmada-system";
const ACCOUNT: &str = "karmada-agent-sa";
/// The Secret with the agent's kubeconfig, and its key.
const KUBECONFIG: &str = "karmada-kubeconfig";
const HEALTH_PORT: u16 = 10357;
const METRICS_PORT: u16 = 8080;

/// The certificate of a member's agent.
pub(super) fn leaf(member: &str) -> LeafWanted {
    LeafWanted {
        stem: "agent".to_owned(),
        signer: Subject::Ca,
        common_name: user(member),
        organization: Some("system:karmada:agents"),
        dns_names: Vec::new(),
        addresses: Vec::new(),
        serves: false,
    }
}

/// The namespace of a member's Works in the plane.
pub fn works_namespace(member: &str) -> String {
    format!("karmada-es-{member}")
}

fn user(member: &str) -> String {
    format!("system:karmada:agent:{member}")
}

pub(super) fn wanted(
    object: &KarmadaDeployment,
    material: &Material,
    target: &Target,
    facts: &Facts,
    agent: &Certificate,
) -> Vec<Wanted> {
    let mut wanted: Vec<Wanted> =
        rights(object, target).into_iter().map(|manifest| Wanted::new(Stage::Access, Place::Plane, manifest)).collect();
    wanted.push(Wanted::new(Stage::Cluster, Place::Plane, cluster(object, target, facts)));
    if let Some(kubeconfig) = kubeconfig(object, material, agent) {
        let in_member = in_member(object, material, target, facts, &kubeconfig);
        wanted.extend(in_member.into_iter().map(|manifest| Wanted::new(Stage::Agent, Place::Member, manifest)));
    }
    wanted
}

/// What the agent may do in the plane.
fn rights(object: &KarmadaDeployment, target: &Target) -> Vec<Value> {
    let (member, works) = (&target.name, works_namespace(&target.name));
    let subject = || json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user(member) });
    let rule = |group: &str, resources: &[&str], names: Option<&str>, verbs: &[&str]| {
        let mut rule = json!({ "apiGroups": [group], "resources": resources, "verbs": verbs });
        if let Some(name) = names {
            rule["resourceNames"] = json!([name]);
        }
        rule
    };
    let read = ["get", "list", "watch"];
    let interpreters = ["resourceinterpretercustomizations", "resourceinterpreterwebhookconfigurations"];
    let of_all = json!([
        rule("cluster.karmada.io", &["clusters"], None, &read),
        rule("cluster.karmada.io", &["clusters/status"], Some(member), &["patch", "update"]),
        rule("config.karmada.io", &interpreters, None, &read),
        rule("", &["namespaces"], None, &["get"]),
        rule("", &["services"], None, &["list", "watch"]),
    ]);
    let works_rules = json!([
        rule("work.karmada.io", &["works"], None, &["get", "list", "watch", "create", "update", "delete"]),
        rule("work.karmada.io", &["works/status"], None, &["patch", "update"]),
        rule("", &["events"], None, &["create", "patch", "update"]),
    ]);
    let lease = |name: &str| {
        json!([
            rule("coordination.k8s.io", &["leases"], Some(name), &["get", "update"]),
            rule("coordination.k8s.io", &["leases"], None, &["create"]),
        ])
    };
    let name = |suffix: &str| format!("system:karmada:{member}:{suffix}");
    let (leader, heart) = (format!("{AGENT}-{member}"), member.as_str());
    let mut objects = vec![namespace(object, target, &works)];
    objects.extend(role(object, target, (&name("agent"), None), of_all, subject()));
    objects.extend(role(object, target, (&name("agent-work"), Some(&works)), works_rules, subject()));
    objects.extend(role(object, target, (&name("agent-lease"), Some(MEMBERS_NAMESPACE)), lease(heart), subject()));
    objects.extend(role(object, target, (&name("agent-leader"), Some(PLANE_NAMESPACE)), lease(&leader), subject()));
    objects
}

/// The agent's kubeconfig; `None`: its certificate or the plane's endpoint is not there yet. JSON is YAML.
fn kubeconfig(object: &KarmadaDeployment, material: &Material, agent: &Certificate) -> Option<String> {
    let server = object.status.as_ref()?.endpoint.as_ref()?;
    let files = agent.files.as_ref()?;
    let file = |name: &str| files.get(name).map(|content| STANDARD.encode(content));
    let authorities = STANDARD.encode(material.keys.as_ref()?.get("ca.crt")?);
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "plane",
        "clusters": [{ "name": "plane", "cluster": { "server": server, "certificate-authority-data": authorities } }],
        "contexts": [{ "name": "plane", "context": { "cluster": "plane", "user": AGENT } }],
        "users": [{ "name": AGENT, "user": {
            "client-certificate-data": file("agent.crt")?, "client-key-data": file("agent.key")?,
        } }],
    });
    Some(kubeconfig.to_string())
}

fn in_member(
    object: &KarmadaDeployment,
    material: &Material,
    target: &Target,
    facts: &Facts,
    kubeconfig: &str,
) -> Vec<Value> {
    let place = |name: &str| metadata(object, target, name, Some(AGENT_NAMESPACE));
    let secret = |name: &str, type_: &str, data: Value| json!({ "apiVersion": "v1", "kind": "Secret", "type": type_, "metadata": place(name), "data": data });
    let subject = json!({ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": AGENT_NAMESPACE });
    let mut objects = vec![
        namespace(object, target, AGENT_NAMESPACE),
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": place(ACCOUNT) }),
    ];
    objects.extend(role(object, target, (AGENT, None), all_rights(), subject));
    objects.push(secret(KUBECONFIG, "Opaque", json!({ (KUBECONFIG): STANDARD.encode(kubeconfig) })));
    let mut pull = Vec::new();
    for reference in &object.spec.images.pull_secret_refs {
        let content = material.secrets.get(&reference.name).and_then(|secret| secret.get(PULL_SECRET_KEY));
        let Some(content) = content else { continue };
        let name = pull_secret(object, &reference.name);
        let data = json!({ (PULL_SECRET_KEY): STANDARD.encode(content) });
        objects.push(secret(&name, "kubernetes.io/dockerconfigjson", data));
        pull.push(json!({ "name": name }));
    }
    // What it was started with is not read again: another kubeconfig rolls it. So does a plane that was set back in its
    // place, once it lets agents in: one that was refused meanwhile is started again minutes later.
    let digest = short_hash(&[kubeconfig].into_iter().chain(set_back_as(object)).collect::<Vec<_>>(), 16);
    let template = json!({
        "metadata": {
            "labels": { "app.kubernetes.io/name": AGENT },
            "annotations": { (crds::names::annotation::FILES): digest },
        },
        "spec": {
            "serviceAccountName": ACCOUNT,
            "imagePullSecrets": pull,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [container(object, target, facts)],
            "volumes": [{ "name": "kubeconfig", "secret": { "secretName": KUBECONFIG, "defaultMode": 0o440 } }],
        },
    });
    objects.push(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": place(AGENT),
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app.kubernetes.io/name": AGENT } },
            "template": template,
        },
    }));
    objects
}

fn container(object: &KarmadaDeployment, target: &Target, facts: &Facts) -> Value {
    let spec = &object.spec;
    let probe =
        json!({ "httpGet": { "path": "/healthz", "port": HEALTH_PORT }, "periodSeconds": 10, "timeoutSeconds": 5 });
    json!({
        "name": AGENT,
        "image": format!("{}/{AGENT}:v{}", spec.images.karmada.0, version(object)),
        "imagePullPolicy": spec.images.pull_policy.as_str(),
        "command": command(object, target, facts),
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": { "drop": ["ALL"] },
        },
        "ports": [
            { "name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP" },
            { "name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP" },
        ],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "volumeMounts": [{ "name": "kubeconfig", "mountPath": "/etc/kubeconfig", "readOnly": true }],
    })
}

/// The agent says of its Cluster what stands there already, so that it has nothing to write; the plane is given no
/// token of the member.
fn command(object: &KarmadaDeployment, target: &Target, facts: &Facts) -> Vec<String> {
    let mut flags = vec![
        ("karmada-kubeconfig", format!("/etc/kubeconfig/{KUBECONFIG}")),
        ("cluster-name", target.name.clone()),
        ("cluster-api-endpoint", facts.server.clone()),
        ("cluster-namespace", MEMBERS_NAMESPACE.to_owned()),
        ("leader-elect-resource-namespace", PLANE_NAMESPACE.to_owned()),
        ("report-secrets", "None".to_owned()),
        ("health-probe-bind-address", format!(":{HEALTH_PORT}")),
        ("metrics-bind-address", format!(":{METRICS_PORT}")),
    ];
    if let Some(named) = &target.named {
        let texts =
            [("cluster-provider", &named.provider), ("cluster-region", &named.region), ("cluster-zones", &named.zone)];
        flags.extend(texts.into_iter().filter_map(|(flag, value)| Some((flag, value.clone()?))));
    }
    if !object.spec.feature_gates.is_empty() {
        let gates: Vec<String> =
            object.spec.feature_gates.iter().map(|(gate, is_on)| format!("{gate}={is_on}")).collect();
        flags.push(("feature-gates", gates.join(",")));
    }
    let program = [format!("/bin/{AGENT}")];
    program.into_iter().chain(flags.iter().map(|(flag, value)| format!("--{flag}={value}"))).collect()
}
