//! The components of a plane: what each is called, when it starts, and what it is wanted with.

use crds::KarmadaDeploymentSpec;
use crds::karmada_deployment::{ComponentSettings, PodSettings};

use super::place::Stage;
use super::release::Release;

/// A component, in the order in which they start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// etcd.
    Etcd,
    /// Kubernetes' API server, which is the plane's.
    ApiServer,
    /// Kubernetes' controller manager.
    KubeControllerManager,
    /// Serves Clusters.
    AggregatedApiServer,
    /// Admits policies.
    Webhook,
    /// Chooses members.
    Scheduler,
    /// Karmada's controllers.
    ControllerManager,
    /// Moves replicas.
    Descheduler,
    /// Searches in members.
    Search,
    /// Serves metrics of members.
    MetricsAdapter,
    /// Says how many replicas a member has room for: each member has its own.
    Estimator,
}

use Component::{
    AggregatedApiServer, ApiServer, ControllerManager, Descheduler, Estimator, Etcd, KubeControllerManager,
    MetricsAdapter, Scheduler, Search, Webhook,
};

impl Component {
    /// All that a plane has one of, in the order in which they start.
    pub const ALL: [Component; 10] = [
        Etcd,
        ApiServer,
        KubeControllerManager,
        AggregatedApiServer,
        Webhook,
        Scheduler,
        ControllerManager,
        Descheduler,
        Search,
        MetricsAdapter,
    ];

    /// All of them: those that a plane has one of, and those that each member has its own of.
    pub fn every() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().chain([Estimator])
    }

    /// Its name, which is that of its image, and what follows the plane's in the names of its objects.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Etcd => ("etcd", "etcd"),
            ApiServer => ("kube-apiserver", "apiserver"),
            KubeControllerManager => ("kube-controller-manager", "kube-controller-manager"),
            AggregatedApiServer => ("karmada-aggregated-apiserver", "aggregated-apiserver"),
            Webhook => ("karmada-webhook", "webhook"),
            Scheduler => ("karmada-scheduler", "scheduler"),
            ControllerManager => ("karmada-controller-manager", "controller-manager"),
            Descheduler => ("karmada-descheduler", "descheduler"),
            Search => ("karmada-search", "search"),
            MetricsAdapter => ("karmada-metrics-adapter", "metrics-adapter"),
            Estimator => ("karmada-scheduler-estimator", "estimator"),
        }
    }

    /// Its name, which is also that of its image.
    pub const fn name(self) -> &'static str {
        self.names().0
    }

    /// What follows the plane's name in those of its objects.
    pub const fn suffix(self) -> &'static str {
        self.names().1
    }

    /// When it starts.
    pub const fn stage(self) -> Stage {
        match self {
            Etcd => Stage::Etcd,
            ApiServer => Stage::ApiServer,
            KubeControllerManager => Stage::KubeControllerManager,
            AggregatedApiServer => Stage::AggregatedApiServer,
            Webhook => Stage::Webhook,
            Scheduler => Stage::Scheduler,
            ControllerManager => Stage::ControllerManager,
            Descheduler => Stage::Descheduler,
            Search => Stage::Search,
            MetricsAdapter => Stage::MetricsAdapter,
            Estimator => Stage::Estimators,
        }
    }

    /// The field of the spec that says how it is wanted.
    pub const fn field(self) -> &'static str {
        match self {
            Etcd => "etcd.local",
            ApiServer => "apiServer",
            KubeControllerManager => "kubeControllerManager",
            AggregatedApiServer => "aggregatedApiServer",
            Webhook => "webhook",
            Scheduler => "scheduler",
            ControllerManager => "controllerManager",
            Descheduler => "descheduler",
            Search => "search",
            MetricsAdapter => "metricsAdapter",
            Estimator => "estimator",
        }
    }

    /// Whether it is one of Karmada's own programs.
    pub const fn is_of_karmada(self) -> bool {
        !matches!(self, Etcd | ApiServer | KubeControllerManager)
    }

    /// Whether its version is always that of the plane.
    pub const fn follows_plane(self) -> bool {
        self.is_of_karmada() && !matches!(self, Scheduler | Estimator)
    }

    /// Whether clients hold watches of it open: itself, or behind the plane's API server.
    pub(super) const fn serves_api(self) -> bool {
        matches!(self, ApiServer | AggregatedApiServer | Search | MetricsAdapter)
    }

    /// The component of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::every().find(|component| component.name() == name)
    }

    /// How it is wanted; none: it is not, or it is etcd, of which the spec says something else.
    pub fn settings(self, spec: &KarmadaDeploymentSpec) -> Option<&ComponentSettings> {
        match self {
            Etcd => None,
            ApiServer => Some(&spec.api_server.settings),
            KubeControllerManager => Some(&spec.kube_controller_manager),
            AggregatedApiServer => Some(&spec.aggregated_api_server),
            Webhook => Some(&spec.webhook),
            Scheduler => Some(&spec.scheduler),
            ControllerManager => Some(&spec.controller_manager),
            Descheduler => spec.descheduler.as_ref(),
            Search => spec.search.as_ref(),
            MetricsAdapter => spec.metrics_adapter.as_ref(),
            Estimator => spec.estimator.as_ref(),
        }
    }

    /// How many Pods of it are wanted, of an estimator for each member; none: it does not run on the host.
    pub fn replicas(self, spec: &KarmadaDeploymentSpec) -> Option<i32> {
        match self {
            Etcd => spec.etcd.local().map(|local| local.replicas),
            _ => self.settings(spec).map(|settings| settings.replicas),
        }
    }

    /// What its Pods are given.
    pub(super) fn pod(self, spec: &KarmadaDeploymentSpec) -> PodSettings {
        match self {
            Etcd => spec.etcd.local().map(|local| local.pod).unwrap_or_default(),
            _ => self.settings(spec).map(|settings| settings.pod.clone()).unwrap_or_default(),
        }
    }

    /// The version that it is wanted in, without `v`.
    pub fn version(self, spec: &KarmadaDeploymentSpec, release: &Release) -> String {
        let own = match self {
            Etcd => spec.etcd.local.as_ref().and_then(|local| local.version.as_ref()),
            _ => self.settings(spec).and_then(|settings| settings.version.as_ref()),
        };
        let default = match self {
            Etcd => release.etcd,
            ApiServer | KubeControllerManager => release.kubernetes,
            _ => spec.version.as_str(),
        };
        own.map_or(default, crds::ComponentVersion::as_str).to_owned()
    }

    /// Its image in this version: `docker.io/karmada/karmada-scheduler:v1.18.2`.
    pub fn image(self, spec: &KarmadaDeploymentSpec, version: &str) -> String {
        let images = &spec.images;
        let prefix = if self.is_of_karmada() { &images.karmada } else { &images.kubernetes };
        let v = if self == Etcd { "" } else { "v" };
        format!("{}/{}:{v}{version}", prefix.0, self.name())
    }
}
