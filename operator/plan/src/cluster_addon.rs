//! ClusterAddon: what is applied to one cluster, put back, and removed, and whether it is healthy.

mod action;
mod adoption;
mod apply;
pub mod chart;
pub mod checks;
pub mod conflict;
pub mod documents;
pub mod facts;
pub mod health;
mod leaving;
mod observed;
mod pace;
pub mod prepared;
mod removal;
mod status;

use crds::conditions::Statement;
use crds::names::{condition, finalizer};
use crds::{ClusterAddonStatus, ObjectExt, Reason};

use crate::addon::Problem;
use crate::message::count;
use crate::{Next, Plan};
pub use action::Action;
use action::Planned;
use apply::{Work, Write};
use chart::PreparedChart;
pub use observed::{Contact, DocumentSeen, Leftover, Observed, Seen, State, Trial, Wanted, is_same, leftovers};
use pace::{ASK_AGAIN_SECONDS, next, resync};
use prepared::Prepared;
pub use removal::Deletion;
use status::{Told, number};

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Planned {
    if observed.object.is_deleting() {
        return leaving::plan(observed);
    }
    match ready_to_apply(observed) {
        Ok((Ready::Documents(prepared), seen)) => apply_plan(observed, prepared, seen),
        Ok((Ready::Chart(prepared), seen)) => chart::plan::plan(observed, prepared, seen),
        Err((status, problem)) => stopped(observed, status, &problem),
    }
}

/// What is applied.
enum Ready<'a> {
    Documents(&'a Prepared),
    Chart(&'a PreparedChart),
}

/// What is applied to which cluster; or why nothing is, and whether that is known to be so.
fn ready_to_apply<'a>(observed: &Observed<'a>) -> Result<(Ready<'a>, &'a Seen), (Option<bool>, Problem)> {
    let problem = |reason: Reason, message: String| Problem { reason, message };
    let spec = &observed.object.spec;
    if observed.addon.is_none() {
        let message = format!("Addon {} is not there", spec.addon_ref.name);
        return Err((Some(false), problem(Reason::AddonNotFound, message)));
    }
    let Some(cluster) = observed.cluster else {
        let message = format!("Cluster {} is not there", spec.cluster_ref.name);
        return Err((None, problem(Reason::ClusterNotFound, message)));
    };
    let prepared = match observed.wanted {
        Wanted::Nothing if spec.waits_for.is_empty() => {
            let message = "waiting for its turn in the rollout".to_owned();
            return Err((Some(false), problem(Reason::WaitingForRollout, message)));
        }
        Wanted::Nothing => {
            let message = format!("waiting for Addon {} to be Ready on this cluster", spec.waits_for.join(", "));
            return Err((Some(false), problem(Reason::WaitingForAddons, message)));
        }
        Wanted::NoContent(why) => return Err((Some(false), problem(Reason::WaitingForContent, why.clone()))),
        Wanted::Invalid(why) => return Err((Some(false), why.clone())),
        Wanted::Documents(prepared) => Ready::Documents(prepared),
        Wanted::Chart(prepared) => Ready::Chart(prepared),
    };
    match observed.contact {
        Contact::Made(seen) => Ok((prepared, seen)),
        Contact::Lost(why) => Err((
            None,
            problem(Reason::ClusterUnreachable, format!("Cluster {} does not answer: {why}", cluster.name())),
        )),
        Contact::NotMade => {
            let message = format!("Cluster {} does not answer; it goes on when it does", cluster.name());
            Err((None, problem(Reason::ClusterUnreachable, message)))
        }
    }
}

/// The plan of one that nothing is applied for.
fn stopped(observed: &Observed<'_>, status: Option<bool>, problem: &Problem) -> Planned {
    let applied = Statement::new(condition::APPLIED, status, problem.reason, problem.message.clone());
    let healthy = Statement::new(condition::HEALTHY, None, problem.reason, problem.message.clone());
    let old = observed.object.status.clone().unwrap_or_default();
    let status = status::status(observed, old, Told { applied, healthy });
    let next = match problem.reason {
        Reason::ClusterUnreachable | Reason::WaitingForContent => Next::after_seconds(ASK_AGAIN_SECONDS),
        _ => resync(observed),
    };
    let waits_for = status.message.clone();
    Plan { actions: Vec::new(), status, next, waits_for }
}

