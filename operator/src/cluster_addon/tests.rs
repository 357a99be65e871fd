//! A chart on one cluster, cut off and refused at every write: Helm is run once, and what it was given is gone.

use std::io::Write;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::{Addon, Cluster, ClusterAddon};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::Observation;
use crate::addon;
use crate::fake_api::{Cut, FakeApi};
use crate::reconcile::reconcile;
use crate::remote::Key;

const GROUP: &str = "apiVersion: clusterwright.dev/v1alpha1";
const KUBECONFIG: &str = "{current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], clusters: [{name: a, cluster: {server: 'https://192.0.2.1:6443'}}], users: [{name: a, user: {token: t}}]}";

/// The metadata cluster, and the cluster `a`.
#[derive(Clone)]
struct World {
    api: FakeApi,
    theirs: FakeApi,
}

impl World {
    fn new() -> Self {
        let api = FakeApi::default();
        let kubeconfig = STANDARD.encode(KUBECONFIG);
        api.put("secrets", &format!("{{apiVersion: v1, kind: Secret, metadata: {{name: k, namespace: fleet}}, data: {{kubeconfig: {kubeconfig}}}}}"));
        api.put("clusters", &format!("{{{GROUP}, kind: Cluster, metadata: {{name: a, namespace: fleet}}, spec: {{kubeconfigRef: {{name: k}}}}, status: {{conditions: [{{type: Reachable, status: 'True', reason: X, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}}}"));
        api.put("addons", &format!("{{{GROUP}, kind: Addon, metadata: {{name: agent, namespace: fleet}}, spec: {{clusterSelector: {{}}, source: {{chart: {{oci: 'oci://r/charts/agent', version: 1.0.0}}}}}}}}"));
        Self { api, theirs: FakeApi::default() }
    }

    async fn turns(&self, count: usize) {
        let api = &self.api;
        let ctx = api.context();
        for _ in 0..count {
            ctx.remote.put(&Key::new("fleet", "a"), self.theirs.client());
            ctx.remote.show(&Key::new("fleet", "a"), Vec::new());
            ctx.cache.clusters.fill(api.list::<Cluster>("clusters"));
            ctx.cache.addons.fill(api.list::<Addon>("addons"));
            ctx.cache.cluster_addons.fill(api.list::<ClusterAddon>("clusteraddons"));
            for addon in api.list::<Addon>("addons") {
                // What goes wrong is tried again by the next turn.
                let _ = reconcile::<addon::Observation>(ctx.clone(), Arc::new(addon)).await;
            }
            for object in api.list::<ClusterAddon>("clusteraddons") {
                let _ = reconcile::<Observation>(ctx.clone(), Arc::new(object)).await;
            }
            self.runs_helm();
        }
    }

    /// Each Job that has no Pod runs.
    fn runs_helm(&self) {
        for job in self.api.values("jobs") {
            let name = job["metadata"]["name"].as_str().unwrap().to_owned();
            if self.api.get(&format!("pods/fleet/{name}")).is_some() {
                continue;
            }
            let inputs = self.api.get(&format!("secrets/fleet/{name}")).expect("a Job without its Secret");
            let inputs = STANDARD.decode(inputs["data"]["release.json"].as_str().unwrap()).unwrap();
            let inputs: Value = serde_json::from_slice(&inputs).unwrap();
            self.helm(&inputs);
            let labels = &job["metadata"]["labels"];
            let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"], "controller": true});
            let state = json!({"terminated": {"exitCode": 0, "message": "{\"succeeded\": true}"}});
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "namespace": "fleet", "labels": labels, "ownerReferences": [owner]},
                "status": {"containerStatuses": [{"name": "executor", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state}]},
            });
            self.api.put("pods", &pod.to_string());
        }
    }

    fn helm(&self, inputs: &Value) {
        let revisions = self.theirs.values("secrets");
        if inputs["verb"] == "Uninstall" {
            for revision in revisions {
                self.theirs.remove(&format!("secrets/default/{}", revision["metadata"]["name"].as_str().unwrap()));
            }
            return;
        }
        let number = revisions.len() + 1;
        let release = json!({
            "name": "agent", "namespace": "default", "version": number, "manifest": "",
            "info": {"status": "deployed", "description": inputs["description"]},
            "chart": {"metadata": {"name": "agent", "version": inputs["chart"]["version"]}},
        });
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(release.to_string().as_bytes()).unwrap();
        let packed = STANDARD.encode(STANDARD.encode(encoder.finish().unwrap()));
        let labels = json!({"owner": "helm", "name": "agent", "version": number.to_string()});
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "data": {"release": packed},
            "metadata": {"name": format!("sh.helm.release.v1.agent.v{number}"), "namespace": "default", "labels": labels},
        });
        self.theirs.put("secrets", &secret.to_string());
    }

    /// Secrets that Jobs are given.
    fn given(&self) -> Vec<String> {
        let of_jobs =
            |name: &String| name.starts_with("secrets/fleet/upgrade-") || name.starts_with("secrets/fleet/uninstall-");
        self.api.names().into_iter().filter(of_jobs).collect()
    }

    fn count(&self, plural: &str) -> usize {
        self.api.values(plural).len()
    }

    fn object(&self) -> ClusterAddon {
        self.api.list("clusteraddons").remove(0)
    }
}

