//! What the plane has answered to its probe, and when it is asked anew. The last statement about the components is part
//! of it: an answer from before they failed says nothing of them as they are now.

use crds::names::condition;
use crds::{Conditions, KarmadaDeployment, Reason};
use jiff::SignedDuration;

use super::super::action::Action;
use super::super::observed::Observed;
use super::super::place::Manifest;
use super::super::probe_seen::{ProbeSeen, binding, template};
use super::asked;
use crate::addon::Problem;
use crate::message::quote;

/// How often a plane is asked that answers.
const EVERY: SignedDuration = SignedDuration::from_secs(300);
/// How long an answer may take.
const WITHIN: SignedDuration = SignedDuration::from_secs(30);
/// How often one is asked that does not answer: Karmada tries again by itself, but ever more rarely.
const AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// What follows from the probe.
#[derive(Default)]
pub(in super::super) struct Probing {
    /// Why it is not known that the plane propagates.
    pub problem: Option<Problem>,
    /// Asks it.
    pub action: Option<Action>,
    /// Whether an answer is waited for.
    pub is_open: bool,
}

/// What was said of the components last.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// They work.
    Working,
    /// An answer is waited for.
    Waiting,
    /// There is none.
    Stalled,
    /// Something else does not work, or nothing was said.
    Other,
}

impl Before {
    fn read(object: &KarmadaDeployment) -> Self {
        match object.condition(condition::COMPONENTS_READY) {
            Some(said) if said.status == "True" => Self::Working,
            Some(said) if said.reason == Reason::WaitingForPropagation => Self::Waiting,
            Some(said) if said.reason == Reason::PropagationStalled => Self::Stalled,
            Some(_) | None => Self::Other,
        }
    }
}

/// What is known of whether it propagates.
#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Given,
    Awaited,
    Missing,
}

/// Decides, of a plane all of whose components work otherwise. `may_ask`: whether anything may be written there.
pub(in super::super) fn probing(observed: &Observed<'_>, may_ask: bool) -> Probing {
    let Some(seen) = observed.plane.seen().and_then(|plane| plane.probe.as_ref()) else { return Probing::default() };
    let before = Before::read(observed.object);
    let (answer, is_due) = answer(observed, seen, before);
    let asks = is_due && may_ask;
    let problem = match answer {
        _ if seen.refused.is_some() => seen.refused.clone().map(refused),
        Answer::Given => None,
        // One that may not be asked waits for nothing.
        Answer::Awaited => (before != Before::Working && is_due == asks).then(awaited),
        Answer::Missing => Some(missing(seen)),
    };
    let manifest = || Manifest(asked(observed.object, observed.now));
    Probing {
        problem,
        action: asks.then(|| Action::Probe(Box::new(manifest()))),
        is_open: asks || (answer == Answer::Awaited && !is_due),
    }
}

/// What it has answered, and whether it is to be asked now.
fn answer(observed: &Observed<'_>, seen: &ProbeSeen, before: Before) -> (Answer, bool) {
    let age = seen.asked_at().map(|at| observed.now.duration_since(at)).filter(|age| !age.is_negative());
    let Some(age) = age else { return (Answer::Awaited, true) };
    match (seen.is_answered(), before) {
        // It may have been asked before it failed.
        (_, Before::Other) if age > WITHIN => (Answer::Awaited, true),
        (true, _) => (Answer::Given, age >= EVERY),
        (false, Before::Stalled) => (Answer::Missing, age >= AGAIN),
        (false, Before::Working | Before::Waiting) if age > WITHIN => (Answer::Missing, false),
        (false, Before::Working | Before::Waiting | Before::Other) => (Answer::Awaited, false),
    }
}

fn awaited() -> Problem {
    let message = format!("waiting for karmada-controller-manager to bring {} up to date", binding());
    Problem { reason: Reason::WaitingForPropagation, message }
}

fn missing(seen: &ProbeSeen) -> Problem {
    let (binding, template) = (binding(), template());
    let state = match seen.binding {
        Some(_) => format!("{binding} is as it was {} s after {template} has changed", WITHIN.as_secs()),
        None => format!("there is no {binding} {} s after {template} was written", WITHIN.as_secs()),
    };
    let namespace = template.namespace.unwrap_or_default();
    let message = format!(
        "nothing is propagated: {state}: look at the log of karmada-controller-manager, and at the Events in namespace {namespace} of the plane"
    );
    Problem { reason: Reason::PropagationStalled, message }
}

fn refused(why: String) -> Problem {
    let message = format!("the probe of the plane, {}, is refused: {}", template(), quote(why));
    Problem { reason: Reason::ComponentUnhealthy, message }
}
