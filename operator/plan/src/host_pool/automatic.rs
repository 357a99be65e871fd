//! The pools that the operator makes: one for each selector that is asked for, under a name that follows from it, so
//! that sets and requests which ask for the same share it.

use std::collections::BTreeMap;

use crds::names::{label, worker_set};
use crds::placement::HostSelector;
use crds::{HostPool, HostPoolSpec, MachineRequest, MachineSet, ObjectExt};

use crate::claims::narrow;
use crate::machine_request::is_answered;
use crate::naming::short_hash;

/// What a set selects; `None`: it names its Hosts, or it goes.
pub fn selector_of_set(set: &MachineSet) -> Option<HostSelector> {
    let template = &set.spec.template;
    let selects = template.hosts.is_none() && !set.is_deleting();
    selects.then(|| template.host_selector.clone().unwrap_or_default())
}

/// What a request selects together with its set, which is one of these; `None`: it names its Hosts, suits none with its
/// set, or looks for none any more.
pub fn selector_of_request(request: &MachineRequest, sets: &[&MachineSet]) -> Option<HostSelector> {
    if request.spec.hosts.is_some() || request.is_deleting() || is_answered(request) {
        return None;
    }
    let name = worker_set(&request.spec.cluster_name, &request.spec.set);
    let set = sets.iter().find(|set| set.name() == name)?;
    let of_set = selector_of_set(set)?;
    narrow(Some(&of_set), request.spec.host_selector.as_ref()).ok().flatten()
}

/// The name of the pool of a selector.
pub fn pool_name(selector: &HostSelector) -> String {
    let text = serde_json::to_string(selector).unwrap_or_default();
    format!("selector-{}", short_hash(&[&text], 10))
}

/// The pool of a selector.
pub fn automatic_pool(namespace: &str, selector: HostSelector) -> HostPool {
    let name = pool_name(&selector);
    let mut pool = HostPool::new(&name, HostPoolSpec { host_selector: selector });
    pool.metadata.namespace = Some(namespace.to_owned());
    pool.metadata.labels = Some(BTreeMap::from([(label::AUTOMATIC.into(), "true".into())]));
    pool
}
