//! The components whose version the spec may name, `spec.versions`.

use crds::cluster_deployment::Versions;
use crds::{ClusterDeployment, ComponentVersion, PlaybookRun};

/// A component whose version the spec may name.
pub struct Pin {
    /// The field of the spec, for messages.
    pub field: &'static str,
    /// Its name in the artifact bundle, and in statuses.
    pub component: &'static str,
    /// Its name among the parts of a configuration, in statuses.
    pub part: &'static str,
    version: fn(&Versions) -> Option<&ComponentVersion>,
}

pub const CONTAINERD: Pin = Pin {
    field: "versions.containerd",
    component: "containerd",
    part: "containerd-version",
    version: |versions| versions.containerd.as_ref(),
};
pub const RUNC: Pin =
    Pin { field: "versions.runc", component: "runc", part: "runc-version", version: |versions| versions.runc.as_ref() };
pub const CNI_PLUGINS: Pin = Pin {
    field: "versions.cniPlugins",
    component: "cni-plugins",
    part: "cni-plugins-version",
    version: |versions| versions.cni_plugins.as_ref(),
};
pub const ETCD: Pin =
    Pin { field: "versions.etcd", component: "etcd", part: "etcd-version", version: |versions| versions.etcd.as_ref() };
pub const COREDNS: Pin = Pin {
    field: "versions.coredns",
    component: "registry.k8s.io/coredns/coredns",
    part: "coredns-version",
    version: |versions| versions.coredns.as_ref(),
};

/// All of them.
const PINS: [Pin; 5] = [CONTAINERD, RUNC, CNI_PLUGINS, ETCD, COREDNS];

impl Pin {
    /// The version that the spec names; none: that of the bundle's table is wanted.
    pub fn wanted<'a>(&self, deployment: &'a ClusterDeployment) -> Option<&'a ComponentVersion> {
        (self.version)(deployment.spec.versions.as_ref()?)
    }

    /// Whether the spec named a version when the inputs of the run were frozen.
    pub fn was_wanted(&self, run: &PlaybookRun) -> bool {
        let settings = run.status.as_ref().and_then(|status| status.settings.as_ref());
        let of_set = |key: &String| key.strip_prefix(self.part).is_some_and(|rest| rest.starts_with('/'));
        settings.is_some_and(|settings| settings.configuration.keys().any(|key| key == self.part || of_set(key)))
    }
}

/// The one of this component; none: the spec cannot name its version.
pub fn find(component: &str) -> Option<Pin> {
    PINS.into_iter().find(|pin| pin.component == component)
}

/// The components that the spec names, and their versions.
pub fn wanted(deployment: &ClusterDeployment) -> impl Iterator<Item = (Pin, &ComponentVersion)> {
    PINS.into_iter().filter_map(|pin| pin.wanted(deployment).map(|version| (pin, version)))
}
