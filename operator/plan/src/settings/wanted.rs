//! The settings that machines are to have, as digests.

use std::collections::{BTreeMap, BTreeSet};

use crds::ClusterDeployment;
use crds::cluster_deployment::{Etcd, EtcdTopology};
use crds::configuration::KubeProxySettings;

use super::digest::digest;
use super::parts;

/// The name in statuses of `configuration.kubeProxy`, beside those of the parts: it is the cluster's and no machine's.
pub(super) const KUBE_PROXY: &str = "kube-proxy";

/// The settings that machines of a cluster are to have, as digests.
pub struct Wanted {
    pub(super) registry_mirrors: String,
    pub(super) cert_sans: String,
    pub(super) etcd_endpoints: Option<String>,
    pub(super) configuration: BTreeMap<String, String>,
}

impl Wanted {
    /// As the ClusterDeployment has them.
    pub fn new(deployment: &ClusterDeployment) -> Self {
        let spec = &deployment.spec;
        Self {
            registry_mirrors: digest(&spec.container_runtime.registry_mirrors),
            cert_sans: digest(&spec.control_plane.cert_sans),
            etcd_endpoints: etcd_endpoints(&spec.etcd),
            configuration: parts::digests(deployment).into_iter().chain(kube_proxy(deployment)).collect(),
        }
    }

    /// A digest of what kube-proxy is to have; none: nothing is configured.
    pub fn kube_proxy(&self) -> Option<&String> {
        self.configuration.get(KUBE_PROXY)
    }
}

/// A digest of what is configured of kube-proxy, if anything is. A cluster without it is made so, and nothing is ever
/// brought to it.
fn kube_proxy(deployment: &ClusterDeployment) -> Option<(String, String)> {
    let kube_proxy = deployment.spec.configuration.as_ref()?.kube_proxy.as_ref()?;
    let is_configured = deployment.spec.has_kube_proxy() && *kube_proxy != KubeProxySettings::default();
    is_configured.then(|| (KUBE_PROXY.to_owned(), digest(kube_proxy)))
}

/// A digest of the endpoints of an external etcd, whatever their order.
fn etcd_endpoints(etcd: &Etcd) -> Option<String> {
    let endpoints: BTreeSet<&String> = etcd.endpoints.iter().collect();
    (etcd.topology == EtcdTopology::External).then(|| digest(&endpoints))
}
