//! The run that a Machine tells of.

use crds::Conditions;
use crds::ObjectExt;
use crds::machine::LastRun;
use crds::names::condition;
use crds::{Host, PlaybookRun};

use crate::attempts::{self, Outcome};
use crate::machine::observed::Observed;
use crate::message::cut;

/// The newest run that is over and was about this Machine, or worked on its Host since it was claimed.
pub(super) fn newest(observed: &Observed<'_>, host: &Host) -> Option<LastRun> {
    let uid = observed.machine.uid();
    let name = host.name();
    let claimed = observed.machine.condition(condition::HOST_CLAIMED);
    let claimed = claimed.filter(|claimed| claimed.status == "True").map(|claimed| &claimed.last_transition_time);
    let about = |run: &PlaybookRun| match attempts::targets(run).get(name) {
        Some(target) => target.uid == uid,
        None => {
            !run.spec.intent.changes_nothing()
                && run.spec.hosts.iter().any(|named| named == name)
                && claimed.is_some_and(|claimed| run.created_at() >= Some(claimed))
        }
    };
    let run = observed
        .runs
        .iter()
        .filter(|run| attempts::is_over(run) && about(run))
        .max_by_key(|run| (attempts::ended_at(run), run.metadata.name.clone()))?;
    let (outcome, message) = match attempts::outcome(run, name) {
        Outcome::Succeeded => ("Succeeded", None),
        Outcome::Canceled => ("Canceled", None),
        Outcome::Held => ("Paused", None),
        Outcome::Failed(failure) if failure.unreachable => ("Unreachable", Some(failure)),
        Outcome::Failed(failure) => ("Failed", Some(failure)),
        Outcome::UnderWay => return None,
    };
    Some(LastRun {
        name: run.name().to_owned(),
        outcome: outcome.into(),
        message: message.map(|failure| cut(format!("{}: {}", failure.reason, failure.message))),
    })
}