fn apply_plan(observed: &Observed<'_>, prepared: &Prepared, seen: &Seen) -> Planned {
    let work = apply::work(observed, prepared, seen);
    let paused = observed.addon.is_some_and(|addon| addon.spec.paused);
    let actions = if paused { Vec::new() } else { actions(observed, prepared, &work) };
    let old = observed.object.status.clone().unwrap_or_default();
    let mut shown =
        ClusterAddonStatus { objects: number(work.inventory.len()), inventory: work.inventory.clone(), ..old };
    if paused {
        shown.inventory = observed.object.status.as_ref().map(|status| status.inventory.clone()).unwrap_or_default();
        shown.objects = number(shown.inventory.len());
    }
    if work.is_applied() && (!paused || shown.revision.as_ref() == Some(&prepared.revision)) {
        if shown.digest.as_ref() != Some(&prepared.digest) || shown.revision.as_ref() != Some(&prepared.revision) {
            shown.applied_at = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(observed.now));
        }
        shown.revision = Some(prepared.revision.clone());
        shown.version = prepared.version.clone();
        shown.digest = Some(prepared.digest.clone());
    }
    let applied = applied(&work, paused);
    let (healthy, unhealthy) = status::healthy(observed, prepared, seen, &shown);
    shown.unhealthy = unhealthy;
    let next = next(observed, &work, (&applied, &healthy), paused);
    let status = status::status(observed, shown, Told { applied, healthy });
    let is_ready = status.conditions.iter().any(|there| there.type_ == condition::READY && there.status == "True");
    let waits_for = status.message.clone().filter(|_| !is_ready);
    Plan { actions, status, next, waits_for }
}

fn actions(observed: &Observed<'_>, prepared: &Prepared, work: &Work) -> Vec<Action> {
    let mut actions = Vec::new();
    let apply: Vec<Action> = work
        .now
        .iter()
        .map(|step| match &step.write {
            Write::Adopt(patch) => {
                Action::Adopt { index: step.index, object: step.object.clone(), patch: patch.clone() }
            }
            Write::Apply { force } => Action::Apply {
                index: step.index,
                object: step.object.clone(),
                manifest: Box::new(prepared.documents[step.index].manifest(&step.object)),
                force: *force,
            },
        })
        .collect();
    // Also where all that is wanted was there already.
    if !work.inventory.is_empty() && !observed.object.has_finalizer(finalizer::CLUSTER_ADDON) {
        actions.push(Action::AddFinalizer);
    }
    if !apply.is_empty() {
        let known = observed.object.status.as_ref().map(|status| status.inventory.as_slice()).unwrap_or_default();
        if work.now.iter().any(|step| !known.iter().any(|there| there.is_same(&step.object))) {
            actions.push(Action::Record(work.inventory.clone()));
        }
    }
    actions.extend(apply);
    actions.extend(work.removal.delete.iter().cloned().map(Action::Delete));
    actions
}

/// What is said of what was applied.
fn applied(work: &Work, paused: bool) -> Statement {
    let stated =
        |status: bool, reason: Reason, message: String| Statement::new(condition::APPLIED, status, reason, message);
    let first = |objects: &[String]| {
        let more = objects.len().saturating_sub(1);
        let more = if more > 0 { format!(" and {} more", count(more, "object")) } else { String::new() };
        format!("{}{more}", objects.first().map(String::as_str).unwrap_or_default())
    };
    if paused && !work.is_settled() {
        let differing = work.pending.len() + work.problems.len() + work.removal.left.len();
        let message =
            format!("paused: {} to be written once spec.paused of the Addon is false", count(differing, "object"));
        return stated(false, Reason::Paused, message);
    }
    if let Some(problem) = work.problems.first() {
        let more = work.problems.len() - 1;
        let more = if more > 0 { format!("; and {} more", count(more, "object")) } else { String::new() };
        return stated(false, problem.reason, format!("{}{more}", problem.message));
    }
    if !work.pending.is_empty() {
        return stated(false, Reason::Applying, format!("applying {}", first(&work.pending)));
    }
    if let Some(definition) = &work.waits_for_definition {
        return stated(false, Reason::Applying, format!("waiting for {definition} to be established"));
    }
    if !work.removal.left.is_empty() {
        let names: Vec<String> = work.removal.left.iter().map(ToString::to_string).collect();
        let message = work.removal.held.clone().unwrap_or_else(|| format!("deleting {}", first(&names)));
        return stated(false, Reason::Pruning, format!("{message}, which left the source"));
    }
    stated(true, Reason::Applied, format!("{} as wanted", count(work.inventory.len(), "object")))
}

#[cfg(test)]
mod tests;
