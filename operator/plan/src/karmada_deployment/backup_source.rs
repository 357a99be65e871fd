//! What a backup of a plane reads, and what it says of the plane.

use crds::cluster_deployment::ETCD_PREFIX;
use crds::{KarmadaDeployment, KubernetesVersion};

use super::component::Component;
use super::etcd::{ETCD_PORTS, etcd_member_name};

/// Whether all of it has worked once: before, there is nothing to back up.
pub(crate) fn is_installed(object: &KarmadaDeployment) -> bool {
    object.status.as_ref().is_some_and(|status| status.version.is_some())
}

/// Whether it is being set back to a backup: what its etcd has is neither what was there nor what is to be.
pub(crate) fn is_being_restored(object: &KarmadaDeployment) -> bool {
    object.status.as_ref().and_then(|status| status.restored_from.as_ref()).is_some_and(|record| record.step.is_some())
}

/// What its API servers run, if it is known.
pub(crate) fn kubernetes_version(object: &KarmadaDeployment) -> Option<KubernetesVersion> {
    let mut components = object.status.as_ref()?.components.iter();
    let server = components.find(|component| component.name == Component::ApiServer.name())?;
    server.version.as_deref()?.parse().ok()
}

/// Client URLs of its members where they are read over these, `https://HOST:PORT`: those of the spec, or one of each
/// Pod. The certificates of its members are for these names.
pub(crate) fn etcd_endpoints(object: &KarmadaDeployment) -> Vec<String> {
    let etcd = &object.spec.etcd;
    match &etcd.external {
        Some(external) => external.endpoints.clone(),
        None => {
            let replicas = etcd.local().map_or(1, |local| local.replicas);
            let (_, port) = ETCD_PORTS[0];
            (0..replicas).map(|ordinal| format!("https://{}:{port}", etcd_member_name(object, ordinal))).collect()
        }
    }
}

/// Below which keys the plane's data is.
pub(crate) fn etcd_prefix(object: &KarmadaDeployment) -> &str {
    object.spec.etcd.external.as_ref().map_or(ETCD_PREFIX, |external| &external.prefix)
}

/// Whether its etcd is on machines of the plane, and is read there by a run on them.
pub(crate) fn has_etcd_on_machines(object: &KarmadaDeployment) -> bool {
    object.spec.binary.is_some() && object.spec.etcd.external.is_none()
}

/// The name of the Cluster whose API forwards ports of its etcd's Pods, since Pods of the metadata cluster do not reach
/// them; none: they do, or it has none there.
pub fn forwarding_host(object: &KarmadaDeployment) -> Option<&str> {
    let host = object.spec.host_cluster_ref.as_ref().filter(|_| object.spec.etcd.external.is_none());
    host.map(|host| host.name.as_str())
}
