//! What there is to apply and to prune, by what was seen.

use crds::addon::ConflictPolicy;
use crds::cluster_addon::AppliedObject;
use crds::{ClusterAddon, ObjectExt, Reason};
use serde_json::Value;

use super::adoption;
use super::conflict::{self, FieldConflict};
use super::documents::{Document, Stage};
use super::health::{Health, health};
use super::observed::{DocumentSeen, Observed, Seen, State, Trial, is_ours};
use super::prepared::Prepared;
use super::removal::{Removal, removal};
use crate::addon::Problem;

/// An object to apply.
pub(super) struct Step {
    /// The place of its document.
    pub index: usize,
    pub object: AppliedObject,
    pub write: Write,
}

/// What is written.
pub(super) enum Write {
    /// What a run has applied becomes the Addon's.
    Adopt(Box<Value>),
    /// The manifest is applied.
    Apply {
        /// Whether fields are taken over.
        force: bool,
    },
}

/// What there is to do on a cluster.
pub(super) struct Work {
    /// Applied now.
    pub now: Vec<Step>,
    /// All objects that are to be applied, also those that wait for a definition.
    pub pending: Vec<String>,
    /// What keeps objects from being applied.
    pub problems: Vec<Problem>,
    /// A CustomResourceDefinition of the Addon that is not established yet.
    pub waits_for_definition: Option<String>,
    /// What has left the source.
    pub removal: Removal,
    /// What is on the cluster, or about to be.
    pub inventory: Vec<AppliedObject>,
}

impl Work {
    /// Whether all documents are applied.
    pub fn is_applied(&self) -> bool {
        self.pending.is_empty() && self.problems.is_empty() && self.waits_for_definition.is_none()
    }

    /// Whether nothing is left to do.
    pub fn is_settled(&self) -> bool {
        self.is_applied() && self.removal.left.is_empty()
    }
}

/// What becomes of a document.
enum Fate {
    Settled,
    Write(Write),
    /// Its kind is defined by a document before it.
    Waits,
    Problem(Problem),
    /// Another Addon has it.
    Taken(Problem),
}

pub(super) fn work(observed: &Observed<'_>, prepared: &Prepared, seen: &Seen) -> Work {
    let documents: Vec<(&Document, &DocumentSeen)> = prepared.documents.iter().zip(&seen.documents).collect();
    let established = |(document, seen): &(&Document, &DocumentSeen)| {
        document.stage() != Stage::Definitions
            || matches!(&seen.state, State::There { live, .. } if health(live) == Health::Healthy)
    };
    let definition = documents.iter().find(|one| !established(one)).map(|(document, _)| document);
    let mut work = Work {
        now: Vec::new(),
        pending: Vec::new(),
        problems: Vec::new(),
        waits_for_definition: definition.map(|document| format!("CustomResourceDefinition {}", document.name)),
        removal: Removal::default(),
        inventory: Vec::new(),
    };
    for (index, (document, seen)) in documents.iter().enumerate() {
        let fate = fate(observed, prepared, document, seen);
        let is_taken = matches!(fate, Fate::Taken(_));
        if let Some(object) = seen.object.as_ref().filter(|_| !is_taken) {
            work.inventory.push(object.clone());
        }
        let name =
            seen.object.as_ref().map_or_else(|| format!("{} {}", document.kind, document.name), ToString::to_string);
        match (fate, &seen.object) {
            (Fate::Settled, _) => {}
            (Fate::Write(write), Some(object)) => {
                work.pending.push(name);
                // What is of a kind that is not there yet waits, and so does what is given after it.
                if definition.is_none() || document.stage() != Stage::Rest {
                    work.now.push(Step { index, object: object.clone(), write });
                }
            }
            (Fate::Waits | Fate::Write(_), _) => work.pending.push(name),
            (Fate::Problem(problem) | Fate::Taken(problem), _) => work.problems.push(problem),
        }
    }
    let old = observed.object.status.as_ref().map(|status| status.inventory.as_slice()).unwrap_or_default();
    match work.is_applied() {
        true => {
            work.removal = removal(&seen.leftovers, observed.others);
            work.inventory.extend(work.removal.left.iter().cloned());
        }
        // What is wanted no more is pruned once all else is as it is wanted.
        false => {
            let new = |there: &&AppliedObject| !work.inventory.iter().any(|wanted| wanted.is_same(there));
            let kept: Vec<AppliedObject> =
                old.iter().filter(new).filter(|there| !is_taken(observed, there)).cloned().collect();
            work.inventory.extend(kept);
        }
    }
    work
}

