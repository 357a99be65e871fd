//! Clusters that are members: real API servers and controllers of Kubernetes, and nothing that runs Pods.

use std::sync::Arc;

use anyhow::Result;
use kube::Client;
use serde_json::json;

use super::processes::{Named, named};
use super::settings::{Setting, flags};
use crate::api_server::{ApiServer, Flags};

/// A cluster that does what a join needs, so that many fit on one machine: with a part of one etcd for all, of the APIs
/// a few, and the controller that makes tokens.
pub struct Small {
    server: Arc<ApiServer>,
    /// The one whose etcd it shares.
    _first: Option<Arc<ApiServer>>,
}

impl Small {
    /// What a reader of figures must know of them.
    pub const DESCRIPTION: &str =
        "a kube-apiserver with few APIs and a kube-controller-manager that makes tokens each, one etcd for all";

    /// The first has an etcd, and the others share it.
    pub async fn start(name: &str, first: Option<&Self>) -> Result<Self> {
        let first = first.map(|first| first.server.clone());
        let server = match &first {
            None => ApiServer::bare_with(few_apis()).await?,
            Some(first) => first.beside(&format!("/{name}"), few_apis()).await?,
        };
        server.run_controllers("serviceaccount-token-controller")?;
        Ok(Self { server: Arc::new(server), _first: first })
    }

    /// By which the operator reaches it.
    pub fn kubeconfig(&self) -> Result<String> {
        self.server.checked_kubeconfig()
    }

    /// What runs of it.
    pub fn processes(&self) -> Vec<Named> {
        named("members", self.server.pids())
    }
}

/// Flags of an API server that serves what a member of a plane must have, and no more: what it does not serve it does
/// not watch either.
fn few_apis() -> Flags {
    let apis = [
        "api/all=false",
        "api/v1=true",
        "apps/v1=true",
        "apiextensions.k8s.io/v1=true",
        "apiregistration.k8s.io/v1=true",
        "authentication.k8s.io/v1=true",
        "authorization.k8s.io/v1=true",
        "coordination.k8s.io/v1=true",
        "discovery.k8s.io/v1=true",
        "networking.k8s.io/v1=true",
        "rbac.authorization.k8s.io/v1=true",
    ];
    let admission = [
        "CertificateApproval",
        "CertificateSigning",
        "CertificateSubjectRestriction",
        "ClusterTrustBundleAttest",
        "DefaultIngressClass",
        "DefaultStorageClass",
        "LimitRanger",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionWebhook",
        "PersistentVolumeClaimResize",
        "PodTopologyLabels",
        "Priority",
        "ResourceQuota",
        "RuntimeClass",
        "StorageObjectInUseProtection",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionWebhook",
    ];
    vec![
        ("runtime-config", apis.join(",")),
        ("disable-admission-plugins", admission.join(",")),
        ("enable-priority-and-fairness", "false".into()),
        ("audit-log-path", String::new()),
        ("profiling", "false".into()),
    ]
}

/// Controllers of a cluster whose Deployments become Pods. Nodes have no controller: nobody renews their Leases.
pub const CONTROLLERS: &str = "deployment-controller,garbage-collector-controller,namespace-controller,\
     replicaset-controller,root-ca-certificate-publisher-controller,serviceaccount-controller,\
     serviceaccount-token-controller";

/// What clusters are given that run many Pods. Pods are created, bound and reported by few clients with many requests.
pub const OF_LARGE: &[Setting] = &[
    Setting { of: "kube-apiserver", flag: "max-requests-inflight", value: "1200", default: "400" },
    Setting { of: "kube-apiserver", flag: "max-mutating-requests-inflight", value: "600", default: "200" },
    Setting { of: "kube-apiserver", flag: "event-ttl", value: "10m", default: "1h" },
    Setting {
        of: "kube-apiserver",
        flag: "disable-admission-plugins",
        value: "TaintNodesByCondition",
        default: "none",
    },
    Setting { of: "kube-controller-manager", flag: "kube-api-qps", value: "400", default: "20" },
    Setting { of: "kube-controller-manager", flag: "kube-api-burst", value: "800", default: "30" },
    Setting { of: "kube-controller-manager", flag: "concurrent-deployment-syncs", value: "20", default: "5" },
    Setting { of: "kube-controller-manager", flag: "concurrent-replicaset-syncs", value: "20", default: "5" },
    Setting { of: "kube-scheduler", flag: "qps", value: "400", default: "50" },
    Setting { of: "kube-scheduler", flag: "burst", value: "800", default: "100" },
];

/// A whole control plane of Kubernetes, with [`OF_LARGE`].
pub struct Large {
    name: String,
    server: ApiServer,
}

impl Large {
    /// Starts it with these controllers.
    pub async fn start(name: &str, controllers: &str) -> Result<Self> {
        let audit = ("audit-log-path", String::new());
        let server = ApiServer::bare_with([flags(OF_LARGE, "kube-apiserver"), vec![audit]].concat()).await?;
        server.run_controllers_with(controllers, flags(OF_LARGE, "kube-controller-manager"))?;
        let mut connection = json!({});
        for (flag, value) in flags(OF_LARGE, "kube-scheduler") {
            connection[flag] = json!(value.parse::<u32>()?);
        }
        server.run_scheduler(json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "clientConnection": connection, "leaderElection": {"leaderElect": false},
        }))?;
        Ok(Self { name: name.to_owned(), server })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn client(&self) -> Client {
        self.server.client()
    }

    /// By which the operator reaches it.
    pub fn kubeconfig(&self) -> Result<String> {
        self.server.checked_kubeconfig()
    }

    /// What runs of it.
    pub fn processes(&self) -> Vec<Named> {
        named(&self.name, self.server.pids())
    }

    /// Kills all of it (SIGKILL), its API server first.
    pub fn kill(&self) {
        self.server.kill();
    }
}
