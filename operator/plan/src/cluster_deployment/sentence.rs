//! The sentence that says what a cluster does or waits for: STATUS of `kubectl get`.

use crds::Reason;
use crds::conditions::Statement;
use crds::names::condition;
use crds::step::{Intent, Role};

use super::blocker::Blocker;
use super::proposal::{Area, Round, Severity};
use super::request::describe;
use super::state::ClusterState;
use crate::message::count;

/// The STATUS sentence of a cluster that is not paused.
pub(super) fn sentence(state: &ClusterState<'_>, round: &Round, blocker: Option<&Blocker>) -> String {
    let renewal = round.report(Area::Certificates);
    let upgrade = round.report(Area::Upgrade);
    let first = match (blocker, state.active.first()) {
        (Some(blocker), _) => blocker.message.clone(),
        (None, Some(run)) if renewal.is_none() && upgrade.is_none() => format!("running; {}", describe(state, run)),
        (None, _) => "running".into(),
    };
    // What came of a worker that was tried beside the install is not hidden by it.
    let joins = round.report(Area::Machines(Role::Worker)).filter(|report| {
        state.installed.is_none() && report.severity != Severity::Progressing && report.message != first
    });
    let joins = joins.map(|report| report.message.clone());
    let renewal = renewal.map(|report| report.message.clone());
    let upgrade = upgrade.map(|report| report.message.clone());
    let closed = round.tokens.lost().map(|lost| lost.message.clone());
    let closed = closed.filter(|closed| *closed != first);
    let repair = round.report(Area::Remediation);
    let repair = repair.map(|report| format!("repair: {}", report.message));
    let is_described = state.active.iter().any(|run| run.spec.intent == Intent::Configure);
    let configuration = round.report(Area::Configuration).filter(|_| !is_described);
    let configuration = configuration.map(|report| report.message.clone());
    let drift = round.report(Area::Drift).map(|report| report.message.clone());
    let stated = |type_: &str| round.conditions.iter().find(|statement| statement.type_ == type_);
    let wrong = |type_: &str| stated(type_).filter(|statement| statement.status == Some(false));
    let message = |statement: &Statement| statement.message.clone();
    let etcd = wrong(condition::ETCD_DATA_HEALTHY).map(message).filter(|message| *message != first);
    let is_renewed = |statement: &&Statement| statement.reason == Reason::RenewingCertificates;
    let ends = wrong(condition::CERTIFICATES_VALID).filter(|statement| !is_renewed(statement)).map(message);
    let rotation = wrong(condition::AUTHORITIES_ROTATED).map(message);
    let rest = [joins, renewal, upgrade, closed, repair, configuration, rotation, drift, etcd, ends, queue(round)]
        .into_iter()
        .flatten();
    std::iter::once(first).chain(rest).collect::<Vec<_>>().join("; ")
}

/// `run by-hand waits for a-join-x7k2m9-0 (and 2 more runs wait)`.
fn queue(round: &Round) -> Option<String> {
    let queue = &round.lock.queue;
    let first = queue.first().filter(|_| round.tokens.lost().is_none())?;
    let more = match queue.len() {
        1 => String::new(),
        more => format!(" (and {} more wait)", count(more - 1, "run")),
    };
    let behind = match first.behind.as_slice() {
        [] => "its turn".to_owned(),
        [one] => one.clone(),
        [one, others @ ..] => format!("{one} and {} more", others.len()),
    };
    Some(format!("run {} waits for {behind}{more}", first.run))
}
