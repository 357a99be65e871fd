//! What Jobs and executors would do: for each Job its Pod runs and ends, all steps have succeeded, and machines that
//! joined register their Nodes. A stand-in for kubelets, Pods and Ansible.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use crds::step::{Intent, Step};
use crds::{Host, PlaybookRun};
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::fleet::{self, NAMESPACE};
use crate::targets::Targets;

/// Plays the Jobs of the namespace.
pub struct Executor(Arc<State>);

struct State {
    client: Client,
    targets: Arc<Targets>,
    played: Mutex<HashSet<String>>,
    /// When the first Job of a cluster was seen since the last time that this was forgotten, by cluster.
    seen: Mutex<HashMap<String, Instant>>,
}

impl Executor {
    pub fn start(client: Client, targets: Arc<Targets>) -> Self {
        let state = Arc::new(State { client, targets, played: Mutex::default(), seen: Mutex::default() });
        tokio::spawn(follow(state.clone()));
        Self(state)
    }

    /// Jobs so far.
    pub fn jobs(&self) -> usize {
        self.0.played.lock().len()
    }

    pub fn forget(&self) {
        self.0.seen.lock().clear();
    }

    pub fn seen(&self) -> HashMap<String, Instant> {
        self.0.seen.lock().clone()
    }
}

async fn follow(state: Arc<State>) {
    let jobs: Api<Job> = Api::namespaced(state.client.clone(), NAMESPACE);
    let mut jobs = std::pin::pin!(watcher(jobs, watcher::Config::default()).default_backoff().applied_objects());
    while let Some(job) = jobs.next().await {
        let Ok(job) = job else { continue };
        if !state.played.lock().insert(job.uid().unwrap_or_default()) {
            continue;
        }
        if let Some(cluster) = job.labels().get(crds::names::label::CLUSTER) {
            state.seen.lock().entry(cluster.clone()).or_insert_with(Instant::now);
        }
        let state = state.clone();
        tokio::spawn(async move {
            let name = job.name_any();
            if let Err(error) = state.play(&job).await {
                eprintln!("Job {name}: {error:#}");
            }
        });
    }
}

impl State {
    async fn play(&self, job: &Job) -> Result<()> {
        let name = job.name_any();
        let runs: Api<PlaybookRun> = Api::namespaced(self.client.clone(), NAMESPACE);
        let run = runs.get(&name).await.context("failed to read the run")?;
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        pods.create(&PostParams::default(), &pod(job)?).await.context("failed to create the Pod")?;
        let now = Timestamp::from_second(Timestamp::now().as_second())?.to_string();
        let state = json!({"running": {"startedAt": now}});
        set_state(&pods, &name, "Running", &now, state).await?;

        let hosts = self.results(&run).await?;
        let executor = json!({"status": {
            "steps": run.spec.steps.iter().map(|step| json!({"name": step, "phase": "Succeeded", "startedAt": now, "finishedAt": now})).collect::<Vec<_>>(),
            "hosts": hosts,
            "outcome": {
                "phase": "Succeeded", "reason": "Complete", "message": "done", "hostsOk": run.spec.hosts.len(),
                "hostsFailed": 0, "digest": digest(job),
            },
        }});
        let patch = Patch::Merge(executor);
        runs.patch_status(&name, &PatchParams::default(), &patch).await.context("failed to report")?;
        let state = json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}});
        set_state(&pods, &name, "Succeeded", &now, state).await
    }

    /// What comes out for each host; those that joined have their Nodes then.
    async fn results(&self, run: &PlaybookRun) -> Result<Vec<Value>> {
        let hosts: Api<Host> = Api::namespaced(self.client.clone(), NAMESPACE);
        let changes = !run.spec.intent.changes_nothing();
        let joins = changes && run.spec.steps.iter().any(|step| [Step::Node, Step::ControlPlane].contains(step));
        let cluster = run.spec.cluster_name.as_deref().and_then(fleet::number);
        let mut results = Vec::new();
        for name in &run.spec.hosts {
            let mut result = json!({"name": name, "ok": 3, "changed": 1});
            let number = fleet::number(name).context("no Host of the fleet")?;
            if run.spec.intent == Intent::Probe {
                result["clean"] = true.into();
                result["facts"] = json!({
                    "osImage": "Debian GNU/Linux 12 (bookworm)", "kernel": "6.1.0", "architecture": "amd64",
                    "cpus": 8, "memoryMiB": 16384, "machineId": format!("{number:032x}"),
                });
            }
            if let Some(cluster) = cluster.filter(|_| joins) {
                let host = hosts.get(name).await.context("failed to read a Host")?;
                self.targets.register(cluster, name, &host.spec.address);
                if run.spec.intent == Intent::Install {
                    result["etcd"] = json!({"memberID": format!("{number:x}"), "well": true});
                }
            }
            results.push(result);
        }
        Ok(results)
    }
}

/// The Pod that the Job controller would make.
fn pod(job: &Job) -> Result<Pod> {
    let template = job.spec.as_ref().map(|spec| &spec.template).context("a Job without a spec")?;
    let mut pod =
        Pod { metadata: template.metadata.clone().unwrap_or_default(), spec: template.spec.clone(), status: None };
    pod.metadata.name = job.metadata.name.clone();
    pod.metadata.namespace = job.metadata.namespace.clone();
    pod.metadata.owner_references = Some(serde_json::from_value(json!([{
        "apiVersion": "batch/v1", "kind": "Job", "name": job.name_any(), "uid": job.uid(), "controller": true,
    }]))?);
    if let Some(spec) = &mut pod.spec {
        spec.node_name = Some("simulated".into());
    }
    Ok(pod)
}

async fn set_state(pods: &Api<Pod>, name: &str, phase: &str, now: &str, state: Value) -> Result<()> {
    let status = json!({"status": {
        "phase": phase, "startTime": now,
        "containerStatuses": [{
            "name": "executor", "ready": phase == "Running", "restartCount": 0, "image": "executor", "imageID": "",
            "state": state,
        }],
    }});
    pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await
        .context("failed to write the Pod's status")?;
    Ok(())
}

/// Of the frozen inputs, as the Job's arguments have it.
fn digest(job: &Job) -> Option<String> {
    let container = job.spec.as_ref()?.template.spec.as_ref()?.containers.first()?;
    let mut arguments = container.args.iter().flatten();
    arguments.find(|argument| *argument == "--digest")?;
    arguments.next().cloned()
}
