//! The same of a plane in Pods: its estimator is a Deployment on the host.

use crds::Reason;
use serde_json::Value;

use super::super::super::component::Component;
use super::super::super::estimators::are_asked;
use super::super::super::pod::first_trouble;
use super::super::super::removal::KINDS_OF_HOST;
use super::super::action::{Act, Place};
use super::super::cleaning::{Cleaning, by_kind};
use super::super::cluster::deletion;
use super::super::context::Context;
use super::super::estimator::on_host;
use super::super::estimators::workload;
use super::super::leaf::Leaf;
use super::super::observed::{EstimatorDue, is_of};
use super::super::wanted::leaf_wanted;
use super::in_member::{in_the_member, progressing};
use crate::addon::Problem;
use crate::cluster_addon::State;
use crate::cluster_addon::health::{Health, health};
use crate::message::quote;

/// What is said of it and done for it; `differs`: what keeps its objects from being as they are wanted.
pub(super) fn look(context: &Context<'_>, differs: Option<Problem>) -> (Option<Problem>, Vec<Act>) {
    let (object, target) = (context.observed.object, context.target);
    let Some(member) = context.member else { return (None, Vec::new()) };
    let has_token = context.seen.is_some_and(|seen| seen.facts.files.get("estimator").is_some());
    let is_there = on_host(&context.observed.basis(), &target.name).next().is_some();
    let acts = match (has_token || is_there) && member.certificates.estimator.is_due {
        true => vec![Act::IssueCertificate(Leaf::Estimator, leaf_wanted(object, Leaf::Estimator, &target.name))],
        false => Vec::new(),
    };
    (differs.or_else(|| unwell(context)), acts.into_iter().chain(spare_budget(context)).collect())
}

/// One Pod needs no budget.
fn spare_budget(context: &Context<'_>) -> Option<Act> {
    let object = context.observed.object;
    let is_one = Component::Estimator.replicas(&object.spec) == Some(1);
    let basis = context.observed.basis();
    let budget = on_host(&basis, &context.target.name).find(|live| live["kind"] == "PodDisruptionBudget");
    deletion(Place::Host, budget.filter(|_| is_one)?)
}

/// Why it does not work; none: it does, or nobody can say.
fn unwell(context: &Context<'_>) -> Option<Problem> {
    let (host, member) = (context.observed.host?, context.member?);
    if *context.observed.seen.estimators == EstimatorDue::Later {
        return Some(progressing("its estimator waits for its step of the plane's upgrade"));
    }
    let Some(State::There { live, .. }) = workload(member) else {
        return Some(progressing("its estimator is being made"));
    };
    let (why, has_failed) = match health(live) {
        Health::Healthy => return None,
        Health::Progressing(why) => (why, false),
        Health::Failed(why) => (why, true),
    };
    let is_pod = |pod: &&Value| {
        pod["metadata"]["labels"]["app.kubernetes.io/name"] == Component::Estimator.name()
            && is_of(pod, &member.target.name)
    };
    let pod = first_trouble(host.pods.iter().filter(is_pod));
    let reason = match has_failed || pod.is_some() {
        true => Reason::EstimatorNotReady,
        false => Reason::EstimatorProgressing,
    };
    let pod = pod.map(|pod| format!(": {pod}")).unwrap_or_default();
    Some(Problem { reason, message: quote(format!("its estimator: {why}{pod}")) })
}

/// Removes one that is wanted no more: nobody may be left who asks it; then what it is on the host, and in the member.
pub(super) fn removal(context: &Context<'_>) -> (Option<Problem>, Vec<Act>) {
    let object = context.observed.object;
    let host = outside(context);
    if !host.left.is_empty() {
        let is_asked = context.observed.host.is_some_and(|host| are_asked(object, &host.listed));
        if object.spec.estimator.is_none() && is_asked {
            let message = "its estimator is removed once karmada-scheduler and karmada-descheduler ask it no more";
            return (Some(progressing(message)), Vec::new());
        }
        return (Some(progressing("removing its estimator")), host.acts);
    }
    let account = in_the_member(context);
    (None, account.acts)
}

/// What is left of it on the host, and its certificate, which goes before the last of that.
pub(super) fn outside<'a>(context: &Context<'a>) -> Cleaning<'a> {
    let left = on_host(&context.observed.basis(), &context.target.name).collect();
    let mut cleaning = by_kind(Place::Host, left, &KINDS_OF_HOST);
    let has_certificate = context.member.is_some_and(|member| member.certificates.estimator.files.is_some());
    if has_certificate {
        cleaning.acts.insert(0, Act::DeleteCertificate(Leaf::Estimator));
    }
    cleaning
}
