//! What each field of the spec does.

use serde_json::{Value, json};

use super::super::{Component, Place};
use super::world::{World, settled};

/// Looks in what comes of these fields for a value.
fn check(more: &str, (place, kind, name): (Place, &str, &str), pointer: &str, expected: Value) {
    let world = settled(more);
    let live = world.find(place, kind, name).unwrap_or_else(|| panic!("{more}: no {kind} {name}"));
    assert_eq!(live.pointer(pointer), Some(&expected), "{more}: {kind} {name}{pointer}");
}

fn workload(component: Component) -> (Place, &'static str, String) {
    let kind = if component == Component::Etcd { "StatefulSet" } else { "Deployment" };
    (Place::Host, kind, format!("k1-{}", component.suffix()))
}

fn container(world: &World, component: Component) -> Value {
    let (place, kind, name) = workload(component);
    world.find(place, kind, &name).unwrap()["spec"]["template"]["spec"]["containers"][0].clone()
}

/// Whether the program of a component gets a flag.
fn has_flag(more: &str, component: Component, flag: &str) -> bool {
    let command = container(&settled(more), component)["command"].clone();
    command.as_array().unwrap().contains(&json!(flag))
}

const API: (Place, &str, &str) = (Place::Host, "Service", "k1-apiserver");
const SCHEDULER: (Place, &str, &str) = (Place::Host, "Deployment", "k1-scheduler");
const ETCD: (Place, &str, &str) = (Place::Host, "StatefulSet", "k1-etcd");
const POD: &str = "/spec/template/spec";

#[test]
fn versions_and_images() {
    let image = |more: &str, component| container(&settled(more), component)["image"].clone();
    let own = "images: {karmada: 'reg.local:5000/k', kubernetes: reg.local/k8s, pullPolicy: Always, pullSecretRefs: [{name: registry}]}";
    assert_eq!(image("", Component::Etcd), "registry.k8s.io/etcd:3.6.6-0");
    assert_eq!(image("", Component::ApiServer), "registry.k8s.io/kube-apiserver:v1.35.2");
    assert_eq!(image("", Component::Webhook), "docker.io/karmada/karmada-webhook:v1.18.2");
    assert_eq!(image(own, Component::Webhook), "reg.local:5000/k/karmada-webhook:v1.18.2");
    assert_eq!(image(own, Component::Etcd), "reg.local/k8s/etcd:3.6.6-0");
    assert_eq!(
        image("scheduler: {version: 1.18.1}", Component::Scheduler),
        "docker.io/karmada/karmada-scheduler:v1.18.1"
    );
    assert_eq!(image("etcd: {local: {version: 3.6.8-0}}", Component::Etcd), "registry.k8s.io/etcd:3.6.8-0");
    assert_eq!(
        image(
            "apiServer: {version: 1.35.4}, kubeControllerManager: {version: 1.34.7}",
            Component::KubeControllerManager
        ),
        "registry.k8s.io/kube-controller-manager:v1.34.7"
    );
    check(own, SCHEDULER, &format!("{POD}/containers/0/imagePullPolicy"), json!("Always"));
    check(own, SCHEDULER, &format!("{POD}/imagePullSecrets"), json!([{ "name": "k1-pull-registry" }]));
    check(own, (Place::Host, "Secret", "k1-pull-registry"), "/type", json!("kubernetes.io/dockerconfigjson"));
}

#[test]
fn every_component_gets_what_its_settings_say() {
    let affinity = "{nodeAffinity: {}}";
    let settings = format!(
        "{{replicas: 3, resources: {{requests: {{cpu: 100m}}, limits: {{memory: 1Gi}}}}, labels: {{team: a}}, annotations: {{note: b}}, affinity: {affinity}, tolerations: [{{key: dedicated, operator: Exists}}], priorityClassName: high, extraArgs: {{v: '4'}}}}"
    );
    for component in Component::ALL {
        let more = match component {
            Component::Etcd => format!("etcd: {{local: {settings}}}"),
            _ => format!("{}: {settings}", component.field()),
        };
        let (place, kind, name) = workload(component);
        let world = settled(&more);
        let live = world.find(place, kind, &name).unwrap();
        let looked_for = [
            ("/spec/replicas", json!(3)),
            ("/spec/template/metadata/labels/team", json!("a")),
            ("/spec/template/metadata/annotations/note", json!("b")),
            ("/spec/template/spec/affinity", json!({ "nodeAffinity": {} })),
            ("/spec/template/spec/tolerations/0/key", json!("dedicated")),
            ("/spec/template/spec/priorityClassName", json!("high")),
            (
                "/spec/template/spec/containers/0/resources",
                json!({ "requests": { "cpu": "100m" }, "limits": { "memory": "1Gi" } }),
            ),
        ];
        for (pointer, expected) in looked_for {
            assert_eq!(live.pointer(pointer), Some(&expected), "{name}{pointer}");
        }
        let command = container(&world, component)["command"].clone();
        assert!(command.as_array().unwrap().contains(&json!("--v=4")), "{name}: {command}");
        assert!(world.find(Place::Host, "PodDisruptionBudget", &name).is_some(), "{name} has a budget");
    }
}

