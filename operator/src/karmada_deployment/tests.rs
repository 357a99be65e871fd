//! A plane made on an API server in memory, each object once, and deleted again, cut off at writes to its host.

use std::sync::Arc;

use axum::Router;
use axum::http::Uri;
use crds::{Conditions, KarmadaDeployment};
use plan::karmada_deployment::DEFINITIONS;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Observation;
use crate::fake_api::{Cut, FakeApi};
use crate::reconcile::reconcile;

const GROUP: &str = "apiVersion: clusterwright.dev/v1alpha1";
const UID: &str = "karmadadeployments-fleet-k1-1";
/// More than a plane takes to be made.
const MANY: usize = 60;

/// Serves a bundle with definitions that stand in for Karmada's; its URL.
async fn bundle() -> String {
    let definition = |name: &&str| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}})
            .to_string()
    };
    let file = DEFINITIONS.iter().map(definition).collect::<Vec<_>>().join("\n---\n");
    let sha256: String = Sha256::digest(&file).iter().map(|byte| format!("{byte:02x}")).collect();
    let index = json!({"formatVersion": 1, "artifacts": [{
        "name": "karmada-crds", "kind": "manifests", "version": "1.18.2", "path": "crds.yaml", "size": file.len(),
        "sha256": sha256,
    }]});
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(move |uri: Uri| async move {
        if uri.path() == "/index.json" { index.to_string() } else { file.clone() }
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// The metadata cluster, which is the host, and the plane.
struct World {
    api: FakeApi,
    plane: FakeApi,
}

impl World {
    fn new(bundle: &str) -> Self {
        let api = FakeApi::default();
        api.put("karmadadeployments", &format!("{{{GROUP}, kind: KarmadaDeployment, metadata: {{name: k1, namespace: fleet}}, spec: {{version: 1.18.2, crds: {{bundle: {{url: '{bundle}'}}}}}}}}"));
        Self { api, plane: FakeApi::default() }
    }

    fn copy(&self) -> Self {
        Self { api: self.api.copy(), plane: self.plane.copy() }
    }

    /// Passes of an operator that has just started, until one changes nothing.
    async fn passes(&self, most: usize) {
        let ctx = self.api.context();
        for _ in 0..most {
            let before = (self.api.changes(), self.plane.changes());
            ctx.planes.put(UID, self.plane.client());
            let objects = self.api.list::<KarmadaDeployment>("karmadadeployments");
            ctx.cache.karmada_deployments.fill(objects.clone());
            for object in objects {
                // What goes wrong is tried again by the next one.
                let _ = reconcile::<Observation>(ctx.clone(), Arc::new(object)).await;
            }
            self.workloads_run();
            if before == (self.api.changes(), self.plane.changes()) {
                return;
            }
        }
    }

    /// What the controllers and the programs of the host and of the plane would do.
    fn workloads_run(&self) {
        let well = |api: &FakeApi, plural: &str, status: &dyn Fn(&Value) -> Value| {
            for object in api.list::<Value>(plural) {
                let status = status(&object);
                let metadata = &object["metadata"];
                let namespace = metadata["namespace"].as_str().unwrap_or_default();
                let key = format!("{plural}/{namespace}/{}", metadata["name"].as_str().unwrap());
                if object["status"] != status {
                    api.edit(&key, |object| object["status"] = status);
                }
            }
        };
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
        well(&self.api, "deployments", &all);
        well(&self.api, "statefulsets", &all);
        well(&self.plane, "customresourcedefinitions", &said(&["Established", "NamesAccepted"]));
        well(&self.plane, "apiservices", &said(&["Available"]));
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

    fn object(&self) -> KarmadaDeployment {
        self.api.list("karmadadeployments").remove(0)
    }

    fn message(&self) -> String {
        self.object().status.and_then(|status| status.message).unwrap_or_default()
    }

    fn names(&self) -> (Vec<String>, Vec<String>) {
        (self.api.names(), self.plane.names())
    }

    /// It is ready, has these objects, and each was made once.
    fn is_made_once(&self, names: &(Vec<String>, Vec<String>)) {
        assert!(self.object().is_true("Ready"), "{}", self.message());
        assert_eq!(self.names(), *names);
        for api in [&self.api, &self.plane] {
            for name in api.names() {
                let uid = api.get(&name).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
                assert!(uid.ends_with("-1"), "{name} was made again: {uid}");
            }
        }
    }
}

#[tokio::test]
async fn a_plane_is_made_whole_and_each_object_of_it_once() {
    let url = bundle().await;
    let whole = World::new(&url);
    whole.passes(MANY).await;
    let names = whole.names();
    whole.is_made_once(&names);
    assert!(names.0.len() > 20 && names.1.len() > 30, "{names:?}");
}

#[tokio::test]
async fn a_plane_that_does_not_answer_is_said_and_its_host_is_left_as_it_is() {
    let world = World::new(&bundle().await);
    world.passes(MANY).await;
    let made = world.copy();
    world.plane.cut(Some((0, Cut::Before)));
    world.plane.refuse("GET ", usize::MAX, 503, Value::Null);
    let writes = world.plane.writes();
    world.api.edit("karmadadeployments/fleet/k1", |object| object["spec"]["search"] = json!({}));
    world.passes(4).await;
    assert!(!world.object().is_true("Ready"), "{}", world.message());
    assert_eq!(world.plane.writes(), writes);
    let (before, now) = (made.names().0, world.names().0);
    assert!(before.iter().all(|name| now.contains(name)), "{now:?}");
}

#[tokio::test]
async fn deleting_a_plane_takes_all_of_it_from_the_host_wherever_the_operator_is_cut_off() {
    let whole = World::new(&bundle().await);
    whole.passes(MANY).await;
    whole.api.edit("karmadadeployments/fleet/k1", |object| {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    let made = whole.api.writes();
    let check = async |cut: Option<(usize, Cut)>| {
        let world = whole.copy();
        world.api.cut(cut);
        world.passes(MANY).await;
        world.api.cut(None);
        world.passes(MANY).await;
        assert!(world.api.list::<Value>("karmadadeployments").is_empty(), "{cut:?}: {}", world.message());
        let names = world.api.names();
        let left: Vec<_> = names.iter().filter(|name| name.contains("/karmada-system/")).collect();
        assert!(left.is_empty(), "{cut:?}: {left:?}");
        assert!(names.contains(&"namespaces//karmada-system".to_owned()), "{names:?}");
        world.api.writes()
    };
    let all = check(None).await - made;
    for number in (0..all).step_by(7) {
        check(Some((made + number, Cut::Before))).await;
        check(Some((made + number, Cut::After))).await;
    }
}