/// What comes of a world in any case.
async fn survives(world: impl AsyncFn() -> World, expected: impl Fn(&World)) {
    let whole = world().await;
    whole.turns(6).await;
    expected(&whole);
    let writes = whole.api.writes();
    assert!(writes > 3, "{:?}", whole.api.requests());
    whole.turns(2).await;
    assert_eq!(whole.api.writes(), writes, "at rest nothing is written: {:?}", whole.api.requests());
    for number in 0..writes {
        for kind in [Cut::Before, Cut::After] {
            let world = world().await;
            world.api.cut(Some((number, kind)));
            world.turns(3).await;
            world.api.cut(None);
            world.turns(7).await;
            println!("cut off {kind:?} write {number}: {:?}", world.api.requests());
            expected(&world);
        }
        let world = world().await;
        world.api.conflict(number, 1);
        world.turns(10).await;
        println!("refused at write {number}: {:?}", world.api.requests());
        expected(&world);
    }
}

fn is_installed(world: &World, version: &str) {
    let status = world.object().status.unwrap();
    let sentence = format!("with chart agent {version}: 0 objects as wanted");
    assert!(status.message.as_ref().unwrap().contains(&sentence), "{:?}", status.message);
    assert_eq!(status.release.unwrap().job, None);
    assert_eq!(world.given(), Vec::<String>::new());
}

#[tokio::test]
async fn a_chart_is_installed_by_one_job_whoever_is_cut_off() {
    survives(
        async || World::new(),
        |world| {
            is_installed(world, "1.0.0");
            assert_eq!((world.count("jobs"), world.theirs.names().len()), (1, 1));
        },
    )
    .await;
}

#[tokio::test]
async fn another_version_is_another_job_and_a_roll_back_by_hand_is_undone() {
    let edited = async || {
        let world = World::new();
        world.turns(6).await;
        world.api.edit("addons/fleet/agent", |object| {
            object["spec"]["source"]["chart"]["version"] = json!("1.1.0");
            object["metadata"]["generation"] = json!(2);
        });
        world
    };
    survives(edited, |world| {
        is_installed(world, "1.1.0");
        assert_eq!((world.count("jobs"), world.theirs.names().len()), (2, 2));
    })
    .await;
    let world = World::new();
    world.turns(6).await;
    world.helm(&json!({"verb": "Upgrade", "description": "Rollback to 1", "chart": {"version": "1.0.0"}}));
    world.turns(4).await;
    is_installed(&world, "1.0.0");
    assert_eq!(world.theirs.names().len(), 3);
}

#[tokio::test]
async fn a_release_is_uninstalled_before_its_addon_goes() {
    let going = async || {
        let world = World::new();
        world.turns(6).await;
        world.api.edit("addons/fleet/agent", |object| {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")
        });
        world
    };
    survives(going, |world| {
        assert_eq!((world.count("addons"), world.count("clusteraddons"), world.theirs.names().len()), (0, 0, 0));
        let uninstalls = world.api.values("jobs");
        let uninstalls =
            uninstalls.iter().filter(|job| job["metadata"]["name"].as_str().unwrap().starts_with("uninstall-"));
        assert_eq!(uninstalls.count(), 1);
    })
    .await;
}
