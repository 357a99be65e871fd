//! What the API says of an install, asked all the time: the status's sentences with their times, the runs, and the UID of
//! the new cluster's kube-system.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crds::playbook_run::PlaybookRunStatus;
use crds::{ClusterDeployment, PlaybookRun, conditions, names};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use tokio::task::JoinHandle;

use crate::client::client_of;

const INTERVAL: Duration = Duration::from_millis(200);
/// How often the new cluster's own API is asked.
const UID_INTERVAL: Duration = Duration::from_secs(2);

/// A sentence of the ClusterDeployment's status.
#[derive(Clone, Debug)]
pub struct Said {
    /// When it was first seen.
    pub at: Timestamp,
    /// What it said.
    pub text: String,
}

/// What has been seen so far.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The ClusterDeployment; none before it is there, and after it is gone.
    pub cluster: Option<ClusterDeployment>,
    /// Each run as it was seen last, also one that is gone.
    pub runs: BTreeMap<String, PlaybookRun>,
    /// All sentences, in order.
    pub said: Vec<Said>,
    /// The UIDs of kube-system.
    pub uids: BTreeSet<String>,
    /// Whether the status ever named a generation that waits.
    pub generation_waited: bool,
}

/// Looks until it is dropped.
pub struct Sight {
    view: Arc<Mutex<View>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Sight {
    /// Looks at the cluster of this name.
    pub fn of(client: &Client, namespace: &str, cluster: &str) -> Self {
        let view = Arc::new(Mutex::new(View::default()));
        let looking = look(
            client.clone(),
            namespace.to_owned(),
            cluster.to_owned(),
            view.clone(),
        );
        let asking = ask(
            client.clone(),
            namespace.to_owned(),
            cluster.to_owned(),
            view.clone(),
        );
        Self {
            view,
            tasks: vec![tokio::spawn(looking), tokio::spawn(asking)],
        }
    }

    /// What has been seen so far.
    pub fn view(&self) -> View {
        self.view.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Answers from what has been seen so far, without a copy.
    pub fn with<T>(&self, question: impl FnOnce(&View) -> T) -> T {
        question(&self.view.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Sight {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl View {
    /// Whether the cluster is Ready in its present generation.
    pub fn is_ready(&self) -> bool {
        self.cluster.as_ref().is_some_and(|cluster| {
            let status = cluster.status.clone().unwrap_or_default();
            status.observed_generation == cluster.metadata.generation
                && conditions::is_true(&status.conditions, names::condition::READY)
        })
    }

    /// The status of a run, as it was seen last.
    pub fn run(&self, name: &str) -> Option<&PlaybookRunStatus> {
        self.runs.get(name)?.status.as_ref()
    }

    /// The last sentence.
    pub fn last_said(&self) -> &str {
        self.said.last().map_or("nothing", |said| &said.text)
    }

    fn hear(&mut self, text: &str) {
        // Only what is new: a condition says the same for a long time, and two of them take turns in the list.
        let recent = self.said.iter().rev().take(12);
        if !text.is_empty() && !recent.into_iter().any(|said| said.text == text) {
            self.said.push(Said {
                at: Timestamp::now(),
                text: text.to_owned(),
            });
        }
    }

    fn see(&mut self, cluster: Option<ClusterDeployment>, runs: Vec<PlaybookRun>) {
        if let Some(status) = cluster.as_ref().and_then(|cluster| cluster.status.as_ref()) {
            for condition in &status.conditions {
                self.hear(&condition.message);
            }
            self.hear(status.message.as_deref().unwrap_or_default());
            self.generation_waited |= status.pending_generation.is_some();
        }
        self.cluster = cluster;
        self.runs
            .extend(runs.into_iter().map(|run| (run.name_any(), run)));
    }
}

async fn look(client: Client, namespace: String, cluster: String, view: Arc<Mutex<View>>) {
    let clusters: Api<ClusterDeployment> = Api::namespaced(client.clone(), &namespace);
    let runs: Api<PlaybookRun> = Api::namespaced(client, &namespace);
    let ours = ListParams::default().labels(&format!("{}={cluster}", names::label::CLUSTER));
    loop {
        // An API that does not answer for a moment has told nothing.
        if let (Ok(cluster), Ok(runs)) = (clusters.get_opt(&cluster).await, runs.list(&ours).await) {
            view.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .see(cluster, runs.items);
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn ask(client: Client, namespace: String, cluster: String, view: Arc<Mutex<View>>) {
    let secrets: Api<Secret> = Api::namespaced(client, &namespace);
    loop {
        if let Ok(Some(uid)) = kube_system(&secrets, &cluster).await {
            view.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .uids
                .insert(uid);
        }
        tokio::time::sleep(UID_INTERVAL).await;
    }
}

async fn kube_system(secrets: &Api<Secret>, cluster: &str) -> anyhow::Result<Option<String>> {
    let Some(secret) = secrets.get_opt(&names::kubeconfig_secret(cluster)).await? else {
        return Ok(None);
    };
    let kubeconfig = secret
        .data
        .unwrap_or_default()
        .remove(names::KUBECONFIG_KEY)
        .unwrap_or_default();
    let client = client_of(&String::from_utf8(kubeconfig.0)?).await?;
    let asked = Api::<Namespace>::all(client);
    Ok(asked.get("kube-system").await?.uid())
}
