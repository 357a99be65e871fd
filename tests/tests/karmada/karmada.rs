//! What Karmada's controllers do about Clusters, as far as it matters to joining and leaving: they try each Push member
//! with the token that they are given, take an agent that is there for one that works, and, when a Cluster of a member
//! that they reach is deleted, delete what they run there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::clusters;
use crate::programs::Programs;

const FINALIZER: &str = "karmada.io/cluster-controller";
/// What Karmada runs in a member.
pub const WORKLOAD: &str = "propagated";
/// How long Karmada waits for a member.
const PATIENCE: Duration = Duration::from_secs(2);

/// Members' clients by name, of those that have an agent or lose a workload; clones are the same.
#[derive(Clone, Default)]
pub struct Karmada(Arc<Mutex<BTreeMap<String, Client>>>);

impl Karmada {
    /// Starts to look after Clusters.
    pub fn start(host: Client, programs: Programs) -> Self {
        let karmada = Self::default();
        let own = karmada.clone();
        tokio::spawn(async move {
            loop {
                if let Err(error) = own.pass(&host, &programs).await {
                    println!("the stand-in of Karmada: {error:#}");
                }
                sleep(Duration::from_millis(300)).await;
            }
        });
        karmada
    }

    /// Where a member is.
    pub fn know(&self, name: &str, client: Client) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), client);
    }

    fn member(&self, name: &str) -> Option<Client> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    async fn pass(&self, host: &Client, programs: &Programs) -> Result<()> {
        let (api, Some(plane)) = (clusters::api(host.clone()), programs.plane()) else { return Ok(()) };
        end_namespaces(&plane).await?;
        for cluster in api.list(&ListParams::default()).await? {
            let name = cluster.name_any();
            let reached = timeout(PATIENCE, self.is_reached(&plane, &cluster)).await.unwrap_or(Ok(false));
            let reached = reached.unwrap_or(false);
            let conditions = &cluster.data["status"]["conditions"];
            let status = if reached { "True" } else { "False" };
            if conditions[0]["status"] != status {
                // Long enough ago for an agent that is away to be at nothing any more.
                let since = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(120);
                let since = since.to_string().get(..19).map(|seconds| format!("{seconds}Z"));
                let ready = json!({
                    "type": "Ready", "status": status, "reason": "Tried", "message": "it was tried",
                    "lastTransitionTime": since,
                });
                let patch = json!({"status": {"conditions": [ready]}});
                api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
            }
            let held = cluster.finalizers().iter().any(|one| one == FINALIZER);
            match (cluster.metadata.deletion_timestamp.is_some(), held) {
                (false, false) => self.hold(&api, &cluster, true).await?,
                (true, true) => {
                    if let Some(member) = self.member(&name).filter(|_| reached) {
                        let workloads: Api<ConfigMap> = Api::namespaced(member, "default");
                        // One that is gone already is as well.
                        let _ = workloads.delete(WORKLOAD, &DeleteParams::default()).await;
                    }
                    self.hold(&api, &cluster, false).await?;
                }
                (false, true) | (true, false) => {}
            }
        }
        Ok(())
    }

    /// Puts Karmada's finalizer on a Cluster, or takes it off.
    async fn hold(&self, api: &Api<DynamicObject>, cluster: &DynamicObject, held: bool) -> Result<()> {
        let mut finalizers = cluster.finalizers().to_vec();
        finalizers.retain(|one| one != FINALIZER);
        finalizers.extend(held.then(|| FINALIZER.to_owned()));
        let patch = json!({"metadata": {
            "finalizers": finalizers, "resourceVersion": cluster.metadata.resource_version,
        }});
        match api.patch(&cluster.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await {
            // Another one wrote, too.
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
            Err(error) => Err(error).context("hold a Cluster"),
        }
    }

    async fn is_reached(&self, plane: &Client, cluster: &DynamicObject) -> Result<bool> {
        let name = cluster.name_any();
        if cluster.data["spec"]["syncMode"] == "Pull" {
            let Some(member) = self.member(&name) else { return Ok(false) };
            let agents: Api<Deployment> = Api::namespaced(member, "karmada-system");
            let rights: Api<ClusterRoleBinding> = Api::all(plane.clone());
            let right = rights.get_opt(&format!("system:karmada:{name}:agent")).await?;
            return Ok(agents.get_opt("karmada-agent").await?.is_some() && right.is_some());
        }
        let secrets: Api<Secret> = Api::namespaced(plane.clone(), "karmada-cluster");
        let data = secrets.get(&name).await?.data.unwrap_or_default();
        let text = |key: &str| data.get(key).map(|value| String::from_utf8_lossy(&value.0).into_owned());
        let (ca, token) = (text("caBundle").context("no authority")?, text("token").context("no token")?);
        let client = client_with(&cluster.data["spec"]["apiEndpoint"], &ca, &token).await?;
        Ok(client.request_text(http::Request::get("/readyz").body(Vec::new())?).await.is_ok())
    }
}

/// The plane's kube-controller-manager does not run: what is in a namespace that goes was removed by the operator.
async fn end_namespaces(plane: &Client) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(plane.clone());
    let going = |namespace: &Namespace| namespace.metadata.deletion_timestamp.is_some();
    for mut namespace in namespaces.list(&ListParams::default()).await?.into_iter().filter(going) {
        let name = namespace.name_any();
        namespace.spec = None;
        let request = http::Request::put(format!("/api/v1/namespaces/{name}/finalize"));
        let request = request.header("content-type", "application/json").body(serde_json::to_vec(&namespace)?)?;
        // It may be gone already.
        let _ = plane.request::<Value>(request).await;
    }
    Ok(())
}

/// A client of a member as Karmada makes one: by the token, and trusting these authorities alone.
pub async fn client_with(server: &Value, ca: &str, token: &str) -> Result<Client> {
    use base64::Engine;
    let ca = base64::engine::general_purpose::STANDARD.encode(ca);
    let kubeconfig: Kubeconfig = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "m",
        "clusters": [{"name": "m", "cluster": {"server": server, "certificate-authority-data": ca}}],
        "users": [{"name": "m", "user": {"token": token}}],
        "contexts": [{"name": "m", "context": {"cluster": "m", "user": "m"}}],
    }))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}
