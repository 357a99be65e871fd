//! Looks at the services of each machine by a run that changes nothing: seldom while all are well, soon where one is
//! not, or the plane does not answer.

use crds::PlaybookRun;
use crds::step::{Intent, Role, Step};
use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::super::act::Act;
use super::super::asked::probed;
use super::super::estimators;
use super::super::order::{Part, parts};
use super::super::part_wanted::Basis;
use super::super::placed::placed;
use super::super::proposal::{Proposal, Round};
use super::super::state::PlaneState;
use crate::attempts;
use crate::cluster_machine::ClusterMachine;
use crate::moment::after;
use crate::settings::is_stopped;

/// How often, while all are well.
const WELL: SignedDuration = SignedDuration::from_mins(10);
/// How often, while one is not, or is not known to be.
const SICK: SignedDuration = SignedDuration::from_secs(60);
/// Looks that are kept.
const KEEP: usize = 3;

pub(super) fn propose(state: &PlaneState<'_>, basis: &Basis<'_>, _: &Round) -> Proposal {
    let machines: Vec<ClusterMachine<'_>> = state.working(Role::ControlPlane).collect();
    let has_any = |machine: &ClusterMachine<'_>| parts_of(state, machine).next().is_some();
    if state.installed.is_none() || !machines.iter().any(has_any) {
        return Proposal::default();
    }
    look(state, &machines, &is_probe, |hosts, number| {
        let mut run = state.owner.probe(Step::ProbeKarmada, hosts, &["probe-karmada"], number);
        let asked = |machine: &ClusterMachine<'_>| {
            let parts = json!({ "karmada_parts": probed(state, basis.release, machine) });
            Some((machine.host_name()?.to_owned(), parts))
        };
        let hosts: Map<String, Value> = machines.iter().filter_map(asked).collect();
        run.spec.vars.insert("karmada_hosts".to_owned(), Value::Object(hosts));
        if machines.iter().any(|machine| has_estimators(state, machine)) {
            run.spec.vars.insert(estimators::VARIABLE.to_owned(), estimators::probed(basis.material));
        }
        run
    })
}

/// Whether a run looks at the services of a plane.
fn is_probe(run: &PlaybookRun) -> bool {
    run.spec.intent == Intent::Probe && run.spec.steps == [Step::ProbeKarmada]
}

/// Whether each part that a machine has works; none: nobody knows.
fn parts_of<'s>(state: &'s PlaneState<'_>, machine: &'s ClusterMachine<'_>) -> impl Iterator<Item = Option<bool>> + 's {
    let has = parts(&state.object.spec).into_iter().filter(|(_, part)| part.unit().is_some());
    let parts = has.filter_map(move |(_, part)| {
        let placed = placed(machine, part, state.seen.runs)?;
        Some(if is_stopped(&placed.digest) { Some(true) } else { placed.is_well })
    });
    parts.chain(has_estimators(state, machine).then(|| are_looked_at(state, machine).then_some(true)))
}

fn has_estimators(state: &PlaneState<'_>, machine: &ClusterMachine<'_>) -> bool {
    placed(machine, Part::Estimators, state.seen.runs).is_some()
}

/// Whether somebody has looked at the estimators of a machine since a run brought them. One that does not work is no
/// reason to look soon: its member may be away for days.
fn are_looked_at(state: &PlaneState<'_>, machine: &ClusterMachine<'_>) -> bool {
    let now = placed(machine, Part::Estimators, state.seen.runs).map(|placed| placed.digest);
    let mut parts = machine.machine.status.iter().flat_map(|status| &status.parts);
    parts.any(|seen| seen.name == Part::Estimators.name() && seen.digest == now)
}

/// The next look at these machines, once it is due; the oldest of those before it goes.
pub(super) fn look(
    state: &PlaneState<'_>,
    machines: &[ClusterMachine<'_>],
    is_probe: &dyn Fn(&PlaybookRun) -> bool,
    make: impl FnOnce(&[&str], i32) -> PlaybookRun,
) -> Proposal {
    let mut looks: Vec<&PlaybookRun> = state.own_runs().filter(|run| is_probe(run)).collect();
    looks.sort_by_key(|run| (run.metadata.creation_timestamp.clone(), attempts::attempt_of(run)));
    // Its end is seen as a change.
    if looks.last().is_some_and(|last| !attempts::is_over(last)) {
        return Proposal::default();
    }
    let is_well = |machine: &ClusterMachine<'_>| parts_of(state, machine).all(|well| well == Some(true));
    let pause = if machines.iter().all(is_well) && machines.iter().all(ClusterMachine::is_ready) { WELL } else { SICK };
    let last = looks.iter().filter_map(|run| attempts::ended_at(run)).max();
    let at = last.map_or(state.now, |last| after(last, pause));
    if at > state.now {
        return Proposal::default().at(state, at);
    }
    let mut hosts: Vec<&str> = machines.iter().filter_map(ClusterMachine::host_name).collect();
    hosts.sort_unstable();
    let number = attempts::number_after(looks.last().copied());
    let surplus = (looks.len() + 1).saturating_sub(KEEP);
    let old = looks.iter().take(surplus).map(|run| Act::DeleteRun(Box::new((*run).clone())));
    let acts = old.collect::<Vec<_>>();
    Proposal::acts(acts).and(Act::create(make(&hosts, number)))
}
