//! A scenario: a namespace of the metadata cluster with machines of its own, taken down again whatever happens.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use crds::playbook_run::RunPhase;
use crds::{
    ClusterDeployment, EtcdBackup, EtcdRestore, Host, KarmadaDeployment, Machine, PlaybookRun, conditions, names,
};
use futures::FutureExt;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use lab::Lab;
use lab::machines::{self, MachineOptions};
use lab::rootfs::Release;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use crate::client::{apply, client_of};
use crate::eventually::{Look, eventually};
use crate::{operator, report};

/// A namespace, its machines, and a client of the metadata cluster.
pub struct Scenario {
    /// The namespace's name; machines' names begin with it too.
    pub name: String,
    /// A client of the metadata cluster, as its administrator.
    pub client: Client,
    lab: Lab,
    started: Instant,
}

/// Runs a scenario on the lab that is up, and takes down all that it made, also when it fails. On failure the state of
/// its objects is printed first.
pub async fn scenario(name: &str, body: impl AsyncFnOnce(&Scenario) -> Result<()>) {
    if let Err(error) = within(name, body).await {
        panic!("{error:?}");
    }
}

/// As `scenario`, for who goes on when one fails.
pub async fn within<T>(name: &str, body: impl AsyncFnOnce(&Scenario) -> Result<T>) -> Result<T> {
    let scenario = Scenario::begin(name).await.context("the lab is not ready; `make lab-up` starts it")?;
    let outcome = AssertUnwindSafe(body(&scenario)).catch_unwind().await;
    if !matches!(outcome, Ok(Ok(_))) {
        report::print(&scenario.client, &scenario.name).await;
        println!("{}", operator::log(scenario.lab.place(), &scenario.name));
    }
    let cleaned = scenario.end().await;
    let held = outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    cleaned.context("the scenario held, but its clean-up failed")?;
    Ok(held)
}

