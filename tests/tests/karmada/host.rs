//! What a host cluster would do: nothing runs there but the plane's etcd and API server, which are real; of all other
//! workloads it is only said that they are ready. Their leaders renew their Leases, and the
//! plane is answered when it is probed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use e2e::karmada::probe;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::NAMESPACE;
use crate::programs::Programs;

/// Whose leader holds which Lease of the plane.
const LEASES: [(&str, &str, &str); 3] = [
    ("k1-kube-controller-manager", "kube-system", "kube-controller-manager"),
    ("k1-scheduler", "karmada-system", "karmada-scheduler"),
    ("k1-controller-manager", "karmada-system", "karmada-controller-manager"),
];

/// The workloads in the order in which each was ready first; clones are the same.
#[derive(Clone, Default)]
pub struct Host {
    ready: Arc<Mutex<Vec<String>>>,
}

impl Host {
    /// Starts to make workloads ready.
    pub fn start(client: Client, programs: Programs) -> Self {
        let host = Self::default();
        let own = host.clone();
        tokio::spawn(async move {
            loop {
                if let Err(error) = own.pass(&client, &programs).await {
                    println!("the stand-in of the host: {error:#}");
                }
                sleep(Duration::from_millis(200)).await;
            }
        });
        host
    }

    /// The workloads in the order in which each was ready first.
    pub fn order(&self) -> Vec<String> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn pass(&self, client: &Client, programs: &Programs) -> Result<()> {
        let sets: Api<StatefulSet> = Api::namespaced(client.clone(), NAMESPACE);
        for set in sets.list(&ListParams::default()).await? {
            programs.etcd(&set).await?;
            self.make_ready(&sets, &set, "StatefulSet").await?;
        }
        let jobs: Api<Job> = Api::namespaced(client.clone(), NAMESPACE);
        for job in jobs.list(&ListParams::default()).await? {
            if job.status.as_ref().is_none_or(|status| status.completion_time.is_none()) {
                programs.restore(&job)?;
                complete(&jobs, &job.name_any()).await?;
            }
        }
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
        let mut there = BTreeSet::new();
        for deployment in deployments.list(&ListParams::default()).await? {
            if deployment.name_any() == "k1-apiserver" {
                programs.api_server(&deployment).await?;
            }
            self.make_ready(&deployments, &deployment, "Deployment").await?;
            there.insert(deployment.name_any());
        }
        if let Some(plane) = programs.plane().filter(|_| there.contains("k1-controller-manager")) {
            // Kinds and webhooks may not be there yet.
            let _ = probe::answer(&plane).await;
        }
        self.renew(programs, &there).await
    }

    async fn make_ready<K>(&self, api: &Api<K>, object: &K, kind: &str) -> Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug,
    {
        let value = serde_json::to_value(object)?;
        let (generation, replicas) = (&value["metadata"]["generation"], &value["spec"]["replicas"]);
        if value["status"]["observedGeneration"] == *generation && value["status"]["readyReplicas"] == *replicas {
            return Ok(());
        }
        let mut status = json!({
            "observedGeneration": generation, "replicas": replicas, "readyReplicas": replicas,
            "updatedReplicas": replicas, "availableReplicas": replicas,
        });
        if kind == "StatefulSet" {
            status["currentRevision"] = json!("a");
            status["updateRevision"] = json!("a");
        }
        let name = object.name_any();
        let patch = json!({ "status": status });
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.context("make it ready")?;
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if !ready.contains(&name) {
            ready.push(name);
        }
        Ok(())
    }

    async fn renew(&self, programs: &Programs, there: &BTreeSet<String>) -> Result<()> {
        let Some(plane) = programs.plane() else { return Ok(()) };
        for (workload, namespace, name) in LEASES.iter().filter(|(workload, ..)| there.contains(*workload)) {
            let leases: Api<Lease> = Api::namespaced(plane.clone(), namespace);
            let now = jiff::Timestamp::now().to_string();
            let lease: Value = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
                "spec": {"holderIdentity": workload, "leaseDurationSeconds": 15, "renewTime": micros(&now)},
            });
            // Its namespace may not be there yet.
            let _ = leases.patch(name, &PatchParams::apply("leader").force(), &Patch::Apply(&lease)).await;
        }
        Ok(())
    }
}

/// Says that a Job has done its work.
pub async fn complete(jobs: &Api<Job>, name: &str) -> Result<()> {
    let now = jiff::Timestamp::now().to_string();
    let now = format!("{}Z", now.get(..19).unwrap_or(&now));
    let condition = |type_: &str| json!({"type": type_, "status": "True", "reason": "Done", "message": "", "lastProbeTime": now, "lastTransitionTime": now});
    let conditions = [condition("SuccessCriteriaMet"), condition("Complete")];
    let status = json!({"status": {
        "startTime": now, "completionTime": now, "succeeded": 1, "ready": 0, "terminating": 0, "conditions": conditions,
    }});
    jobs.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.context("complete a Job")?;
    Ok(())
}

/// As a MicroTime is written.
fn micros(time: &str) -> String {
    let seconds = time.get(..19).unwrap_or(time);
    format!("{seconds}.000000Z")
}
