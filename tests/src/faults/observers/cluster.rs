//! An install as the API shows it, watched all the time: the status's messages with their times, the runs, and the
//! UID of the new cluster's kube-system.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crds::playbook_run::PlaybookRunStatus;
use crds::{ClusterDeployment, PlaybookRun, conditions, names};
use futures::{StreamExt, pin_mut};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use tokio::task::JoinHandle;

use crate::client::client_of;

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
pub struct ClusterObserver {
    view: Arc<Mutex<View>>,
    tasks: Vec<JoinHandle<()>>,
}

impl ClusterObserver {
    /// Looks at the cluster of this name.
    pub fn start(client: &Client, namespace: &str, cluster: &str) -> Self {
        let view = Arc::new(Mutex::new(View::default()));
        let clusters = Api::namespaced(client.clone(), namespace);
        let runs = Api::namespaced(client.clone(), namespace);
        let secrets = Api::namespaced(client.clone(), namespace);
        let tasks = vec![
            tokio::spawn(watch_cluster(clusters, cluster.to_owned(), view.clone())),
            tokio::spawn(watch_runs(runs, cluster.to_owned(), view.clone())),
            tokio::spawn(ask(secrets, cluster.to_owned(), view.clone())),
        ];
        Self { view, tasks }
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

impl Drop for ClusterObserver {
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
            self.said.push(Said { at: Timestamp::now(), text: text.to_owned() });
        }
    }

    fn see(&mut self, cluster: Option<ClusterDeployment>) {
        if let Some(status) = cluster.as_ref().and_then(|cluster| cluster.status.as_ref()) {
            for condition in &status.conditions {
                self.hear(&condition.message);
            }
            self.hear(status.message.as_deref().unwrap_or_default());
            self.generation_waited |= status.pending_generation.is_some();
        }
        self.cluster = cluster;
    }
}

async fn watch_cluster(clusters: Api<ClusterDeployment>, name: String, view: Arc<Mutex<View>>) {
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let events = watcher(clusters, config).default_backoff();
    pin_mut!(events);
    let mut listed = None;
    while let Some(event) = events.next().await {
        // An API that does not answer for a moment has told nothing.
        let Ok(event) = event else { continue };
        let mut view = view.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Apply(cluster) => view.see(Some(cluster)),
            Event::Delete(_) => view.see(None),
            Event::Init => listed = None,
            Event::InitApply(cluster) => listed = Some(cluster),
            Event::InitDone => view.see(listed.take()),
        }
    }
}

async fn watch_runs(runs: Api<PlaybookRun>, cluster: String, view: Arc<Mutex<View>>) {
    let config = watcher::Config::default().labels(&format!("{}={cluster}", names::label::CLUSTER));
    let events = watcher(runs, config).default_backoff();
    pin_mut!(events);
    while let Some(event) = events.next().await {
        // What is gone stays as it was seen last.
        if let Ok(Event::Apply(run) | Event::InitApply(run)) = event {
            let mut view = view.lock().unwrap_or_else(PoisonError::into_inner);
            view.runs.insert(run.name_any(), run);
        }
    }
}

async fn ask(secrets: Api<Secret>, cluster: String, view: Arc<Mutex<View>>) {
    loop {
        if let Ok(Some(uid)) = kube_system(&secrets, &cluster).await {
            view.lock().unwrap_or_else(PoisonError::into_inner).uids.insert(uid);
        }
        tokio::time::sleep(UID_INTERVAL).await;
    }
}

async fn kube_system(secrets: &Api<Secret>, cluster: &str) -> anyhow::Result<Option<String>> {
    let Some(secret) = secrets.get_opt(&names::kubeconfig_secret(cluster)).await? else {
        return Ok(None);
    };
    let kubeconfig = secret.data.unwrap_or_default().remove(names::KUBECONFIG_KEY).unwrap_or_default();
    let client = client_of(&String::from_utf8(kubeconfig.0)?).await?;
    let asked = Api::<Namespace>::all(client);
    Ok(asked.get("kube-system").await?.uid())
}
