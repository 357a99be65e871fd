//! A backup of an etcd over its endpoints: this program speaks TLS to a member itself, and no machine is involved.

use std::io;

use backup::{BackupError, Store, Task};
use crds::Reason;
use crds::backup::BackupInputs;
use crds::etcd_backup::BackupContent;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};

use super::abandoned::cleaned;
use super::reach::Reach;
use super::secrets::{bundle, credentials, tls};
use super::work::content;
use crate::inputs::address;
use crate::secrets::Secrets;

/// What is needed to take the backup.
pub struct OverEndpoints {
    inputs: BackupInputs,
    secrets: Secrets,
}

/// Why there is no backup.
pub struct EndpointsFailure {
    /// CamelCase.
    pub reason: String,
    /// One sentence.
    pub message: String,
    /// Another attempt may help.
    pub retriable: bool,
}

impl OverEndpoints {
    /// The backup of these inputs, with the run's secrets.
    pub fn new(inputs: &BackupInputs, secrets: &Secrets) -> Self {
        Self { inputs: inputs.clone(), secrets: secrets.clone() }
    }

    /// Takes the backup, and asks the storage whether it is whole. Reports the bytes that are stored. Returns when it
    /// is there, has failed, or was canceled and what was begun is taken back. An error: it could not be started.
    pub fn run(
        self,
        report: mpsc::UnboundedSender<u64>,
        canceled: oneshot::Receiver<()>,
    ) -> io::Result<Result<BackupContent, EndpointsFailure>> {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let reach = runtime.block_on(Reach::new(self.inputs.etcd.as_ref(), &self.secrets))?;
        Ok(runtime.block_on(async {
            let taken = tokio::select! {
                taken = self.taken(reach, report) => Some(taken),
                _ = canceled => None,
            };
            match taken {
                Some(taken) => taken.map_err(|error| EndpointsFailure {
                    reason: error.reason().to_owned(),
                    message: error.to_string(),
                    retriable: error.retriable(),
                }),
                None => {
                    cleaned().await;
                    Err(EndpointsFailure {
                        reason: Reason::BackupFailed.into(),
                        message: "the backup was given up: the run was stopped".to_owned(),
                        retriable: true,
                    })
                }
            }
        }))
    }

    async fn taken(&self, reach: Reach, report: mpsc::UnboundedSender<u64>) -> Result<BackupContent, BackupError> {
        let (tls, bundle) = (tls(&self.secrets), bundle(&self.secrets));
        let store = Store::open(&self.inputs.storage, &credentials(&self.secrets)).await?;
        let etcd = self.inputs.etcd.as_ref();
        let endpoints = etcd.map(|etcd| etcd.endpoints.as_slice()).unwrap_or_default();
        let prefix = etcd.and_then(|etcd| etcd.prefix.as_deref());
        let dial = move |url| reach.clone().dial(url);
        let url = backup::choose(endpoints, prefix, &tls, dial.clone()).await?;
        let task = Task {
            inputs: &self.inputs,
            member: address(&url).unwrap_or(&url),
            url: &url,
            tls: &tls,
            bundle: &bundle,
            store: &store,
            spool: None,
        };
        let to = url.clone();
        // Nobody may be there to hear of it any more.
        let progress = move |bytes| {
            let _ = report.send(bytes);
        };
        backup::take(&task, move || dial(to.clone()), progress).await?;
        let manifest = backup::verify(&store, &self.inputs.location).await?;
        Ok(content(&manifest, &self.inputs.location))
    }
}
