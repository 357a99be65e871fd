//! Asking: probes of the machines that carry etcd's members, and what they answered.

use std::collections::{BTreeMap, BTreeSet};

use crds::PlaybookRun;
use crds::playbook_run::HostResult;
use crds::step::{Intent, Step as RunStep};
use jiff::Timestamp;

use crate::Next;
use crate::attempts;
use crate::cluster_deployment::Step;
use crate::cluster_deployment::deletion::until;
use crate::cluster_deployment::runs;
use crate::cluster_deployment::scene::{Member, Scene};
use crate::moment::after;
use crate::naming;

/// Deadline of a probe.
const TIMEOUT_SECONDS: i32 = 300;

/// What the machines said, and the probe to make.
pub(super) struct Asked {
    /// Whether each Host answered the last time that it was asked.
    pub answers: BTreeMap<String, bool>,
    /// All have been asked.
    pub complete: bool,
    pub steps: Vec<Step>,
    pub next: Option<Next>,
}

/// Asks the machines, the later the longer between: they may come back, or go.
pub(super) fn ask(scene: &Scene<'_>, members: &[Member<'_>], since: Timestamp) -> Asked {
    let mut probes: Vec<&PlaybookRun> = scene
        .observed
        .runs
        .iter()
        .copied()
        .filter(|run| run.spec.intent == Intent::Probe && scene.owns(&run.metadata))
        .filter(|run| {
            let made = run.metadata.creation_timestamp.as_ref();
            made.is_some_and(|made| made.0 >= since)
        })
        .collect();
    probes.sort_by_key(|run| attempts::ended_at(run));
    let hosts: BTreeSet<&str> = members.iter().filter_map(Member::host_name).collect();
    let mut answers: BTreeMap<String, bool> = BTreeMap::new();
    for run in probes.iter().filter(|run| attempts::is_over(run)) {
        for host in run.spec.hosts.iter().filter(|host| hosts.contains(host.as_str())) {
            if let Some(answer) = answer(run, host) {
                answers.insert(host.clone(), answer);
            }
        }
    }
    // A machine without its Host cannot be asked, and counts as silent.
    let complete = hosts.iter().all(|host| answers.contains_key(*host));
    let mut asked = Asked {
        answers,
        complete,
        steps: Vec::new(),
        next: None,
    };
    if probes.iter().any(|run| !attempts::is_over(run)) {
        return asked;
    }
    let last = probes.iter().filter_map(|run| attempts::ended_at(run)).max();
    let at = last.map(|last| after(last, attempts::backoff(probes.len())));
    match at.filter(|at| *at > scene.observed.now) {
        Some(at) => asked.next = Some(until(scene, at)),
        None if hosts.is_empty() => {}
        None => {
            let number = probes
                .iter()
                .map(|run| attempts::attempt_of(run).saturating_add(1))
                .max();
            let run = probe(scene, &hosts, since, number.unwrap_or_default());
            asked.steps.push(Step::CreateRun(Box::new(run)));
        }
    }
    asked
}

/// Whether a machine let the probe in; none: the probe itself came to nothing.
fn answer(run: &PlaybookRun, host: &str) -> Option<bool> {
    let status = run.status.as_ref()?;
    let result = status.hosts.iter().find(|result| result.name == host)?;
    let reason = |result: &HostResult| result.failure.as_ref().map(|failure| failure.reason.clone());
    match reason(result).as_deref() {
        _ if result.unreachable => Some(false),
        Some("NotReached" | "Canceled" | "DeadlineExceeded") => None,
        _ => Some(true),
    }
}

fn probe(scene: &Scene<'_>, hosts: &BTreeSet<&str>, since: Timestamp, attempt: i32) -> PlaybookRun {
    let since = since.to_string();
    let parts = hosts.iter().copied().chain(["etcd", since.as_str()]);
    let name = naming::run(&scene.name, scene.uid(), Intent::Probe, parts, attempt);
    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    let steps = vec![RunStep::ProbeHost];
    let mut run = runs::of_cluster(scene, &name, Intent::Probe, steps, hosts, attempt);
    run.spec.timeout_seconds = TIMEOUT_SECONDS;
    run
}
