//! What the machines of a cluster were asked since its API fell silent, and the next probe of them.

use std::collections::{BTreeMap, BTreeSet};

use crds::ObjectExt;
use crds::PlaybookRun;
use crds::Reason;
use crds::playbook_run::{HostFailure, HostResult};
use crds::step::{Intent, Step};
use jiff::Timestamp;

use crate::attempts;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::state::ClusterState;

/// What the machines were last asked, since the API fell silent.
pub(super) struct Asked<'a> {
    pub last: BTreeMap<&'a str, Last>,
    /// A probe is on its way.
    pub under_way: bool,
    /// How many there were.
    pub probes: usize,
}

/// What came of asking one machine.
pub(super) struct Last {
    pub at: Timestamp,
    pub answered: bool,
}

/// Whoever asked: what is known of etcd's members is known here.
pub(super) fn asked<'a>(state: &ClusterState<'_>, since: Timestamp, held: &BTreeSet<&'a str>) -> Asked<'a> {
    let probes: Vec<&PlaybookRun> = probes(state, since).collect();
    let mut last: BTreeMap<&str, Last> = BTreeMap::new();
    for run in probes.iter().filter(|run| attempts::is_over(run)) {
        let results = run.status.iter().flat_map(|status| &status.hosts);
        let Some(at) = attempts::ended_at(run) else {
            continue;
        };
        for result in results {
            let Some(host) = held.get(result.name.as_str()) else {
                continue;
            };
            let is_newer = last.get(host).is_none_or(|known| known.at < at);
            if is_newer {
                let answered = !is_silent(result);
                last.insert(host, Last { at, answered });
            }
        }
    }
    Asked { last, under_way: probes.iter().any(|run| !attempts::is_over(run)), probes: probes.len() }
}

/// Probes by which a machine counts as silent, or as one that answers: the newest that asked it.
pub(super) fn needed(state: &ClusterState<'_>, since: Timestamp, held: &BTreeSet<&str>) -> Vec<String> {
    let newest = |host: &&str| {
        let asked = probes(state, since).filter(|run| {
            let mut results = run.status.iter().flat_map(|status| &status.hosts);
            attempts::is_over(run) && results.any(|result| result.name == *host)
        });
        asked.max_by_key(|run| attempts::ended_at(run))?.metadata.name.clone()
    };
    held.iter().filter_map(newest).collect()
}

fn probes<'a>(state: &ClusterState<'a>, since: Timestamp) -> impl Iterator<Item = &'a PlaybookRun> {
    let uid = state.deployment.metadata.uid.clone();
    let ours = move |run: &&PlaybookRun| {
        let made = run.created_at();
        let mut owners = run.metadata.owner_references.iter().flatten();
        run.spec.intent == Intent::Probe
            && owners.any(|owner| Some(&owner.uid) == uid.as_ref())
            && made.is_some_and(|made| made.0 >= since)
    };
    state.observed.runs.iter().copied().filter(ours)
}

/// Whether nobody spoke: who refuses a key, or shows another one, is there.
fn is_silent(result: &HostResult) -> bool {
    let spoke = |failure: &HostFailure| failure.reason != Reason::Unreachable;
    result.unreachable && !result.failure.as_ref().is_some_and(spoke)
}

/// A read-only look at these machines of the cluster.
pub(super) fn probe(state: &ClusterState<'_>, held: &[&str], since: Timestamp, before: usize) -> Action {
    let since = since.to_string();
    let parts = [since.as_str(), "lost"];
    let number = i32::try_from(before).unwrap_or(i32::MAX);
    // Old ones may be gone: no name comes twice.
    let is_free = |number: &i32| state.run(&state.owner.probe_name(held, &parts, *number)).is_none();
    let number = (number..).find(is_free).unwrap_or(number);
    Action::create(state.owner.probe(Step::ProbeHost, held, &parts, number))
}
