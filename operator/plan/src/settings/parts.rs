//! The parts of `spec.configuration` in statuses: a digest of each by its name. Where a set of machines is to have
//! another than all others, that is beside it, by the MachineSet's name.

use std::collections::BTreeMap;

use crds::{ClusterDeployment, Machine};
use serde_json::Value;

use super::digest::digest;
use crate::claims;
use crate::configuration::{PARTS, Part};

/// The digests of all parts that are configured.
pub(super) fn digests(deployment: &ClusterDeployment) -> BTreeMap<String, String> {
    let mut digests = BTreeMap::new();
    let sets = deployment.set_names();
    for part in PARTS {
        let of_all = (part.wanted)(deployment, None);
        let of_sets = sets.iter().map(|set| (key(part, set), (part.wanted)(deployment, Some(set))));
        let others = of_sets.filter(|(_, of_set)| *of_set != of_all);
        let configured = others.chain([(part.name.to_owned(), of_all.clone())]);
        digests.extend(configured.filter_map(|(name, value)| Some((name, digest_of(&value?)))));
    }
    digests
}

/// A number as it is: the part may ask which of two is the greater one.
fn digest_of(value: &Value) -> String {
    if value.is_number() { value.to_string() } else { digest(value) }
}

fn key(part: &Part, set: &str) -> String {
    format!("{}/{set}", part.name)
}

/// The digest of a part for a machine; none: nothing is configured for it.
pub(super) fn of_machine(digests: &BTreeMap<String, String>, part: &Part, machine: &Machine) -> Option<String> {
    let of_set = claims::set_of(machine).and_then(|set| digests.get(&key(part, set)));
    of_set.or_else(|| digests.get(part.name)).cloned()
}