fn fate(observed: &Observed<'_>, prepared: &Prepared, document: &Document, seen: &DocumentSeen) -> Fate {
    let problem = |reason: Reason, message: String| Problem { reason, message };
    let name = seen.object.as_ref().map_or_else(|| format!("{} {}", document.kind, document.name), ToString::to_string);
    if let Some(object) = &seen.object
        && let Some(other) = taken_by(observed, object)
    {
        let message =
            format!("{name} is an object of Addon {}, too: take it out of one of them", other.spec.addon_ref.name);
        return Fate::Taken(problem(Reason::ObjectTaken, message));
    }
    let conflicting = |conflicts: &[FieldConflict]| {
        let message =
            format!("{name}: {}; spec.conflicts: Force would take the fields over", conflict::message(conflicts));
        Fate::Problem(problem(Reason::FieldConflict, message))
    };
    let refused =
        |why: &str| Fate::Problem(problem(Reason::ApplyFailed, format!("{name}: {why} ({})", document.place)));
    let apply = |force: bool| Fate::Write(Write::Apply { force });
    let force = observed.addon.is_some_and(|addon| addon.spec.conflicts == ConflictPolicy::Force);
    if let State::There { live, .. } = &seen.state
        && observed.addon.is_some_and(adoption::adopts)
        && let Some(patch) = adoption::patch(live)
    {
        return Fate::Write(Write::Adopt(Box::new(patch)));
    }
    match &seen.state {
        State::KindUnknown if prepared.documents.iter().any(|there| there.defines(&document.group, &document.kind)) => {
            Fate::Waits
        }
        State::KindUnknown => {
            let of = match document.group.as_str() {
                "" => document.version.clone(),
                group => format!("{group}/{}", document.version),
            };
            let message = format!("{name}: the cluster knows no {} of {of} ({})", document.kind, document.place);
            Fate::Problem(problem(Reason::KindNotFound, message))
        }
        State::Refused(why) => refused(why),
        State::Conflicting(conflicts) => conflicting(conflicts),
        State::Missing => apply(force),
        State::There { trial: Trial::Same, .. } => Fate::Settled,
        State::There { trial: Trial::Differs, .. } => apply(force),
        State::There { trial: Trial::Refused(why), .. } => refused(why),
        State::There { trial: Trial::Unknown, live } => match is_believed(observed, prepared, live) {
            true => Fate::Settled,
            false => apply(force),
        },
        State::There { trial: Trial::Conflicts(conflicts), live } => {
            // What a person changed in an object of ours is put back; an object that somebody else has made is theirs.
            let by_hand = is_ours(live) && conflicts.iter().all(FieldConflict::is_by_hand);
            match force || by_hand {
                true => apply(true),
                false => conflicting(conflicts),
            }
        }
    }
}

/// Whether an object that cannot be tried is as it was applied, as far as is known.
fn is_believed(observed: &Observed<'_>, prepared: &Prepared, live: &Value) -> bool {
    let digest = observed.object.status.as_ref().and_then(|status| status.digest.as_ref());
    is_ours(live) && digest == Some(&prepared.digest)
}

/// The ClusterAddon that has this object. Of two that have written it down at the same time the first by name has it.
fn taken_by<'a>(observed: &Observed<'a>, object: &AppliedObject) -> Option<&'a ClusterAddon> {
    let has = |there: &ClusterAddon| {
        let inventory = there.status.as_ref().map(|status| status.inventory.as_slice()).unwrap_or_default();
        inventory.iter().any(|one| one.is_same(object))
    };
    let ours = has(observed.object);
    observed.others.iter().copied().find(|other| has(other) && (!ours || other.name() < observed.object.name()))
}

fn is_taken(observed: &Observed<'_>, object: &AppliedObject) -> bool {
    taken_by(observed, object).is_some()
}
