//! What a kubelet would do with the Jobs that run Helm: their command runs beside the test, with the files of its
//! Secret, and its Pod says what came of it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, PodSpec, Secret, ServiceAccount};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use tokio::process::Command;
use tokio::task::JoinHandle;

const LABEL: &str = "clusterwright.dev/cluster-addon";

/// It works until it is dropped.
pub struct Kubelet {
    output: Arc<Mutex<String>>,
    task: JoinHandle<()>,
}

impl Kubelet {
    /// Of the Jobs of a namespace.
    pub async fn start(client: Client, namespace: &str) -> Result<Self> {
        // No controller makes it here, and no Pod is admitted without.
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
        let account = json!({"metadata": {"name": "default"}});
        accounts.create(&PostParams::default(), &serde_json::from_value(account)?).await?;
        let executor = e2e::operator_process::executor()?;
        let helm = e2e::charts::program()?;
        let output = Arc::<Mutex<String>>::default();
        let (namespace, to) = (namespace.to_owned(), output.clone());
        let task = tokio::spawn(async move {
            loop {
                if let Err(error) = work(&client, &namespace, &executor, &helm, &to).await {
                    say(&to, &format!("the kubelet failed: {error:#}\n"));
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        });
        Ok(Self { output, task })
    }

    /// What all commands have said.
    pub fn output(&self) -> String {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn say(output: &Mutex<String>, text: &str) {
    output.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
}

/// Does what there is to do now.
async fn work(
    client: &Client,
    namespace: &str,
    executor: &PathBuf,
    helm: &PathBuf,
    output: &Mutex<String>,
) -> Result<()> {
    let labelled = ListParams::default().labels(LABEL);
    let jobs: Api<Job> = Api::namespaced(client.clone(), namespace);
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let there = pods.list(&labelled).await?.items;
    for job in jobs.list(&labelled).await?.items {
        let has_pod = |pod: &Pod| pod.owner_references().iter().any(|owner| Some(&owner.uid) == job.uid().as_ref());
        if there.iter().any(has_pod) {
            continue;
        }
        let spec = job.spec.clone().and_then(|spec| spec.template.spec).context("the Job has no Pod")?;
        let message = run(client, namespace, &spec, (executor, helm), output).await?;
        let labels = job.labels().clone();
        let pod = json!({
            "metadata": {"generateName": job.name_any() + "-", "labels": labels, "ownerReferences": [job.controller_owner_ref(&())]},
            "spec": spec,
        });
        let made = pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        let terminated = json!({"exitCode": 0, "message": message});
        let status = json!({"status": {"phase": "Succeeded", "containerStatuses": [{
            "name": "executor", "image": "x", "imageID": "x", "ready": false, "restartCount": 0, "state": {"terminated": terminated},
        }]}});
        pods.patch_status(&made.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
    }
    Ok(())
}

/// Runs the command of the Pod; its termination message.
async fn run(
    client: &Client,
    namespace: &str,
    spec: &PodSpec,
    (executor, helm): (&PathBuf, &PathBuf),
    output: &Mutex<String>,
) -> Result<String> {
    let place = tempfile::tempdir()?;
    let volumes = spec.volumes.as_deref().unwrap_or_default();
    let secret = volumes.iter().find_map(|volume| volume.secret.as_ref()?.secret_name.clone());
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let secret = secrets.get(&secret.context("the Pod has no Secret")?).await?;
    let inputs = place.path().join("inputs");
    std::fs::create_dir(&inputs)?;
    for (name, content) in secret.data.unwrap_or_default() {
        std::fs::write(inputs.join(name), content.0)?;
    }
    let (work, message) = (place.path().join("work"), place.path().join("message"));
    let container = spec.containers.first().context("the Pod has no container")?;
    let arguments = container.args.iter().flatten().map(|argument| match argument.as_str() {
        "/inputs" => inputs.clone(),
        "/work" => work.clone(),
        argument => argument.into(),
    });
    let mut command = Command::new(executor);
    command.args(arguments).arg("--helm").arg(helm).arg("--termination-message").arg(&message);
    let ran = command.env_clear().kill_on_drop(true).output().await?;
    say(output, &String::from_utf8_lossy(&ran.stdout));
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    ensure!(ran.status.code() == Some(0), "the executor ended with {}: {said}", ran.status);
    let message = std::fs::read_to_string(&message)?;
    say(output, &format!("{said}{message}\n"));
    Ok(message)
}