impl Scenario {
    async fn begin(name: &str) -> Result<Self> {
        let lab = block_in_place(Lab::open)?;
        let client = client_of(&std::fs::read_to_string(lab.kubeconfig())?).await?;
        let scenario = Self { name: name.to_owned(), client, lab, started: Instant::now() };
        scenario.end().await.context("failed to clear what an earlier run left")?;
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
        });
        scenario.apply(&namespace).await?;
        let secret = scenario.lab.secret_manifest(name)?;
        scenario.apply(&secret).await?;
        block_in_place(|| operator::start(&scenario.lab, name))?;
        Ok(scenario)
    }

    /// The lab that its machines are of.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// Says how far the scenario is, with the seconds since its start.
    pub fn say(&self, what: &str) {
        println!("[{:>6.1} s] {}: {what}", self.started.elapsed().as_secs_f64(), self.name);
    }

    /// The name of the scenario's machine `suffix`.
    pub fn machine_name(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.name)
    }

    /// Adds machines, all at once, and their Hosts.
    pub async fn machines(&self, suffixes: &[&str]) -> Result<Vec<machines::Machine>> {
        self.machines_of(suffixes.iter().map(|suffix| (*suffix, Release::default())).collect()).await
    }

    /// The same, each of a release.
    pub async fn machines_of(&self, all: Vec<(&str, Release)>) -> Result<Vec<machines::Machine>> {
        let of = |(suffix, release)| MachineOptions { release, ..MachineOptions::named(&self.machine_name(suffix)) };
        let options = all.into_iter().map(of).collect();
        let added = block_in_place(|| self.lab.add_machines(options))?;
        for machine in &added {
            self.apply(&Lab::host_manifest(machine, &self.name)).await?;
        }
        self.say(&format!("{} machines run", added.len()));
        Ok(added)
    }

    /// Adds one machine, without a Host.
    pub async fn machine(&self, options: MachineOptions) -> Result<machines::Machine> {
        block_in_place(|| self.lab.add_machine(options))
    }

    /// Runs a command on a machine as root; it must succeed.
    pub async fn ssh(&self, machine: &machines::Machine, command: &str) -> Result<String> {
        block_in_place(|| machine.ssh_target().succeed(command, Duration::from_secs(60)))
    }

    /// Applies an object as `kubectl apply --server-side --validate=strict` does.
    pub async fn apply(&self, object: &Value) -> Result<DynamicObject> {
        apply(&self.client, object).await
    }

    /// The API of a kind in the scenario's namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Waits until a ClusterDeployment is Ready in its present generation.
    pub async fn ready(&self, cluster: &str, deadline: Duration) -> Result<ClusterDeployment> {
        let api = self.api::<ClusterDeployment>();
        let mut last = String::new();
        eventually(&format!("ClusterDeployment {cluster} Ready"), deadline, async || {
            let object = api.get(cluster).await?;
            let status = object.status.clone().unwrap_or_default();
            let message = status.message.clone().unwrap_or_default();
            if message != last {
                self.say(&format!("{cluster}: {message}"));
                last.clone_from(&message);
            }
            let current = status.observed_generation == object.metadata.generation;
            Ok(if current && conditions::is_true(&status.conditions, names::condition::READY) {
                Look::Done(object)
            } else {
                Look::Waiting(message)
            })
        })
        .await
    }

    /// Waits until a run is over, and gives it.
    pub async fn finished(&self, run: &str, deadline: Duration) -> Result<PlaybookRun> {
        let api = self.api::<PlaybookRun>();
        eventually(&format!("PlaybookRun {run} over"), deadline, async || {
            let object = api.get(run).await?;
            let status = object.status.clone().unwrap_or_default();
            Ok(match status.phase {
                Some(phase) if phase.is_final() => Look::Done(object),
                _ => Look::Waiting(status.message.unwrap_or_default()),
            })
        })
        .await
    }

    /// Waits until a run is over and has succeeded, and gives it.
    pub async fn succeeded(&self, run: &str, deadline: Duration) -> Result<PlaybookRun> {
        let object = self.finished(run, deadline).await?;
        let status = object.status.clone().unwrap_or_default();
        if status.phase != Some(RunPhase::Succeeded) {
            bail!("run {run} ended {:?}: {}", status.phase, status.message.unwrap_or_default());
        }
        Ok(object)
    }

    /// The kubeconfig of a cluster that was built here, from its Secret.
    pub async fn kubeconfig(&self, cluster: &str) -> Result<String> {
        let secret = self.api::<Secret>().get(&names::kubeconfig_secret(cluster)).await?;
        let name = secret.name_any();
        let kubeconfig = secret.data.unwrap_or_default().remove(names::KUBECONFIG_KEY);
        let kubeconfig = kubeconfig.ok_or_else(|| anyhow!("Secret {name} has no key {}", names::KUBECONFIG_KEY))?;
        Ok(String::from_utf8(kubeconfig.0)?)
    }

    /// A client of a cluster that was built here.
    pub async fn cluster_client(&self, cluster: &str) -> Result<Client> {
        client_of(&self.kubeconfig(cluster).await?).await
    }

    /// Deletes a ClusterDeployment and waits until it is gone.
    pub async fn delete_cluster(&self, cluster: &str, deadline: Duration) -> Result<()> {
        let api = self.api::<ClusterDeployment>();
        api.delete(cluster, &DeleteParams::default()).await?;
        eventually(&format!("ClusterDeployment {cluster} gone"), deadline, async || {
            Ok(match api.get_opt(cluster).await? {
                None => Look::Done(()),
                Some(object) => Look::Waiting(object.status.and_then(|s| s.message).unwrap_or_default()),
            })
        })
        .await
    }

    async fn end(&self) -> Result<()> {
        let prefix = format!("{}-", self.name);
        block_in_place(|| -> Result<()> {
            for machine in machines::list(self.lab.place())? {
                if machine.name().starts_with(&prefix) {
                    machine.remove()?;
                }
            }
            operator::stop(self.lab.place(), &self.name)
        })?;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        if namespaces.get_opt(&self.name).await?.is_none() {
            return Ok(());
        }
        namespaces.delete(&self.name, &DeleteParams::default()).await?;
        // The machines are gone, so nothing can be cleaned: the finalizers that wait for it are taken off by hand.
        eventually(&format!("namespace {} gone", self.name), Duration::from_secs(120), async || {
            self.strip::<ClusterDeployment>().await?;
            self.strip::<KarmadaDeployment>().await?;
            self.strip::<Machine>().await?;
            self.strip::<Host>().await?;
            self.strip::<PlaybookRun>().await?;
            self.strip::<EtcdBackup>().await?;
            self.strip::<EtcdRestore>().await?;
            self.strip::<k8s_openapi::api::batch::v1::Job>().await?;
            self.strip::<k8s_openapi::api::core::v1::Pod>().await?;
            Ok(match namespaces.get_opt(&self.name).await? {
                None => Look::Done(()),
                Some(_) => Look::Waiting("still terminating".into()),
            })
        })
        .await
    }

    async fn strip<K>(&self) -> Result<()>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        let api = self.api::<K>();
        for object in api.list(&ListParams::default()).await? {
            if object.finalizers().iter().any(|finalizer| finalizer.starts_with(names::GROUP)) {
                let nothing = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                api.patch(&object.name_any(), &PatchParams::default(), &nothing).await?;
            }
        }
        Ok(())
    }
}
