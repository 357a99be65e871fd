//! How each component is started: its flags, its ports, and how it says that it works.

use crds::KarmadaDeployment;
use serde_json::{Value, json};

use super::component::Component;
use super::endpoint::PORT;
use super::etcd::ETCD_PORTS;
use super::files::{POLICY_FILE, path};
use super::leaves::ESTIMATOR_CLIENT;
use super::names::{component_name, estimator_prefix, etcd_peers, full_host_name};
use super::pod::{Container, Probe};
use super::release::Release;
use super::restoring::is_closed;
use super::sidecars;

/// Where those listen that the API server asks: no capability is needed for it.
pub(super) const SERVING_PORT: u16 = 8443;
/// Where estimators are asked.
pub(super) const ESTIMATOR_PORT: u16 = 10352;
/// The controllers that a plane needs: it has no Nodes and no Pods of its own.
const CONTROLLERS: &str = "namespace,garbagecollector,serviceaccount-token,ttl-after-finished,clusterrole-aggregation";

/// Whether search answers. It watches what it serves itself, through the plane's API server: two of its checks pass
/// only once its API is there, which is applied when it is ready.
const SEARCH_HEALTH: &str =
    "/readyz?exclude=poststarthook/start-karmada-informers&exclude=poststarthook/start-karmada-search-controller";

/// What an API server is given where `extraArgs` do not have it. One that is stopped waits a minute for those who
/// watch: so it waits for what else it has begun, and two seconds.
pub(super) const UNLESS_GIVEN: (&str, &str) = ("shutdown-send-retry-after", "true");

/// Whether a component is given that. karmada-aggregated-apiserver has no such flag.
const fn waits_for_watchers(component: Component) -> bool {
    matches!(component, Component::ApiServer | Component::Search)
}

/// What a component runs.
pub(super) fn container(object: &KarmadaDeployment, release: &Release, component: Component) -> Container {
    let (program, flags, probe, ports) = match component {
        Component::Etcd => {
            let probe = Probe { ready: "/readyz", live: "/livez", port: ETCD_PORTS[2].1, scheme: "HTTP", opens: None };
            ("/usr/local/bin/etcd", etcd(object), probe, ETCD_PORTS.to_vec())
        }
        Component::ApiServer => {
            let probe = Probe { ready: "/readyz", live: "/livez", port: PORT, scheme: "HTTPS", opens: None };
            ("kube-apiserver", api_server(object), probe, vec![("https", PORT)])
        }
        Component::KubeControllerManager => {
            let probe = Probe { ready: "/healthz", live: "/healthz", port: 10257, scheme: "HTTPS", opens: None };
            ("kube-controller-manager", kube_controller_manager(), probe, vec![("https", 10257)])
        }
        Component::AggregatedApiServer => {
            let flags = [delegated(), etcd_client(object, component), serving(component)].concat();
            ("/bin/karmada-aggregated-apiserver", flags, served("/readyz", "/livez"), vec![("https", SERVING_PORT)])
        }
        Component::Webhook => {
            // What it serves says whether it works: the server for health alone starts before it.
            let ports = vec![("https", SERVING_PORT), ("metrics", 8080)];
            ("/bin/karmada-webhook", webhook(), served("/readyz/", "/readyz/"), ports)
        }
        Component::Scheduler => {
            let flags = [looked_at(10351), estimator_client(object, true)].concat();
            ("/bin/karmada-scheduler", flags, healthz(10351), metrics(10351))
        }
        Component::ControllerManager => {
            ("/bin/karmada-controller-manager", looked_at(10357), healthz(10357), metrics(10357))
        }
        Component::Descheduler => {
            let flags = [looked_at(10358), estimator_client(object, false)].concat();
            ("/bin/karmada-descheduler", flags, healthz(10358), metrics(10358))
        }
        Component::Estimator => {
            // It says that it is well before it has seen the member, and is asked only afterwards.
            let probe = Probe { opens: Some(ESTIMATOR_PORT), ..healthz(10351) };
            let ports = vec![("grpc", ESTIMATOR_PORT), ("health", 10351), ("metrics", 8080)];
            ("/bin/karmada-scheduler-estimator", [looked_at(10351), estimator()].concat(), probe, ports)
        }
        Component::Search => {
            let flags = [delegated(), etcd_client(object, component), serving(component)].concat();
            ("/bin/karmada-search", flags, served(SEARCH_HEALTH, SEARCH_HEALTH), vec![("https", SERVING_PORT)])
        }
        Component::MetricsAdapter => {
            let own = [("client-ca-file", path("pki/ca.crt")), ("metrics-bind-address", "0.0.0.0:8080".into())];
            let flags = [delegated(), serving(component), named(own)].concat();
            let ports = vec![("https", SERVING_PORT), ("metrics", 8080)];
            ("/bin/karmada-metrics-adapter", flags, served("/readyz", "/healthz"), ports)
        }
    };
    let is_etcd = component == Component::Etcd;
    let mut more = given(object, release, component);
    let (name, value) = UNLESS_GIVEN;
    if waits_for_watchers(component) && !more.iter().any(|(given, _)| given == name) {
        more.insert(0, (name.to_owned(), value.to_owned()));
    }
    Container {
        command: [vec![program.to_owned()], written(flags), written(more)].concat(),
        probe,
        ports,
        mounts: sidecars::mounts(object, component).collect(),
        env: if is_etcd { etcd_environment(object) } else { Vec::new() },
    }
}

