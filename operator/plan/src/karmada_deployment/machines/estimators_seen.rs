//! How the estimators of members are on the machines of a plane, for what is said of each member.

use super::super::component::Component;
use super::super::members::{EstimatorDue, EstimatorsSeen};
use super::super::observed::Observed;
use super::super::release::Release;
use super::estimators::wanted_digest;
use super::order::Part;
use super::placed::{placed, silent_since};
use super::state::PlaneState;
use crate::cluster_machine::ClusterMachine;
use crate::message::quote;

/// How they are; none: the plane is in Pods.
pub(in super::super) fn estimators_seen(observed: &Observed<'_>) -> Option<EstimatorsSeen> {
    let object = observed.object;
    object.spec.binary.as_ref()?;
    let state = PlaneState::observe(observed);
    let runs = state.seen.runs;
    let wanted = Release::wanted(&object.spec).and_then(|release| match observed.members.estimators {
        _ if observed.material.estimators.is_empty() => None,
        EstimatorDue::Now(version) => Some(wanted_digest(object, release, version, observed.material)),
        EstimatorDue::Kept(_) | EstimatorDue::Later => None,
    });
    let is_held = !matches!(observed.members.estimators, EstimatorDue::Now(_));
    let mut found = EstimatorsSeen { is_settled: true, ..EstimatorsSeen::default() };
    let answers = |machine: &ClusterMachine<'_>| silent_since(machine, runs).is_none();
    for machine in state.working(Part::Estimators.role(&object.spec)).filter(answers) {
        let has = placed(&machine, Part::Estimators, runs).map(|placed| placed.digest);
        let is_empty = wanted.is_none() && has.as_deref().is_none_or(|has| is_none_of_them(&state, has, observed));
        found.is_settled &= is_held || has == wanted || is_empty;
        let parts = machine.machine.status.iter().flat_map(|status| &status.parts);
        let Some(seen) = parts.into_iter().find(|part| part.name == Part::Estimators.name()) else { continue };
        let is_since = has.is_some() && seen.digest == has;
        found.is_probed |= is_since && (is_held || has == wanted);
        let sick = seen.members.iter().filter(|_| is_since);
        let told = |why: &String| format!("on machine {}: {}", machine.title(), quote(why.clone()));
        for (member, why) in sick {
            found.sick.entry(member.clone()).or_insert_with(|| told(why));
        }
    }
    Some(found)
}

/// Whether this is the digest of no estimator at all.
fn is_none_of_them(state: &PlaneState<'_>, digest: &str, observed: &Observed<'_>) -> bool {
    let release = Release::wanted(&state.object.spec);
    let version = release.map(|release| (release, Component::Estimator.version(&state.object.spec, release)));
    version
        .is_some_and(|(release, version)| wanted_digest(state.object, release, &version, observed.material) == digest)
}
