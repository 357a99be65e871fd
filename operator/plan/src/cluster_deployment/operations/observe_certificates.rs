//! Observes when the machines' certificates end, over SSH, by runs that change nothing: once a day, at the cluster's
//! own time of the day; some hours after a machine has become part of the cluster, and soon after a run that wrote
//! some.

use std::collections::BTreeMap;

use crds::step::{Role, Step};
use crds::{ObjectExt, PlaybookRun};
use jiff::{SignedDuration, Timestamp};

use crate::attempts;
use crate::certificates::is_probe;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::last_looks::{kept, last_looks};
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::request;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::moment::after;
use crate::naming;

/// How often a machine is looked at, in seconds: a day.
const PERIOD: i64 = 24 * 3600;
/// When a machine is looked at that has become part of the cluster.
const JOINED: SignedDuration = SignedDuration::from_hours(6);
/// When a machine is looked at on which certificates were written.
const WRITTEN: SignedDuration = SignedDuration::from_mins(10);
/// When a machine is looked at again that did not answer.
const SILENT: SignedDuration = SignedDuration::from_hours(6);
/// What is due within this time is looked at together.
const TOGETHER: SignedDuration = SignedDuration::from_hours(1);
/// Machines of one look: as many results fit into a run.
const MOST: usize = 50;

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    if state.installed.is_none() || round.paused || !round.lock_is_known() {
        return Proposal::default();
    }
    let looks = looks(state);
    // Its end is seen as a change.
    if looks.first().is_some_and(|last| !attempts::is_over(last)) {
        return Proposal::default();
    }
    let now = state.observed.now;
    let (last_looks, written) = (last_looks(&looks), written(state));
    let machines = state.live.iter().filter(|machine| machine.is_provisioned() && machine.host.is_some());
    let mut due: Vec<(Timestamp, &ClusterMachine<'_>)> =
        machines.filter_map(|machine| Some((due_at(state, machine, &last_looks, &written)?, machine))).collect();
    // Control planes and etcd first: theirs are the ones that a cluster ends with.
    due.sort_by_key(|(at, machine)| (*at > now, machine.machine.spec.role == Role::Worker, *at, machine.name()));
    let Some(first) = due.iter().map(|(at, _)| *at).min() else { return Proposal::default() };
    if first > now {
        return Proposal::default().at(state, first);
    }
    let together = due.iter().filter(|(at, _)| *at <= after(now, TOGETHER)).take(MOST);
    let mut hosts: Vec<&str> = together.filter_map(|(_, machine)| machine.host_name()).collect();
    hosts.sort_unstable();
    let number = request::number_after(looks.iter().copied());
    let kept = kept(state, &last_looks);
    let surplus = looks.iter().filter(|run| !kept.contains(run.name()));
    let mut actions: Vec<Action> = surplus.map(|run| Action::DeleteRun(Box::new((*run).clone()))).collect();
    let look = state.owner.probe(Step::ProbeCertificates, &hosts, &["probe-certificates"], number);
    actions.push(Action::create(look));
    Proposal::actions(actions)
}

/// The looks of the cluster's own, the newest first.
fn looks<'a>(state: &ClusterState<'a>) -> Vec<&'a PlaybookRun> {
    state.newest_runs(is_probe)
}

/// When runs that wrote certificates ended, by Host.
fn written<'a>(state: &ClusterState<'a>) -> BTreeMap<&'a str, Vec<Timestamp>> {
    let mut written: BTreeMap<&str, Vec<Timestamp>> = BTreeMap::new();
    let is_done = |run: &&PlaybookRun| attempts::is_over(run) && !run.spec.intent.changes_nothing();
    let runs = state.own_runs().into_iter().filter(is_done);
    for run in runs.filter(|run| run.spec.steps.iter().any(writes)) {
        let Some(ended) = attempts::ended_at(run) else { continue };
        for host in &run.spec.hosts {
            written.entry(host).or_default().push(ended);
        }
    }
    written
}

/// When a machine is looked at next.
fn due_at(
    state: &ClusterState<'_>,
    machine: &ClusterMachine<'_>,
    last_looks: &BTreeMap<&str, &PlaybookRun>,
    written: &BTreeMap<&str, Vec<Timestamp>>,
) -> Option<Timestamp> {
    let status = machine.machine.status.as_ref()?;
    let (host, provisioned) = (machine.host_name()?, status.provisioned_at.as_ref()?);
    let look = last_looks.get(host).filter(|run| run.created_at() >= Some(provisioned));
    let tried = look.and_then(|run| attempts::ended_at(run));
    let seen = status.certificates_seen_at.as_ref().map(|time| time.0);
    let Some(last) = seen.max(tried) else {
        let first = after(provisioned.0, JOINED);
        // Those that stand while the operator learns to look begin each at a time of its own.
        let is_new = after(provisioned.0, SignedDuration::from_secs(PERIOD)) > state.observed.now;
        return Some(if is_new { first } else { next_turn(state, state.observed.now) });
    };
    let mut due = next_turn(state, last);
    if tried > seen {
        due = due.min(after(last, SILENT));
    }
    let written = written.get(host).into_iter().flatten().filter(|at| **at > last);
    Some(written.map(|at| after(*at, WRITTEN)).fold(due, Timestamp::min))
}

/// Whether a step writes certificates.
fn writes(step: &Step) -> bool {
    [Step::Etcd, Step::ControlPlane, Step::EtcdEndpoints, Step::RenewCertificates, Step::CertificateAuthorities]
        .contains(step)
}

/// The cluster's time of the day, next after this moment.
fn next_turn(state: &ClusterState<'_>, moment: Timestamp) -> Timestamp {
    let own = naming::offset(state.uid(), u64::try_from(PERIOD).unwrap_or_default()).as_secs();
    let since = (moment.as_second() - own).rem_euclid(PERIOD);
    after(moment, SignedDuration::from_secs(PERIOD - since))
}

/// Of each machine the last look: by it is known when it is looked at next.
pub(super) fn keeps(state: &ClusterState<'_>) -> Vec<String> {
    kept(state, &last_looks(&looks(state))).into_iter().map(str::to_owned).collect()
}