/// The initial cluster of a member of etcd without data: variables, and the keys of its Secret that they are from.
pub(super) const INITIAL: [(&str, &str); 2] =
    [("INITIAL_CLUSTER", "initial-cluster"), ("INITIAL_CLUSTER_STATE", "initial-cluster-state")];

fn etcd_environment(object: &KarmadaDeployment) -> Vec<Value> {
    let secret = component_name(object, Component::Etcd);
    let name = json!({ "name": "POD_NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } });
    let initial = INITIAL.map(
        |(variable, key)| json!({ "name": variable, "valueFrom": { "secretKeyRef": { "name": secret, "key": key } } }),
    );
    [name].into_iter().chain(initial).collect()
}

type Flags = Vec<(String, String)>;

fn written(flags: Flags) -> Vec<String> {
    flags.into_iter().map(|(name, value)| format!("--{name}={value}")).collect()
}

fn named<const N: usize>(flags: [(&str, String); N]) -> Flags {
    flags.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What the spec gives it: feature gates, and further flags.
fn given(object: &KarmadaDeployment, release: &Release, component: Component) -> Flags {
    let spec = &object.spec;
    let Some(settings) = component.settings(spec) else {
        let local = spec.etcd.local.iter().flat_map(|local| &local.extra_args);
        return local.map(|(name, value)| (name.clone(), value.0.clone())).collect();
    };
    let mut gates = match release.gated.contains(&component.field()) {
        true => spec.feature_gates.clone(),
        false => Default::default(),
    };
    gates.extend(settings.feature_gates.clone());
    let gates: Vec<String> = gates.iter().map(|(gate, on)| format!("{gate}={on}")).collect();
    let mut flags = if gates.is_empty() { Vec::new() } else { named([("feature-gates", gates.join(","))]) };
    flags.extend(settings.extra_args.iter().map(|(name, value)| (name.clone(), value.0.clone())));
    flags
}

fn healthz(port: u16) -> Probe {
    Probe { ready: "/healthz", live: "/healthz", port, scheme: "HTTP", opens: None }
}

fn served(ready: &'static str, live: &'static str) -> Probe {
    Probe { ready, live, port: SERVING_PORT, scheme: "HTTPS", opens: None }
}

fn metrics(health: u16) -> Vec<(&'static str, u16)> {
    vec![("health", health), ("metrics", 8080)]
}

fn kubeconfig() -> String {
    path("kubeconfig")
}

/// Of a client of the API server that others look at.
fn looked_at(health: u16) -> Flags {
    named([
        ("kubeconfig", kubeconfig()),
        ("health-probe-bind-address", format!("0.0.0.0:{health}")),
        ("metrics-bind-address", "0.0.0.0:8080".into()),
    ])
}

/// Of one that asks estimators, where there are any: it builds the name of each one's Service.
fn estimator_client(object: &KarmadaDeployment, is_switched: bool) -> Flags {
    if object.spec.estimator.is_none() {
        return Flags::new();
    }
    let file = |ending: &str| path(&format!("pki/{ESTIMATOR_CLIENT}.{ending}"));
    let flags = named([
        ("scheduler-estimator-service-namespace", object.spec.host_namespace.clone()),
        ("scheduler-estimator-service-prefix", estimator_prefix(object)),
        ("scheduler-estimator-port", ESTIMATOR_PORT.to_string()),
        ("scheduler-estimator-ca-file", path("pki/ca.crt")),
        ("scheduler-estimator-cert-file", file("crt")),
        ("scheduler-estimator-key-file", file("key")),
    ]);
    let switch = named([("enable-scheduler-estimator", "true".into())]);
    if is_switched { [switch, flags].concat() } else { flags }
}

/// Of an estimator, which nobody asks but who has a certificate of the plane's authority.
fn estimator() -> Flags {
    named([
        ("server-port", ESTIMATOR_PORT.to_string()),
        ("grpc-auth-cert-file", path("pki/estimator.crt")),
        ("grpc-auth-key-file", path("pki/estimator.key")),
        ("grpc-client-ca-file", path("pki/ca.crt")),
    ])
}

/// Of one that asks the API server who somebody is, and what they may.
fn delegated() -> Flags {
    ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"]
        .map(|flag| (flag.to_owned(), kubeconfig()))
        .into()
}

fn serving(component: Component) -> Flags {
    let suffix = component.suffix();
    named([
        ("secure-port", SERVING_PORT.to_string()),
        ("tls-cert-file", path(&format!("pki/{suffix}.crt"))),
        ("tls-private-key-file", path(&format!("pki/{suffix}.key"))),
    ])
}

fn webhook() -> Flags {
    named([
        ("kubeconfig", kubeconfig()),
        ("bind-address", "0.0.0.0".into()),
        ("secure-port", SERVING_PORT.to_string()),
        ("cert-dir", path("pki")),
        ("tls-cert-file-name", "webhook.crt".into()),
        ("tls-private-key-file-name", "webhook.key".into()),
        ("health-probe-bind-address", "0.0.0.0:8000".into()),
        ("metrics-bind-address", "0.0.0.0:8080".into()),
    ])
}

/// Of one that reads and writes etcd.
fn etcd_client(object: &KarmadaDeployment, component: Component) -> Flags {
    let (servers, prefix) = match &object.spec.etcd.external {
        Some(external) => (external.endpoints.join(","), external.prefix.as_str()),
        None => {
            let service = full_host_name(object, &component_name(object, Component::Etcd));
            (format!("https://{service}:{}", ETCD_PORTS[0].1), crds::cluster_deployment::ETCD_PREFIX)
        }
    };
    let stem = format!("pki/{}-etcd-client", component.suffix());
    named([
        ("etcd-servers", servers),
        ("etcd-prefix", prefix.to_owned()),
        ("etcd-cafile", path("pki/etcd/ca.crt")),
        ("etcd-certfile", path(&format!("{stem}.crt"))),
        ("etcd-keyfile", path(&format!("{stem}.key"))),
    ])
}

fn etcd(object: &KarmadaDeployment) -> Flags {
    let own = format!("$(POD_NAME).{}", full_host_name(object, &etcd_peers(object)));
    let token = crds::ObjectExt::uid(object).to_owned();
    named([
        ("name", "$(POD_NAME)".into()),
        // A directory that etcd makes itself is its own alone.
        ("data-dir", "/var/lib/etcd/data".into()),
        ("listen-client-urls", "https://0.0.0.0:2379".into()),
        ("listen-peer-urls", "https://0.0.0.0:2380".into()),
        ("listen-metrics-urls", "http://0.0.0.0:2381".into()),
        ("advertise-client-urls", format!("https://{own}:2379")),
        ("initial-advertise-peer-urls", format!("https://{own}:2380")),
        // The initial cluster is in the Secret: another number of members rolls none of them.
        ("initial-cluster", format!("$({})", INITIAL[0].0)),
        ("initial-cluster-state", format!("$({})", INITIAL[1].0)),
        ("initial-cluster-token", token),
        ("client-cert-auth", "true".into()),
        ("trusted-ca-file", path("pki/etcd/ca.crt")),
        ("cert-file", path("pki/etcd-server.crt")),
        ("key-file", path("pki/etcd-server.key")),
        ("peer-client-cert-auth", "true".into()),
        ("peer-trusted-ca-file", path("pki/etcd/ca.crt")),
        ("peer-cert-file", path("pki/etcd-peer.crt")),
        ("peer-key-file", path("pki/etcd-peer.key")),
    ])
}

fn api_server(object: &KarmadaDeployment) -> Flags {
    let (spec, is_closed) = (&object.spec, is_closed(object));
    let closed =
        if is_closed { named([("authorization-policy-file", path(POLICY_FILE))]).to_vec() } else { Flags::new() };
    let own = named([
        ("allow-privileged", "true".into()),
        ("authorization-mode", if is_closed { "ABAC" } else { "Node,RBAC" }.into()),
        ("bind-address", "0.0.0.0".into()),
        ("client-ca-file", path("pki/ca.crt")),
        ("disable-admission-plugins", "StorageObjectInUseProtection,ServiceAccount".into()),
        ("enable-admission-plugins", "NodeRestriction".into()),
        ("encryption-provider-config", path("encryption.yaml")),
        ("proxy-client-cert-file", path("pki/front-proxy-client.crt")),
        ("proxy-client-key-file", path("pki/front-proxy-client.key")),
        ("requestheader-allowed-names", "front-proxy-client".into()),
        ("requestheader-client-ca-file", path("pki/front-proxy-ca.crt")),
        ("requestheader-extra-headers-prefix", "X-Remote-Extra-".into()),
        ("requestheader-group-headers", "X-Remote-Group".into()),
        ("requestheader-username-headers", "X-Remote-User".into()),
        ("secure-port", PORT.to_string()),
        ("service-account-issuer", format!("https://kubernetes.default.svc.{}", spec.host_dns_domain)),
        ("service-account-key-file", path("pki/sa.pub")),
        ("service-account-signing-key-file", path("pki/sa.key")),
        ("service-cluster-ip-range", spec.api_server.service_subnet.clone()),
        ("tls-cert-file", path("pki/apiserver.crt")),
        ("tls-private-key-file", path("pki/apiserver.key")),
    ]);
    [own, closed, etcd_client(object, Component::ApiServer)].concat()
}

fn kube_controller_manager() -> Flags {
    let own = named([
        ("client-ca-file", path("pki/ca.crt")),
        ("cluster-name", "karmada".into()),
        ("controllers", CONTROLLERS.into()),
        ("leader-elect", "true".into()),
        ("root-ca-file", path("pki/ca.crt")),
        ("service-account-private-key-file", path("pki/sa.key")),
        ("use-service-account-credentials", "true".into()),
    ]);
    [delegated(), own].concat()
}