#[test]
fn feature_gates_reach_the_programs_that_have_any() {
    let gates = "featureGates: {Failover: true, PropagateDeps: false}, controllerManager: {featureGates: {PropagateDeps: true}}, descheduler: {}, search: {}, metricsAdapter: {}, apiServer: {featureGates: {MutatingAdmissionPolicy: true}}";
    let world = settled(gates);
    let gates = |component| {
        let command = container(&world, component)["command"].clone();
        let mut flags = command.as_array().unwrap().iter().filter_map(Value::as_str);
        flags.find_map(|flag| flag.strip_prefix("--feature-gates=").map(str::to_owned))
    };
    use Component::*;
    for component in [AggregatedApiServer, Webhook, Scheduler] {
        assert_eq!(gates(component).as_deref(), Some("Failover=true,PropagateDeps=false"), "{component:?}");
    }
    assert_eq!(gates(ControllerManager).as_deref(), Some("Failover=true,PropagateDeps=true"));
    assert_eq!(gates(ApiServer).as_deref(), Some("MutatingAdmissionPolicy=true"));
    for component in [Etcd, KubeControllerManager, Descheduler, Search, MetricsAdapter] {
        assert_eq!(gates(component), None, "{component:?}");
    }
}

#[test]
fn etcd_on_the_host_and_elsewhere() {
    let three = "etcd: {local: {replicas: 3, storage: {className: fast, size: 16Gi}}}";
    check(three, ETCD, "/spec/volumeClaimTemplates/0/spec/storageClassName", json!("fast"));
    check(three, ETCD, "/spec/volumeClaimTemplates/0/spec/resources/requests/storage", json!("16Gi"));
    check("", ETCD, "/spec/volumeClaimTemplates/0/spec/resources/requests/storage", json!("8Gi"));
    assert!(has_flag(three, Component::Etcd, "--initial-cluster=$(INITIAL_CLUSTER)"));
    assert!(has_flag(three, Component::Etcd, "--initial-cluster-state=$(INITIAL_CLUSTER_STATE)"));
    assert!(has_flag("", Component::ApiServer, "--etcd-servers=https://k1-etcd.karmada-system.svc.cluster.local:2379"));

    let external = "etcd: {external: {endpoints: ['https://10.0.0.5:2379', 'https://10.0.0.6:2379'], secretRef: {name: etcd-client}, prefix: /plane}}, search: {}";
    let world = settled(external);
    assert!(world.find(ETCD.0, ETCD.1, ETCD.2).is_none());
    for component in [Component::ApiServer, Component::AggregatedApiServer, Component::Search] {
        let command = container(&world, component)["command"].clone();
        for flag in ["--etcd-servers=https://10.0.0.5:2379,https://10.0.0.6:2379", "--etcd-prefix=/plane"] {
            assert!(command.as_array().unwrap().contains(&json!(flag)), "{component:?}: {flag}");
        }
    }
    assert!(!world.issued.iter().any(|leaf| leaf.stem.contains("etcd")));
}

