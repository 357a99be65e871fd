//! What is done about a run.

use crds::inputs::RunInputs;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};

use crate::inputs::SecretsNeeded;
use crate::job::permission::Permission;

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put the finalizer on the run: from now on it ends in order.
    Hold,
    /// Write model and secrets where nothing changes them any more.
    Freeze {
        /// The immutable ConfigMap.
        config_map: Box<ConfigMap>,
        /// The model, which names the credentials.
        model: Box<RunInputs>,
        /// What the Secret must hold beside the credentials.
        needs: SecretsNeeded,
    },
    /// Create the empty Secret that takes what the run reads.
    MakeReceiver(Box<Secret>),
    /// Let the executor report on this run, fill that Secret, and nothing else.
    Permit(Box<Permission>),
    /// Create the Job.
    Start(Box<Job>),
    /// Give the Job this many seconds from its start.
    Prolong(Box<Job>, i64),
    /// Ask the Pod to end; it has its grace period.
    StopPod(Box<Pod>),
    /// End the Pod at once.
    KillPod(Box<Pod>),
    /// Delete the Job, so that it makes no Pod.
    StopJob(Box<Job>),
    /// Keep the log in these ConfigMaps.
    KeepLog(Vec<ConfigMap>),
    /// Take the finalizer off the Pod.
    ReleasePod(Box<Pod>),
    /// Take the finalizer off the Job.
    ReleaseJob(Box<Job>),
    /// Take back what the executor may do: nobody reports any more.
    Withdraw,
    /// Delete the frozen Secret: nobody reads it any more.
    DropSecrets,
    /// Take the finalizer off the run.
    Release,
}
