//! What the planner of charts looks at in the metadata cluster.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};

/// Jobs that run Helm, and what they are made from.
#[derive(Clone, Debug, Default)]
pub struct ChartSeen {
    /// The executor's image.
    pub image: String,
    /// Jobs of the ClusterAddon, while one is under way.
    pub jobs: Vec<Job>,
    /// Their Pods.
    pub pods: Vec<Pod>,
    /// The cluster's kubeconfig; or why there is none.
    pub kubeconfig: Option<String>,
    /// The Secret of `credentialsRef`.
    pub credentials: Option<Secret>,
    /// The ConfigMap of `caRef`.
    pub ca: Option<ConfigMap>,
}
