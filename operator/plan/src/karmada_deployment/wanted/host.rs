//! What the plane runs as on the host cluster.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::KarmadaDeployment;
use crds::karmada_deployment::ServiceType;
use crds::names::annotation;
use serde_json::{Value, json};

use super::super::component::Component;
use super::super::endpoint::PORT;
use super::super::etcd::{ETCD_PORTS, EtcdSize, NO_CLUSTER, claims, initial_cluster, size, told_volumes};
use super::super::files::{files, secret};
use super::super::material::{Material, PULL_SECRET_KEY, pull_secret};
use super::super::names::{component_name, etcd_peers, host_metadata, pod_selector};
use super::super::observed::HostFacts;
use super::super::place::{Hold, Stage, Wanted};
use super::super::pod::{deployment, template};
use super::super::programs::{INITIAL, SERVING_PORT, container};
use super::super::release::Release;
use super::super::upgrade::Due;
use super::super::volume::claim;
use super::namespaces::namespace;

/// The namespace and the Services: they need no keys, and certificates are for their names.
pub(super) fn foundation(object: &KarmadaDeployment) -> Vec<Wanted> {
    let spec = &object.spec;
    let mut objects = vec![namespace(object, &spec.host_namespace), api_server_service(object)];
    if spec.etcd.external.is_none() {
        let ports = ETCD_PORTS.map(|(name, number)| port(name, number, number));
        let clients = component_name(object, Component::Etcd);
        objects.push(service(object, Component::Etcd, &clients, json!({ "ports": ports[..1] })));
        // Members find each other before they are ready.
        let peers = json!({ "ports": ports[..2], "clusterIP": "None", "publishNotReadyAddresses": true });
        objects.push(service(object, Component::Etcd, &etcd_peers(object), peers));
    }
    let wanted = |component: &Component| component.serves_plane() && component.replicas(spec).is_some();
    for component in Component::ALL.into_iter().filter(wanted) {
        let ports = json!({ "ports": [port("https", 443, SERVING_PORT)] });
        objects.push(service(object, component, &component_name(object, component), ports));
    }
    objects.into_iter().map(|manifest| Wanted::on_host(Stage::Foundation, manifest)).collect()
}

/// Secrets, workloads and budgets of all components; none: a file of one is not there yet.
pub(super) fn components(
    object: &KarmadaDeployment,
    release: &Release,
    (material, facts): (&Material, &HostFacts),
    due: impl Fn(Component) -> Due,
) -> Option<Vec<Wanted>> {
    let mut wanted = Vec::new();
    let etcd = size(object, facts);
    for component in Component::ALL {
        let Some(replicas) = component.replicas(&object.spec) else { continue };
        let replicas = if component == Component::Etcd { etcd.replicas } else { replicas };
        let (version, pods, hold) = match due(component) {
            Due::Now => (component.version(&object.spec, release), replicas, Hold::Free),
            Due::Kept(version) => (version, replicas, Hold::Kept),
            Due::Stopped(version) => (version, 0, Hold::Free),
            Due::Later => continue,
        };
        let files = files(object, material, component)?;
        let name = component_name(object, component);
        let mut secret = secret(host_metadata(object, &name), &files);
        let mut container = container(object, release, component);
        if component == Component::Etcd {
            container.mounts = vec![json!({ "name": claims(object, facts), "mountPath": "/var/lib/etcd" })];
        }
        let template = template(object, (component, &version), (&name, &files), &container);
        let mut workload = workload((object, facts), (component, &version), pods, template);
        if component == Component::Etcd {
            tell_members((object, facts), &etcd, &mut secret, &mut workload);
        }
        wanted.push(Wanted::on_host(Stage::Foundation, secret));
        wanted.push(Wanted::on_host(component.stage(), workload).held(hold));
        if replicas > 1 {
            wanted.push(Wanted::on_host(Stage::Foundation, budget(object, component)));
        }
    }
    Some(wanted)
}

