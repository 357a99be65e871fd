//! Where a plane's objects are, when each is applied, and what it is.

use std::fmt;

use crds::cluster_addon::AppliedObject;
use serde_json::Value;

/// Where an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// On the host cluster: what the plane runs as.
    Host,
    /// In the plane itself, through its API server.
    Plane,
}

/// When an object is applied: once all of the stages before it are as they are wanted, and healthy. A webhook that does
/// not answer refuses every policy, and controllers that start without it have made members lose what they ran; so it
/// answers, and is asked, before any of them starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The namespace on the host, Secrets, Services.
    Foundation,
    /// The data that etcd begins with, where it is that of a backup.
    EtcdData,
    /// etcd.
    Etcd,
    /// The API server.
    ApiServer,
    /// Kubernetes' controller manager.
    KubeControllerManager,
    /// Karmada's aggregated API server.
    AggregatedApiServer,
    /// Namespaces of the plane.
    Namespaces,
    /// CustomResourceDefinitions.
    Definitions,
    /// Roles, and who has them.
    Access,
    /// The API that the aggregated API server serves.
    ClusterApi,
    /// The webhook.
    Webhook,
    /// What the API server asks the webhook for.
    WebhookConfigurations,
    /// The scheduler.
    Scheduler,
    /// Karmada's controllers.
    ControllerManager,
    /// The descheduler.
    Descheduler,
    /// Search.
    Search,
    /// The API that search serves.
    SearchApi,
    /// The metrics adapter.
    MetricsAdapter,
    /// The APIs that the metrics adapter serves.
    MetricsApis,
    /// What the plane proves by that it propagates.
    Probe,
    /// The estimators of members: each belongs to its member, and no stage waits for them.
    Estimators,
}

impl Stage {
    /// What messages call it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Foundation => "the namespace, the Secrets and the Services",
            Self::EtcdData => "etcd's data",
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::AggregatedApiServer => "karmada-aggregated-apiserver",
            Self::Namespaces => "the plane's namespaces",
            Self::Definitions => "the plane's CustomResourceDefinitions",
            Self::Access => "the plane's roles",
            Self::ClusterApi => "the API of Clusters",
            Self::Webhook => "karmada-webhook",
            Self::WebhookConfigurations => "the plane's webhook configurations",
            Self::Scheduler => "karmada-scheduler",
            Self::ControllerManager => "karmada-controller-manager",
            Self::Descheduler => "karmada-descheduler",
            Self::Search => "karmada-search",
            Self::SearchApi => "the API of karmada-search",
            Self::MetricsAdapter => "karmada-metrics-adapter",
            Self::MetricsApis => "the APIs of karmada-metrics-adapter",
            Self::Probe => "the plane's probe",
            Self::Estimators => "karmada-scheduler-estimator",
        }
    }
}

/// What is done to an object that is not as it is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// It is applied.
    #[default]
    Free,
    /// It stays as it is; one that is not there is applied.
    Kept,
    /// It stays as it is, or is not there.
    Untouched,
}

/// An object that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// When it is applied.
    pub stage: Stage,
    /// Whether its position in an upgrade lets it be applied.
    pub hold: Hold,
    /// Where.
    pub place: Place,
    /// Which object.
    pub object: AppliedObject,
    /// The object as it is applied.
    pub manifest: Manifest,
}

impl Wanted {
    /// One on the host.
    pub(super) fn on_host(stage: Stage, manifest: Value) -> Self {
        Self { stage, hold: Hold::Free, place: Place::Host, object: object_of(&manifest), manifest: Manifest(manifest) }
    }

    /// The same, held.
    pub(super) fn held(self, hold: Hold) -> Self {
        Self { hold, ..self }
    }

    /// One in the plane.
    pub(super) fn in_plane(stage: Stage, manifest: Value) -> Self {
        Self {
            stage,
            hold: Hold::Free,
            place: Place::Plane,
            object: object_of(&manifest),
            manifest: Manifest(manifest),
        }
    }
}

/// Which object this is.
pub(super) fn object_of(manifest: &Value) -> AppliedObject {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let api_version = text(&manifest["apiVersion"]).unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    AppliedObject {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: text(&manifest["kind"]).unwrap_or_default(),
        namespace: text(&manifest["metadata"]["namespace"]),
        name: text(&manifest["metadata"]["name"]).unwrap_or_default(),
    }
}

/// An object as it is applied. It may be a Secret: it is not printed.
#[derive(Clone, PartialEq)]
pub struct Manifest(pub Value);

impl fmt::Debug for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metadata = &self.0["metadata"];
        write!(f, "Manifest({} {} {})", self.0["kind"], metadata["namespace"], metadata["name"])
    }
}
