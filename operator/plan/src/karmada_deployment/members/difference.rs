//! What of a member is not as it is wanted.

use crds::Reason;
use serde_json::Value;

use super::super::contact::Contact;
use super::super::names::is_taken_over;
use super::super::place::Hold;
use super::action::{Act, Place};
use super::context::{Context, facts};
use super::credentials::note_change;
use super::manifest::{Stage, Wanted};
use super::observed::PlaneSeen;
use super::wanted::wanted;
use crate::addon::Problem;
use crate::cluster_addon::conflict::{self, FieldConflict};
use crate::cluster_addon::{State, Trial};
use crate::message::quote;

/// What is to be written now, and what keeps it from being so.
#[derive(Default)]
pub(super) struct Difference {
    pub acts: Vec<Act>,
    /// What somebody has to do something about.
    pub problem: Option<Problem>,
    /// The same of its estimator, which nothing else waits for.
    pub estimator: (Vec<Act>, Option<Problem>),
    /// The first stage of which something is not there.
    pub missing: Option<Stage>,
}

/// What differs. What is there is put back in every stage; what is not waits for the stages before it. In a member that
/// does not answer nothing is known to differ.
pub(super) fn difference(context: &Context<'_>, wanted: &[Wanted]) -> Difference {
    let mut found = Difference::default();
    let (mut in_member, mut in_plane, mut on_host) = (0, 0, 0);
    for one in wanted {
        let (index, states) = match one.place {
            Place::Member => (&mut in_member, context.seen.map(|seen| seen.states.as_slice())),
            Place::Plane => (&mut in_plane, context.member.map(|member| member.in_plane.as_slice())),
            Place::Host => (&mut on_host, context.member.and_then(|member| member.on_host.as_deref())),
        };
        let at = *index;
        *index += 1;
        let Some(states) = states else { continue };
        let state = states.get(at).unwrap_or(&State::Missing);
        let is_there = matches!(state, State::There { .. });
        let waits = found.missing.is_some_and(|stage| stage < one.stage);
        if !is_there {
            found.missing.get_or_insert(one.stage);
        }
        let (acts, kept) = match one.stage {
            Stage::Estimator => (&mut found.estimator.0, &mut found.estimator.1),
            _ => (&mut found.acts, &mut found.problem),
        };
        match fate(context, one, state) {
            Fate::Settled => {}
            Fate::Apply if waits && !is_there => {}
            Fate::Apply if is_there && one.hold == Hold::Kept => {}
            Fate::Apply => {
                let mut manifest = Box::new(one.manifest.clone());
                if let (Place::Plane, State::There { live, .. }) = (one.place, state) {
                    note_change(&mut manifest.0, live, context.observed.now);
                }
                let (place, object) = (one.place, one.object.clone());
                acts.push(Act::Apply { place, index: at, object, manifest, force: is_there });
            }
            Fate::Problem(problem) => drop(kept.get_or_insert(problem)),
        }
    }
    found
}

/// What becomes of an object.
enum Fate {
    Settled,
    Apply,
    Problem(Problem),
}

fn fate(context: &Context<'_>, wanted: &Wanted, state: &State) -> Fate {
    let (object, place) = (&wanted.object, place(wanted.place));
    let problem = |reason: Reason, message: String| Fate::Problem(Problem { reason, message });
    let refused =
        |why: &str| problem(Reason::ApplyFailed, format!("{object} is refused {place}: {}", quote(why.to_owned())));
    if let State::There { live, .. } = state
        && !is_taken_over(live, context.observed.object)
    {
        return match object.kind == "Namespace" {
            true => Fate::Settled,
            false if wanted.stage == Stage::Estimator => problem(Reason::ObjectTaken, taken_from_estimator(wanted)),
            false => problem(Reason::MemberTaken, taken(wanted, live)),
        };
    }
    match state {
        State::Missing | State::There { trial: Trial::Differs, .. } => Fate::Apply,
        State::There { trial: Trial::Same | Trial::Unknown, .. } => Fate::Settled,
        State::There { trial: Trial::Conflicts(conflicts), .. } | State::Conflicting(conflicts) => {
            // In the plane they are Karmada's own, which writes what it reads there.
            match wanted.place == Place::Plane || conflicts.iter().all(FieldConflict::is_by_hand) {
                true => Fate::Apply,
                false => problem(
                    Reason::FieldConflict,
                    format!("{object} {place}: {}: make it give them up", conflict::message(conflicts)),
                ),
            }
        }
        State::There { trial: Trial::Refused(why), .. } | State::Refused(why) => refused(why),
        State::KindUnknown => refused("its API knows no such kind"),
    }
}

fn place(place: Place) -> &'static str {
    match place {
        Place::Member => "in the member",
        Place::Plane => "in the plane",
        Place::Host => "on the host",
    }
}

fn taken(wanted: &Wanted, live: &Value) -> String {
    let owner = live["metadata"]["labels"][crds::names::label::KARMADA].as_str();
    let owner = owner.map(|name| format!(" (KarmadaDeployment {name}, or a former one, made it)")).unwrap_or_default();
    format!(
        "{} is {} and was not made for this plane{owner}: the cluster may be a member of another plane: let it leave there, or delete the object",
        wanted.object,
        place(wanted.place)
    )
}

fn taken_from_estimator(wanted: &Wanted) -> String {
    let (object, place) = (&wanted.object, place(wanted.place));
    format!(
        "its estimator: {object} is {place} and was not made for this plane: delete it, or set estimator.enabled to false"
    )
}

/// What is wanted of a member now; `None`: nobody knows what it is.
pub(super) fn wanted_now(context: &Context<'_>, plane: &PlaneSeen) -> Option<Vec<Wanted>> {
    let (observed, target) = (context.observed, context.target);
    let unseen = Contact::NotMade;
    let contact = context.member.map_or(&unseen, |member| &member.contact);
    let basis = observed.basis();
    let facts = facts(&basis, target, contact, plane)?;
    let certificates = context.member.map(|member| member.certificates.clone()).unwrap_or_default();
    Some(wanted(&basis, target, &facts, &certificates, plane))
}
