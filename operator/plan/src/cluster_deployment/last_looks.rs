//! The last run of several that looked at each machine: by it is known when the machine is looked at next.

use std::collections::{BTreeMap, BTreeSet};

use crds::{ObjectExt, PlaybookRun};

use super::state::{ClusterMachine, ClusterState};

/// The last look at each Host, of these, the newest first.
pub(super) fn last_looks<'a>(looks: &[&'a PlaybookRun]) -> BTreeMap<&'a str, &'a PlaybookRun> {
    // The newest comes last, and stays.
    let by_host = looks.iter().rev().flat_map(|run| run.spec.hosts.iter().map(|host| (host.as_str(), *run)));
    by_host.collect()
}

/// Names of those that are the last of a machine that stays.
pub(super) fn kept<'a>(state: &ClusterState<'_>, last: &BTreeMap<&str, &'a PlaybookRun>) -> BTreeSet<&'a str> {
    let hosts = state.live.iter().filter_map(ClusterMachine::host_name);
    hosts.filter_map(|host| last.get(host)).map(|run| run.name()).collect()
}
