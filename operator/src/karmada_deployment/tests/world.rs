//! The metadata cluster, which is the host unless another one is, a plane, and clusters that may be its members: API
//! servers in memory. What their controllers and Karmada's programs would do is done between two passes.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::http::Uri;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::karmada_deployment::KarmadaMemberStatus;
use crds::names::annotation;
use crds::{Conditions, KarmadaDeployment};
use plan::encryption::Scheme;
use plan::karmada_deployment::DEFINITIONS;
use plan::rotation::Subject;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::machines;
use crate::cache::{Kind, Watched};
use crate::context::Context;
use crate::decoding::Decoded;
use crate::etcd_restore;
use crate::fake_api::{Cut, FakeApi};
use crate::karmada_deployment::Observation;
use crate::pki::{Pki, fixtures};
use crate::reconcile::reconcile;
use crate::remote::Key;

pub const KEY: &str = "karmadadeployments/fleet/k1";
const GROUP: &str = "apiVersion: clusterwright.dev/v1alpha1";
pub const UID: &str = "karmadadeployments-fleet-k1-1";
/// The template of a plane's probe, and what Karmada makes of it.
pub const TEMPLATE: &str = "configmaps/clusterwright-probe/clusterwright-probe";
pub const BINDING: &str = "resourcebindings/clusterwright-probe/clusterwright-probe-configmap";
/// More than a plane takes to be made.
pub const MANY: usize = 60;

