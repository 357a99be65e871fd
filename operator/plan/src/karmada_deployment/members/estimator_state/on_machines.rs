//! The same of a plane on machines: what its estimator is given is kept beside the KarmadaDeployment, and runs bring
//! it.

use crds::Reason;

use super::super::action::{Act, Place};
use super::super::cleaning::{Cleaning, by_kind};
use super::super::context::{Context, facts};
use super::super::estimator::given;
use super::super::leaf::Leaf;
use super::super::observed::EstimatorDue;
use super::super::wanted::leaf_wanted;
use super::in_member::{in_the_member, progressing};
use crate::addon::Problem;
use crate::karmada_deployment::given_estimator::GivenEstimator;
use crate::karmada_deployment::removal::Kind;

const SERVICE: [Kind; 1] = [("", "v1", "Service")];

/// What is said of it and done for it; `differs`: what keeps its objects from being as they are wanted.
pub(super) fn look(context: &Context<'_>, differs: Option<Problem>) -> (Option<Problem>, Vec<Act>) {
    let (object, name) = (context.observed.object, &context.target.name);
    let Some(member) = context.member else { return (None, Vec::new()) };
    let has_token = context.seen.is_some_and(|seen| seen.facts.files.get("estimator").is_some());
    let mut acts = Vec::new();
    if (has_token || kept(context).is_some()) && member.certificates.estimator.is_due {
        acts.push(Act::IssueCertificate(Leaf::Estimator, leaf_wanted(object, Leaf::Estimator, name)));
    }
    let wanted = wanted(context).filter(|wanted| Some(wanted) != kept(context));
    acts.extend(wanted.map(Act::GiveEstimator));
    (differs.or_else(|| unwell(context)), acts)
}

/// What it was given.
fn kept<'a>(context: &Context<'a>) -> Option<&'a GivenEstimator> {
    context.observed.material.estimators.get(&context.target.name)
}

/// What it is to be given; none: that is not known.
fn wanted(context: &Context<'_>) -> Option<GivenEstimator> {
    let (basis, member) = (context.observed.basis(), context.member?);
    let facts = facts(&basis, context.target, &member.contact, context.plane?)?;
    given(&basis, (context.roster, context.target), &facts, &member.certificates.estimator)
}

/// Why it does not work; none: it does, or nobody can say.
fn unwell(context: &Context<'_>) -> Option<Problem> {
    if *context.observed.seen.estimators == EstimatorDue::Later {
        return Some(progressing("its estimator waits for its step of the plane's upgrade"));
    }
    if kept(context).is_none() {
        return Some(progressing("its estimator is being made"));
    }
    let machines = context.observed.on_machines.as_ref()?;
    if let Some(why) = machines.sick.get(&context.target.name) {
        return Some(Problem { reason: Reason::EstimatorNotReady, message: format!("its estimator {why}") });
    }
    // While others change, what was found of it last holds.
    let was_well = context.known.is_some_and(|known| known.reason == Reason::AllReady.as_str());
    let is_on_its_way = !machines.is_probed && !was_well;
    is_on_its_way.then(|| progressing("its estimator comes to the plane's machines, and is then looked at"))
}

/// Removes one that is wanted no more: what leads to it and what it was given, then, once it is off the machines, what
/// it is in the member.
pub(super) fn removal(context: &Context<'_>) -> (Option<Problem>, Vec<Act>) {
    let acts = outside(context).acts;
    if !acts.is_empty() {
        return (Some(progressing("removing its estimator")), acts);
    }
    let account = in_the_member(context);
    let is_settled = context.observed.on_machines.as_ref().is_none_or(|machines| machines.is_settled);
    if !account.left.is_empty() && !is_settled {
        return (Some(progressing("its estimator is taken off the plane's machines")), Vec::new());
    }
    (None, account.acts)
}

/// What is left of it but for the machines and the member.
pub(super) fn outside<'a>(context: &Context<'a>) -> Cleaning<'a> {
    let object = context.observed.object;
    let made_for = context.plane.map(|plane| plane.made_for(object, &context.target.name)).unwrap_or_default();
    let services = made_for.into_iter().filter(|live| live["kind"] == "Service").collect();
    let mut cleaning = by_kind(Place::Plane, services, &SERVICE);
    cleaning.acts.extend(kept(context).map(|_| Act::TakeEstimator));
    let has_certificate = context.member.is_some_and(|member| member.certificates.estimator.files.is_some());
    cleaning.acts.extend(has_certificate.then_some(Act::DeleteCertificate(Leaf::Estimator)));
    cleaning
}
