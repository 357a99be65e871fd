//! Probes of the machines that carry etcd's members, and what they answered.

use std::collections::{BTreeMap, BTreeSet};

use crds::ObjectExt;
use crds::PlaybookRun;
use crds::Reason;
use crds::step::{Intent, Step};
use jiff::Timestamp;

use crate::attempts;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::Proposal;
use crate::cluster_deployment::request::number_after;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::moment::after;

/// What the machines said, and the probe to make.
pub(super) struct Asked {
    /// Whether each Host answered the last time that it was asked.
    pub answers: BTreeMap<String, bool>,
    /// All have been asked.
    pub complete: bool,
    /// The next probe, or when it is due.
    pub next: Proposal,
}

/// Asks the machines, the later the longer between: they may come back, or go.
pub(super) fn ask(state: &ClusterState<'_>, members: &[ClusterMachine<'_>], since: Timestamp) -> Asked {
    let is_ours = |run: &&PlaybookRun| {
        let made = run.created_at();
        run.spec.intent == Intent::Probe && state.owns(&run.metadata) && made.is_some_and(|made| made.0 >= since)
    };
    let mut probes: Vec<&PlaybookRun> = state.observed.runs.iter().copied().filter(is_ours).collect();
    probes.sort_by_key(|run| attempts::ended_at(run));
    let hosts: BTreeSet<&str> = members.iter().filter_map(ClusterMachine::host_name).collect();
    let mut answers: BTreeMap<String, bool> = BTreeMap::new();
    for run in probes.iter().filter(|run| attempts::is_over(run)) {
        for host in run.spec.hosts.iter().filter(|host| hosts.contains(host.as_str())) {
            if let Some(answer) = answer(run, host) {
                answers.insert(host.clone(), answer);
            }
        }
    }
    Asked {
        // A machine without its Host cannot be asked, and counts as silent.
        complete: hosts.iter().all(|host| answers.contains_key(*host)),
        next: next(state, &probes, &hosts, since),
        answers,
    }
}

fn next(state: &ClusterState<'_>, probes: &[&PlaybookRun], hosts: &BTreeSet<&str>, since: Timestamp) -> Proposal {
    if hosts.is_empty() || probes.iter().any(|run| !attempts::is_over(run)) {
        return Proposal::default();
    }
    let last = probes.iter().filter_map(|run| attempts::ended_at(run)).max();
    let at = last.map(|last| after(last, attempts::backoff(probes.len())));
    if let Some(at) = at.filter(|at| *at > state.observed.now) {
        return Proposal::default().at(state, at);
    }
    let hosts: Vec<&str> = hosts.iter().copied().collect();
    let number = number_after(probes.iter().copied());
    let parts = ["etcd", &since.to_string()];
    let run = state.owner.probe(Step::ProbeHost, &hosts, &parts, number);
    Proposal::default().and(Action::create(run))
}

/// Whether a machine let the probe in; none: the probe itself came to nothing.
fn answer(run: &PlaybookRun, host: &str) -> Option<bool> {
    let status = run.status.as_ref()?;
    let result = status.hosts.iter().find(|result| result.name == host)?;
    let reason = result.failure.as_ref().and_then(|failure| Reason::from_name(&failure.reason));
    match reason {
        _ if result.unreachable => Some(false),
        Some(Reason::NotReached | Reason::Canceled | Reason::DeadlineExceeded) => None,
        _ => Some(true),
    }
}