#[test]
fn how_the_api_server_is_reached() {
    let nodes = "apiServer: {serviceType: NodePort, loadBalancerApiserverIp: 192.0.2.1, nodePort: 30443, serviceAnnotations: {a: b}}";
    check(nodes, API, "/spec/ports/0/nodePort", json!(30443));
    check(nodes, API, "/metadata/annotations/a", json!("b"));
    assert_eq!(settled(nodes).kubeconfig.as_deref(), Some("https://192.0.2.1:30443"));
    let any = "apiServer: {serviceType: NodePort, loadBalancerApiserverIp: 'fd00::1'}";
    assert_eq!(settled(any).kubeconfig.as_deref(), Some("https://[fd00::1]:31443"));
    let balancer =
        "apiServer: {serviceType: LoadBalancer, loadBalancerApiserverIp: 192.0.2.9, loadBalancerClass: example.com/lb}";
    check(balancer, API, "/spec/loadBalancerIP", json!("192.0.2.9"));
    check(balancer, API, "/spec/loadBalancerClass", json!("example.com/lb"));
    assert_eq!(settled(balancer).kubeconfig.as_deref(), Some("https://192.0.2.9:5443"));
    let inside = settled(
        "hostDNSDomain: example.org, apiServer: {serviceSubnet: 10.32.0.0/16, certSANs: [karmada.example.com, 192.0.2.5]}",
    );
    assert_eq!(inside.kubeconfig.as_deref(), Some("https://k1-apiserver.karmada-system.svc.example.org:5443"));
    let leaf = inside.issued.iter().find(|leaf| leaf.stem == "apiserver").unwrap();
    for name in ["karmada.example.com", "kubernetes.default.svc.example.org", "k1-apiserver.karmada-system.svc"] {
        assert!(leaf.dns_names.iter().any(|one| one == name), "{name}: {:?}", leaf.dns_names);
    }
    for address in ["192.0.2.5", "10.32.0.1"] {
        assert!(leaf.addresses.iter().any(|one| one.to_string() == address), "{address}: {:?}", leaf.addresses);
    }
    let subnet = "apiServer: {serviceSubnet: 10.32.0.0/16}";
    assert!(has_flag(subnet, Component::ApiServer, "--service-cluster-ip-range=10.32.0.0/16"));
}

#[test]
fn an_api_server_that_is_stopped_does_not_wait_a_minute_for_those_who_watch_unless_it_is_told_to() {
    let [ours, theirs] = ["true", "false"].map(|value| format!("--shutdown-send-retry-after={value}"));
    for (component, field) in [(Component::ApiServer, "apiServer"), (Component::Search, "search")] {
        assert!(has_flag("search: {}", component, &ours), "{field}");
        let told = settled(&format!("{field}: {{extraArgs: {{shutdown-send-retry-after: 'false'}}}}"));
        let command = container(&told, component)["command"].clone();
        let flags: Vec<String> = serde_json::from_value(command).unwrap();
        assert!(flags.contains(&theirs) && !flags.contains(&ours), "{flags:?}");
    }
}

#[test]
fn what_the_api_servers_pods_have_besides() {
    let more = "apiServer: {extraVolumes: [{name: kms, secret: {secretName: kms}}], extraVolumeMounts: [{name: kms, mountPath: /srv/kms, readOnly: true}], sidecarContainers: [{name: kms, image: 'reg.local/kms:1', args: [--socket, /srv/kms]}]}";
    let server = (Place::Host, "Deployment", "k1-apiserver");
    check(more, server, &format!("{POD}/volumes/2"), json!({ "name": "kms", "secret": { "secretName": "kms" } }));
    let mount = json!({ "name": "kms", "mountPath": "/srv/kms", "readOnly": true });
    check(more, server, &format!("{POD}/containers/0/volumeMounts/2"), mount);
    check(more, server, &format!("{POD}/containers/1/name"), json!("kms"));
    check(more, server, &format!("{POD}/containers/1/image"), json!("reg.local/kms:1"));
    check(more, server, &format!("{POD}/containers/1/args"), json!(["--socket", "/srv/kms"]));
}

#[test]
fn a_plane_in_another_namespace_is_asked_there() {
    let world = settled("hostNamespace: other, hostDNSDomain: example.org, search: {}");
    assert!(world.host.keys().all(|(kind, namespace, _)| kind == "Namespace" || namespace == "other"));
    let service = world.find(Place::Plane, "Service", "karmada-search").unwrap();
    assert_eq!(service["spec"]["externalName"], "k1-search.other.svc.example.org");
    let configuration = world.find(Place::Plane, "MutatingWebhookConfiguration", "mutating-config").unwrap();
    let url = "https://k1-webhook.other.svc:443/mutate-propagationpolicy";
    assert_eq!(configuration["webhooks"][0]["clientConfig"]["url"], url);
    let leaf = world.issued.iter().find(|leaf| leaf.stem == "search").unwrap();
    // By one name the API server verifies the API, by the other one a webhook.
    assert!(leaf.dns_names.contains(&"karmada-search.karmada-system.svc".to_owned()));
    let webhook = world.issued.iter().find(|leaf| leaf.stem == "webhook").unwrap();
    assert!(webhook.dns_names.contains(&"k1-webhook.other.svc".to_owned()));
}

