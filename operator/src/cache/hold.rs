//! Who must wait for an object that cannot be decoded.

use std::sync::Arc;

use crds::{ClusterDeployment, Host};
use kube::ResourceExt;
use plan::undecodable::Undecodable;

use super::{Cache, Kind};

impl Cache {
    /// Whether this object would be missed in what is decided for the cluster.
    pub(crate) fn concerns(&self, object: &Undecodable, namespace: &str, cluster: &str) -> bool {
        let machines = self.machines.store().state();
        object.concerns_cluster(namespace, cluster, machines.iter().map(Arc::as_ref))
    }

    /// Why nothing must be done for a cluster now: an object that it is decided by cannot be decoded. To be asked after
    /// the stores were read, and before anything is done.
    pub fn hold_of_cluster(&self, namespace: &str, cluster: &str) -> Option<String> {
        if self.undecodable.is_empty() {
            return None;
        }
        let machines = self.machines.store().state();
        let machines = || machines.iter().map(Arc::as_ref);
        let found = self.undecodable.find(|object| object.concerns_cluster(namespace, cluster, machines()));
        found.map(|object| object.hold_message())
    }

    /// The same for a whole ClusterDeployment, which must not take the endpoint of one that cannot be decoded either.
    pub fn hold_of_deployment(&self, deployment: &ClusterDeployment) -> Option<String> {
        let namespace = deployment.namespace().unwrap_or_default();
        let of_cluster = self.hold_of_cluster(&namespace, &deployment.name_any());
        of_cluster.or_else(|| {
            let found = self.undecodable.find(|object| object.may_hold_endpoint_of(deployment));
            found.map(|object| object.hold_message())
        })
    }

    /// Why a Host must not be claimed now: one that cannot be decoded may be the same machine.
    pub fn hold_of_claim(&self, host: &Host) -> Option<String> {
        let found = self.undecodable.find(|object| object.may_be_machine_of(host));
        let name = host.name_any();
        found.map(|object| format!("{}; Host {name} may be the same machine", object.hold_message()))
    }

    /// Whether an object of this kind in the namespace cannot be decoded.
    pub(crate) fn lacks<K: Kind>(&self, namespace: &str) -> bool {
        self.undecodable.find(|object| object.kind == K::kind(&()) && object.namespace == namespace).is_some()
    }

    /// Why nothing must be done now for an object of the namespace that is decided by these, each given by kind and
    /// name.
    pub(crate) fn hold_of(&self, namespace: &str, needed: &[(&str, &str)]) -> Option<String> {
        let found = self.undecodable.find(|object| {
            object.namespace == namespace && needed.contains(&(object.kind.as_str(), object.name.as_str()))
        });
        found.map(|object| object.hold_message())
    }

    /// Why nothing must be done for a run now: its Job or its Pod cannot be decoded.
    pub fn hold_of_run(&self, namespace: &str, run: &str) -> Option<String> {
        let found = self.undecodable.find(|object| object.is_of_run(namespace, run));
        found.map(|object| object.hold_message())
    }
}
