//! Variables that are the same on all hosts of a run: said once, since what a run may be given has a limit.

use std::collections::BTreeMap;

use crds::inputs::HostInputs;
use serde_json::Value;

use crate::configuration::PARTS;

/// Takes what configures components from the hosts, where it is the same on all of them, and returns it.
pub(super) fn take(hosts: &mut BTreeMap<String, HostInputs>) -> BTreeMap<String, Value> {
    let mut common = BTreeMap::new();
    for name in PARTS.iter().filter_map(|part| part.variable) {
        let mut values = hosts.values().map(|host| host.vars.get(name));
        let Some(Some(first)) = values.next() else { continue };
        if values.all(|value| value == Some(first)) {
            common.insert(name.to_owned(), first.clone());
            hosts.values_mut().for_each(|host| drop(host.vars.remove(name)));
        }
    }
    common
}