#[test]
fn definitions_that_the_webhook_converts_say_where_it_is_asked() {
    let world = settled("");
    for (key, live) in world.plane.iter().filter(|(key, _)| key.0 == "CustomResourceDefinition") {
        let converted =
            ["resourcebindings.work.karmada.io", "clusterresourcebindings.work.karmada.io"].contains(&key.2.as_str());
        let url = live["spec"]["conversion"]["webhook"]["clientConfig"]["url"].as_str();
        assert_eq!(url, converted.then_some("https://k1-webhook.karmada-system.svc:443/convert"), "{key:?}");
        assert_eq!(live["metadata"]["labels"]["own"], "kept");
    }
}

#[test]
fn the_webhook_is_asked_about_all_that_it_serves_and_every_name_is_its_own() {
    let world = settled("");
    for (kind, name, count) in [
        ("MutatingWebhookConfiguration", "mutating-config", 8),
        ("ValidatingWebhookConfiguration", "validating-config", 14),
    ] {
        let webhooks = world.find(Place::Plane, kind, name).unwrap()["webhooks"].as_array().unwrap().clone();
        let names: std::collections::BTreeSet<&str> =
            webhooks.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!((webhooks.len(), names.len()), (count, count), "{name}");
        assert!(
            webhooks.iter().all(|one| one["failurePolicy"] == "Fail" && one["clientConfig"]["caBundle"].is_string())
        );
    }
}

#[test]
fn every_pod_is_as_the_restricted_standard_has_it() {
    let sidecar = "apiServer: {sidecarContainers: [{name: kms, image: 'reg.local/kms:1'}]}";
    let world = settled(&format!("descheduler: {{}}, search: {{}}, metricsAdapter: {{}}, {sidecar}"));
    for component in Component::ALL {
        let (place, kind, name) = workload(component);
        let pod = world.find(place, kind, &name).unwrap()["spec"]["template"]["spec"].clone();
        assert_eq!(pod["automountServiceAccountToken"], json!(false), "{name}");
        assert_eq!(pod["securityContext"]["runAsNonRoot"], json!(true), "{name}");
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], json!("RuntimeDefault"), "{name}");
        let containers = pod["containers"].as_array().unwrap();
        assert_eq!(containers.len(), if component == Component::ApiServer { 2 } else { 1 }, "{name}");
        for security in containers.iter().map(|container| &container["securityContext"]) {
            assert_eq!(security["allowPrivilegeEscalation"], json!(false), "{name}");
            assert_eq!(security["readOnlyRootFilesystem"], json!(true), "{name}");
            assert_eq!(security["capabilities"]["drop"], json!(["ALL"]), "{name}");
        }
        let volumes = pod["volumes"].as_array().unwrap();
        assert!(volumes.iter().all(|volume| volume["hostPath"].is_null()), "{name}");
        // Below 1024 it would need a capability.
        let ports = pod["containers"][0]["ports"].as_array().unwrap();
        assert!(ports.iter().all(|port| port["containerPort"].as_i64() > Some(1023)), "{name}");
    }
}

#[test]
fn what_serves_an_api_is_not_waited_for_until_the_last_watch_ends() {
    let world = settled("descheduler: {}, search: {}, metricsAdapter: {}");
    let mut brief = Vec::new();
    for component in Component::ALL {
        let (place, kind, name) = workload(component);
        let pod = &world.find(place, kind, &name).unwrap()["spec"]["template"]["spec"];
        if let Some(seconds) = pod["terminationGracePeriodSeconds"].as_i64() {
            assert_eq!(seconds, 10, "{name}");
            brief.push(component.name());
        }
    }
    assert_eq!(brief, ["kube-apiserver", "karmada-aggregated-apiserver", "karmada-search", "karmada-metrics-adapter"]);
}
