//! Kubeconfigs that a run reads on its machines: Ansible's action puts them into the run's private directory, and from
//! there they go into the Secret that was made for them. They are in memory, and nowhere else on their way.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use crds::inputs::RunInputs;
use crds::names::read_kubeconfigs_secret;
use crds::step::Step;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use thiserror::Error;
use tokio::time::{sleep, timeout};

use crate::api_client;
use crate::workdir::Workdir;

/// Where the action puts them, one file a host.
const DIRECTORY: &str = "kubeconfigs";
/// How often the Secret is written, and how long each time may take.
const ATTEMPTS: u32 = 5;
const ONE: Duration = Duration::from_secs(10);

/// They are not in their Secret.
#[derive(Debug, Error)]
pub enum NotKept {
    /// A run by hand has none.
    #[error("a kubeconfig is read in a PlaybookRun alone: by hand there is no Secret that takes it")]
    NoSecret,
    /// The private directory.
    #[error("failed to use the private directory")]
    Directory(#[from] io::Error),
    /// The API.
    #[error("failed to write Secret {secret}")]
    Api {
        /// Namespace and name.
        secret: String,
        /// What the API said.
        #[source]
        source: Box<kube::Error>,
    },
    /// The API is silent.
    #[error("failed to write Secret {secret}: no answer within {} s", ONE.as_secs())]
    Silent {
        /// Namespace and name.
        secret: String,
    },
}

/// Whether a run reads some.
pub fn reads(model: &RunInputs) -> bool {
    model.steps.contains(&Step::ReadKubeconfig)
}

/// Makes the directory that takes them, of a run that may keep them.
///
/// # Errors
/// The run has no Secret, or no directory could be made.
pub fn prepare(workdir: &Workdir, model: &RunInputs, run: Option<&str>) -> Result<(), NotKept> {
    if !reads(model) {
        return Ok(());
    }
    run.ok_or(NotKept::NoSecret)?;
    workdir.directory(DIRECTORY)?;
    Ok(())
}

/// Puts what was read into the Secret of the run (NAMESPACE/NAME), which must be there: this may not make one.
///
/// # Errors
/// It was not written.
pub async fn keep(workdir: &Workdir, model: &RunInputs, run: Option<&str>) -> Result<(), NotKept> {
    if !reads(model) {
        return Ok(());
    }
    let (namespace, name) = run.and_then(|run| run.split_once('/')).ok_or(NotKept::NoSecret)?;
    let found = found(&workdir.path().join(DIRECTORY), model)?;
    if found.is_empty() {
        return Ok(());
    }
    let patch = Patch::Merge(json!({ "data": found }));
    let secret = read_kubeconfigs_secret(name);
    let title = format!("{namespace}/{secret}");
    let mut last = NotKept::Silent { secret: title.clone() };
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            sleep(Duration::from_secs(1 << attempt)).await;
        }
        let write = async {
            let api: Api<Secret> = Api::namespaced(api_client::client().await?, namespace);
            api.patch(&secret, &PatchParams::default(), &patch).await
        };
        last = match timeout(ONE, write).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => NotKept::Api { secret: title.clone(), source: Box::new(error) },
            Err(_) => NotKept::Silent { secret: title.clone() },
        };
    }
    Err(last)
}

/// What was read, by host.
fn found(directory: &Path, model: &RunInputs) -> io::Result<BTreeMap<String, ByteString>> {
    let mut found = BTreeMap::new();
    for host in model.hosts.keys() {
        match fs::read(directory.join(host)) {
            Ok(content) => drop(found.insert(host.clone(), ByteString(content))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use crds::step::Step;

    use super::{NotKept, found, keep, prepare};
    use crate::workdir::Workdir;

    #[tokio::test]
    async fn a_run_by_hand_reads_no_kubeconfig_and_others_need_no_secret() {
        let workdir = Workdir::make(&["/dev/shm".into()]).unwrap();
        let mut model = crate::example::model();
        assert!(prepare(&workdir, &model, None).is_ok() && keep(&workdir, &model, None).await.is_ok());
        model.steps = vec![Step::ReadKubeconfig];
        assert!(matches!(prepare(&workdir, &model, None), Err(NotKept::NoSecret)));
        prepare(&workdir, &model, Some("n/r")).unwrap();
        let directory = workdir.path().join("kubeconfigs");
        assert!(found(&directory, &model).unwrap().is_empty());
        let host = model.hosts.keys().next().unwrap().clone();
        std::fs::write(directory.join(&host), "text").unwrap();
        std::fs::write(directory.join("stranger"), "text").unwrap();
        let names: Vec<String> = found(&directory, &model).unwrap().into_keys().collect();
        assert_eq!(names, [host]);
    }
}