/// Serves a bundle with definitions that stand in for Karmada's; its URL.
async fn bundle() -> String {
    let definition = |name: &&str| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}})
            .to_string()
    };
    let file = DEFINITIONS.iter().map(definition).collect::<Vec<_>>().join("\n---\n");
    let sha256: String = Sha256::digest(&file).iter().map(|byte| format!("{byte:02x}")).collect();
    let entry = |version: &str| {
        json!({
            "name": "karmada-crds", "kind": "manifests", "version": version, "path": "crds.yaml", "size": file.len(),
            "sha256": sha256,
        })
    };
    let index = json!({"formatVersion": 1, "artifacts": [entry("1.17.5"), entry("1.18.2")]});
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(move |uri: Uri| async move {
        if uri.path() == "/index.json" { index.to_string() } else { file.clone() }
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// A kubeconfig that leads nowhere: its client is another one.
pub fn kubeconfig(server: &str) -> String {
    let now = "2026-11-21T00:00:00Z".parse().unwrap();
    let pki = Pki::generate(fixtures::TWO, &Scheme::default(), now).unwrap();
    let authority = STANDARD.encode(pki.authority(Subject::Ca).unwrap().trusted());
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": "c", "user": {"token": "administrator"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    })
    .to_string()
}

pub struct World {
    pub api: FakeApi,
    pub plane: FakeApi,
    /// The host, where it is not the metadata cluster.
    pub host: Option<FakeApi>,
    pub members: BTreeMap<String, FakeApi>,
    /// Whether the agents of Pull members reach the plane.
    pub agents_come: bool,
    /// Whether karmada-controller-manager makes ResourceBindings.
    pub makes_bindings: bool,
}

impl World {
    pub async fn new() -> Self {
        let api = FakeApi::default();
        let spec = json!({
            "version": "1.18.2", "crds": {"bundle": {"url": bundle().await}}, "unjoinPolicy": "Preserve",
            "apiServer": {"serviceType": "NodePort", "loadBalancerApiserverIp": "10.0.0.9", "nodePort": 30443},
        });
        api.put(
            "karmadadeployments",
            &format!("{{{GROUP}, kind: KarmadaDeployment, metadata: {{name: k1, namespace: fleet}}, spec: {spec}}}"),
        );
        let plane = FakeApi::default();
        let world = Self { api, plane, host: None, members: BTreeMap::new(), agents_come: true, makes_bindings: true };
        name_cluster(&world.api, "metadata");
        name_cluster(&world.plane, "plane");
        world
    }

    /// Is of another version.
    pub fn in_version(self, version: &str) -> Self {
        self.want(version);
        self
    }

    /// Wants another version.
    pub fn want(&self, version: &str) {
        self.api.edit(KEY, |object| object["spec"]["version"] = json!(version));
    }

    /// Its members have estimators.
    pub fn with_estimators(self) -> Self {
        self.api.edit(KEY, |object| object["spec"]["estimator"] = json!({}));
        self
    }

    /// Runs on a Cluster of its own.
    pub fn with_host(mut self) -> Self {
        let host = FakeApi::default();
        name_cluster(&host, "host");
        self.api.put("clusters", &format!("{{{GROUP}, kind: Cluster, metadata: {{name: host-a, namespace: fleet}}, spec: {{kubeconfigRef: {{name: host-a}}}}}}"));
        self.api.edit(KEY, |object| object["spec"]["hostClusterRef"] = json!({"name": "host-a"}));
        self.host = Some(host);
        self
    }

    /// Has a cluster that becomes a member.
    pub fn with_member(mut self, name: &str, mode: &str) -> Self {
        let member = FakeApi::default();
        name_cluster(&member, name);
        let data = json!({"kubeconfig": STANDARD.encode(kubeconfig(&format!("https://{name}.test:6443")))});
        self.api.put(
            "secrets",
            &format!("{{apiVersion: v1, kind: Secret, metadata: {{name: {name}, namespace: fleet}}, data: {data}}}"),
        );
        self.api.edit(KEY, |object| {
            let member = json!({"name": name, "syncMode": mode, "kubeConfigSecretName": name});
            let members = &mut object["spec"]["members"];
            *members = members.as_array().into_iter().flatten().cloned().chain([member]).collect();
        });
        self.members.insert(name.to_owned(), member);
        self
    }

    /// All of its API servers serve watches.
    pub fn watched(self) -> Self {
        self.apis().for_each(FakeApi::serve_watches);
        self
    }

    /// What watches say has arrived.
    pub async fn settle(&self) {
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
    }

    pub fn copy(&self) -> Self {
        Self {
            api: self.api.copy(),
            plane: self.plane.copy(),
            host: self.host.as_ref().map(FakeApi::copy),
            members: self.members.iter().map(|(name, member)| (name.clone(), member.copy())).collect(),
            agents_come: self.agents_come,
            makes_bindings: self.makes_bindings,
        }
    }

    pub fn apis(&self) -> impl Iterator<Item = &FakeApi> {
        [&self.api, &self.plane].into_iter().chain(&self.host).chain(self.members.values())
    }

    /// Changes so far, whoever made them.
    pub fn changes(&self) -> u64 {
        self.apis().map(FakeApi::changes).sum()
    }

    /// Requests so far.
    pub fn asked(&self) -> usize {
        self.apis().map(FakeApi::asked).sum()
    }

    pub fn writes(&self) -> usize {
        self.apis().map(FakeApi::writes).sum()
    }

    /// The next write anywhere is done and its answer lost, and nothing arrives any more after it.
    pub fn cut_after_the_next_write(&self) {
        self.apis().for_each(|api| api.cut(Some((api.writes(), Cut::After))));
    }

    pub fn mend(&self) {
        self.apis().for_each(|api| api.cut(None));
    }

    /// An operator that has just started.
    pub fn operator(&self) -> Arc<Context> {
        self.operator_with(&[])
    }

    /// One that is started with these arguments.
    pub fn operator_with(&self, arguments: &[&str]) -> Arc<Context> {
        let ctx = self.api.context_with(arguments);
        ctx.planes.put(UID, self.plane.client());
        for (name, member) in &self.members {
            ctx.planes.put_member(UID, name, &member.client());
        }
        if let Some(host) = &self.host {
            let key = Key::new("fleet", "host-a");
            ctx.remote.put(&key, host.client());
            ctx.remote.show(&key, Vec::new());
        }
        ctx
    }

    /// A pass of this operator, and what follows from it elsewhere.
    pub async fn pass(&self, ctx: &Arc<Context>) {
        self.reconcile_by(ctx, &self.api).await;
        self.time();
    }

    /// A pass of this operator by what the metadata cluster has shown. Nobody comes to what cannot be decoded.
    pub async fn reconcile_by(&self, ctx: &Arc<Context>, shown: &FakeApi) {
        let cache = &ctx.cache;
        fill(ctx, &cache.karmada_deployments, shown, "karmadadeployments");
        fill(ctx, &cache.clusters, shown, "clusters");
        fill(ctx, &cache.hosts, shown, "hosts");
        fill(ctx, &cache.machines, shown, "machines");
        fill(ctx, &cache.machine_sets, shown, "machinesets");
        fill(ctx, &cache.runs, shown, "playbookruns");
        fill(ctx, &cache.backup_storages, shown, "backupstorages");
        fill(ctx, &cache.etcd_backups, shown, "etcdbackups");
        fill(ctx, &cache.etcd_restores, shown, "etcdrestores");
        fill(ctx, &cache.etcd_backup_schedules, shown, "etcdbackupschedules");
        for object in cache.karmada_deployments.everywhere() {
            // What goes wrong is tried again by the next one. Its future is too large for a test's stack.
            let _ = Box::pin(reconcile::<Observation>(ctx.clone(), object)).await;
        }
        for restore in cache.etcd_restores.everywhere() {
            let _ = Box::pin(reconcile::<etcd_restore::Observation>(ctx.clone(), restore)).await;
        }
    }

    /// What others do until the next pass.
    pub fn time(&self) {
        self.workloads_run();
        self.bind();
        self.members_run();
        machines::work(self);
    }

    /// Passes of an operator that has just started, until one changes nothing.
    pub async fn passes(&self, most: usize) {
        let ctx = self.operator();
        for _ in 0..most {
            let before = self.changes();
            self.pass(&ctx).await;
            if before == self.changes() {
                return;
            }
        }
    }

    /// What the controllers and the programs of the host and of the plane would do.
    fn workloads_run(&self) {
        let all = |object: &Value| {
            let replicas = &object["spec"]["replicas"];
            json!({"replicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas, "availableReplicas": replicas})
        };
        let said = |types: &'static [&'static str]| {
            move |_: &Value| {
                let conditions = types.iter().map(|one| json!({"type": one, "status": "True"}));
                json!({"conditions": conditions.collect::<Vec<_>>()})
            }
        };
        let host = self.host.as_ref().unwrap_or(&self.api);
        show(host, "deployments", &all);
        show(host, "statefulsets", &all);
        self.members.values().for_each(|member| show(member, "deployments", &all));
        show(&self.plane, "customresourcedefinitions", &said(&["Established", "NamesAccepted"]));
        show(&self.plane, "apiservices", &said(&["Available"]));
        for (namespace, name) in [
            ("kube-system", "kube-controller-manager"),
            ("karmada-system", "karmada-scheduler"),
            ("karmada-system", "karmada-controller-manager"),
        ] {
            if self.plane.get(&format!("leases/{namespace}/{name}")).is_none() {
                let now = jiff::Timestamp::now();
                self.plane.put("leases", &format!("{{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {{name: {name}, namespace: {namespace}}}, spec: {{renewTime: '{now:.6}'}}}}"));
            }
        }
    }

    /// What karmada-controller-manager makes of the probe's template.
    fn bind(&self) {
        let Some(template) = self.plane.get(TEMPLATE).filter(|_| self.makes_bindings) else { return };
        let of = &template["metadata"];
        let spec = json!({"resource": {"uid": of["uid"], "resourceVersion": of["resourceVersion"]}});
        match self.plane.get(BINDING) {
            None => self.plane.put("resourcebindings", &format!("{{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {{name: clusterwright-probe-configmap, namespace: clusterwright-probe}}, spec: {spec}}}")),
            Some(binding) if binding["spec"] == spec => {}
            Some(_) => self.plane.edit(BINDING, |binding| binding["spec"] = spec),
        }
    }

    /// Members put tokens into the Secrets for them, and their agents renew their Leases; Karmada says of each Cluster
    /// whether it reaches it.
    fn members_run(&self) {
        if self.agents_come {
            self.members.iter().for_each(|(name, member)| self.agent_comes(name, member));
        }
        for member in self.members.values() {
            for secret in member.values("secrets") {
                if secret["type"] == "kubernetes.io/service-account-token" && secret["data"].is_null() {
                    let token = STANDARD.encode(format!("token of {}", secret["metadata"]["name"]));
                    member.edit(&key_of("secrets", &secret), |secret| secret["data"]["token"] = json!(token));
                }
            }
        }
        show(&self.plane, "clusters", &|cluster: &Value| {
            let name = cluster["metadata"]["name"].as_str().unwrap();
            let member = &self.members[name];
            let works = match cluster["spec"]["syncMode"] == "Pull" {
                true => member.get("deployments/karmada-system/karmada-agent").is_some(),
                false => {
                    let given = self.plane.get(&format!("secrets/karmada-cluster/{name}"));
                    let there = member.get(&format!("secrets/karmada-cluster/karmada-{name}"));
                    given.zip(there).is_some_and(|(given, there)| given["data"]["token"] == there["data"]["token"])
                }
            };
            let status = if works { "True" } else { "False" };
            json!({"conditions": [{"type": "Ready", "status": status, "reason": "Tried", "message": "it was tried"}]})
        });
    }

    /// With each kubeconfig that it is given an agent renews its Lease once, and the Lease goes with the Cluster.
    fn agent_comes(&self, name: &str, member: &FakeApi) {
        let key = format!("leases/karmada-cluster/{name}");
        let is_there = self.plane.get(&format!("clusters//{name}")).is_some();
        let agent = member.get("deployments/karmada-system/karmada-agent").filter(|_| is_there);
        let Some(agent) = agent else {
            self.plane.remove(&key);
            return;
        };
        let holder = agent["spec"]["template"]["metadata"]["annotations"][annotation::FILES].clone();
        match self.plane.get(&key) {
            None => self.plane.put("leases", &format!("{{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {{name: {name}, namespace: karmada-cluster}}, spec: {{holderIdentity: {holder}}}}}")),
            Some(lease) if lease["spec"]["holderIdentity"] == holder => {}
            Some(_) => self.plane.edit(&key, |lease| lease["spec"]["holderIdentity"] = holder),
        }
    }

    pub fn object(&self) -> KarmadaDeployment {
        self.api.list("karmadadeployments").remove(0)
    }

    pub fn message(&self) -> String {
        self.object().status.and_then(|status| status.message).unwrap_or_default()
    }

    /// What is said of a member.
    pub fn member(&self, name: &str) -> KarmadaMemberStatus {
        let members = self.object().status.unwrap().members;
        members.into_iter().find(|member| member.name == name).unwrap()
    }

    /// The objects of each API server.
    pub fn names(&self) -> Vec<Vec<String>> {
        self.apis().map(FakeApi::names).collect()
    }

    /// It is ready, has these objects, and each was made once.
    pub fn is_made_once(&self, names: &[Vec<String>]) {
        assert!(self.object().is_true("Ready"), "{}", self.message());
        assert_eq!(self.names(), names);
        for api in self.apis() {
            for name in api.names().into_iter().filter(|name| !name.ends_with("/kube-system")) {
                let uid = api.get(&name).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
                assert!(uid.ends_with("-1"), "{name} was made again: {uid}");
            }
        }
    }
}

pub fn key_of(plural: &str, object: &Value) -> String {
    let metadata = &object["metadata"];
    format!("{plural}/{}/{}", metadata["namespace"].as_str().unwrap_or_default(), metadata["name"].as_str().unwrap())
}

/// Shows what can be decoded of a kind, and registers the rest.
fn fill<K: Kind>(ctx: &Context, watched: &Watched<K>, shown: &FakeApi, plural: &str) {
    ctx.cache.undecodable.keep(&K::kind(&()), &[]);
    let all = shown.decoded::<K>(plural);
    let object = |decoded: &Arc<Decoded<K>>| match &**decoded {
        Decoded::Object(object) => Some(object.clone()),
        Decoded::Undecodable { why, .. } => {
            ctx.cache.undecodable.add(why);
            None
        }
    };
    watched.fill(all.iter().filter_map(object).collect());
}

/// Gives a cluster the namespace by which it is known.
fn name_cluster(api: &FakeApi, uid: &str) {
    api.put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}");
    api.edit("namespaces//kube-system", |namespace| namespace["metadata"]["uid"] = json!(uid));
}

/// Writes the statuses of all objects of a kind.
fn show(api: &FakeApi, plural: &str, status: &dyn Fn(&Value) -> Value) {
    for object in api.values(plural) {
        let status = status(&object);
        if object["status"] != status {
            api.edit(&key_of(plural, &object), |object| object["status"] = status);
        }
    }
}
