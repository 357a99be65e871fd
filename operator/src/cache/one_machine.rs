//! Hosts that may be the same machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::Host;
use kube::ResourceExt;
use plan::claims::identity_keys;

use super::keys::IndexKey;
use super::watched::Watched;

impl Watched<Host> {
    /// The Hosts that have an address, a host key or a machine-id of this one, itself among them, in the order of their
    /// names.
    pub fn one_machine(&self, host: &Host) -> Vec<Arc<Host>> {
        let namespace = host.namespace().unwrap_or_default();
        let keys = identity_keys(host).into_iter().map(IndexKey::OneMachine);
        let found = keys.flat_map(|key| self.with(&namespace, &key));
        let named: BTreeMap<String, Arc<Host>> = found.map(|host| (host.name_any(), host)).collect();
        named.into_values().collect()
    }
}