/// The initial cluster of a member of etcd without data, how many members there are, and which their volumes are.
fn tell_members(
    (object, facts): (&KarmadaDeployment, &HostFacts),
    etcd: &EtcdSize,
    secret: &mut Value,
    workload: &mut Value,
) {
    let initial = match etcd.initial.is_empty() {
        true => NO_CLUSTER.to_owned(),
        false => initial_cluster(object, etcd.initial.iter().copied()),
    };
    let told = [initial, etcd.initial_state().to_owned()];
    for ((_, key), value) in INITIAL.into_iter().zip(told) {
        secret["data"][key] = json!(STANDARD.encode(value));
    }
    if let Some(members) = etcd.members {
        let annotations = &mut workload["metadata"]["annotations"];
        annotations[annotation::ETCD_MEMBERS] = json!(members.to_string());
        if let Some(volumes) = told_volumes(object, facts, members) {
            annotations[annotation::ETCD_VOLUMES] = json!(volumes);
        }
    }
}

/// Copies of the Secrets with which images are pulled.
pub(super) fn pull_secrets(object: &KarmadaDeployment, material: &Material) -> Vec<Wanted> {
    let copy = |name: &String| {
        let content = material.secrets.get(name)?.get(PULL_SECRET_KEY)?;
        let manifest = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": host_metadata(object, &pull_secret(object, name)),
            "data": { (PULL_SECRET_KEY): STANDARD.encode(content) },
        });
        Some(Wanted::on_host(Stage::Foundation, manifest))
    };
    object.spec.images.pull_secret_refs.iter().filter_map(|reference| copy(&reference.name)).collect()
}

fn port(name: &str, port: u16, target: u16) -> Value {
    json!({ "name": name, "port": port, "targetPort": target, "protocol": "TCP" })
}

fn service(object: &KarmadaDeployment, component: Component, name: &str, more: Value) -> Value {
    let mut spec = more;
    spec["selector"] = pod_selector(object, component);
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": host_metadata(object, name), "spec": spec })
}

fn api_server_service(object: &KarmadaDeployment) -> Value {
    let wanted = &object.spec.api_server;
    let mut port = port("https", PORT, PORT);
    if let Some(number) = wanted.node_port {
        port["nodePort"] = json!(number);
    }
    let mut spec = json!({ "type": wanted.service_type.as_str(), "ports": [port] });
    if wanted.service_type == ServiceType::LoadBalancer {
        if let Some(address) = &wanted.load_balancer_apiserver_ip {
            spec["loadBalancerIP"] = json!(address);
        }
        if let Some(class) = &wanted.load_balancer_class {
            spec["loadBalancerClass"] = json!(class);
        }
    }
    let name = component_name(object, Component::ApiServer);
    let mut service = service(object, Component::ApiServer, &name, spec);
    service["metadata"]["annotations"] = json!(wanted.service_annotations);
    service
}

fn budget(object: &KarmadaDeployment, component: Component) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": host_metadata(object, &component_name(object, component)),
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": pod_selector(object, component) } },
    })
}

/// The workload of a component, which says which version it is.
fn workload(
    (object, facts): (&KarmadaDeployment, &HostFacts),
    (component, version): (Component, &str),
    replicas: i32,
    template: Value,
) -> Value {
    let mut metadata = host_metadata(object, &component_name(object, component));
    metadata["annotations"] = json!({ (annotation::VERSION): version });
    let Some(local) = object.spec.etcd.local().filter(|_| component == Component::Etcd) else {
        return deployment(metadata, object, component, (replicas, template));
    };
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": metadata,
        "spec": {
            "replicas": replicas,
            "serviceName": etcd_peers(object),
            "podManagementPolicy": "Parallel",
            "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Retain", "whenScaled": "Retain" },
            "selector": { "matchLabels": pod_selector(object, component) },
            "template": template,
            "volumeClaimTemplates": [{
                "metadata": { "name": claims(object, facts), "labels": pod_selector(object, component) },
                "spec": claim(&local.storage),
            }],
        },
    })
}
