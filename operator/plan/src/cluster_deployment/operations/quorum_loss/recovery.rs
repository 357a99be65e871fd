//! The machine that goes on alone, attempt after attempt on the same one.

use crds::ObjectExt;
use crds::PlaybookRun;
use crds::Reason;
use crds::names::annotation;
use crds::step::{Intent, Role, Step};
use jiff::Timestamp;
use serde_json::json;

use super::report::{lost, of_loss};
use crate::attempts;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Area, Proposal};
use crate::cluster_deployment::request::{Attempt, Request, describe_as};
use crate::cluster_deployment::retrying::Effort;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};

/// A recovery that was begun since the loss: it goes on, on the same machine, or has come to its end.
pub(super) fn goes_on(state: &ClusterState<'_>, role: Role, since: Timestamp) -> Option<Proposal> {
    let is_begun = |run: &&PlaybookRun| {
        let made = run.created_at();
        run.spec.steps.contains(&Step::RecoverEtcd)
            && !attempts::targets(run).is_empty()
            && made.is_some_and(|made| made.0 >= since)
    };
    let begun: Vec<&PlaybookRun> = state.observed.runs.iter().copied().filter(is_begun).collect();
    let last = begun.iter().max_by_key(|run| attempts::attempt_of(run))?;
    if !attempts::is_over(last) {
        let what = format!("etcd goes on with {} alone", last.spec.hosts.join(", "));
        return Some(lost(role, Reason::RecoveringEtcd, describe_as(state, &what, last)));
    }
    let survivor = attempts::targets(last)
        .into_values()
        .find_map(|target| state.live.iter().find(|machine| machine.uid() == target.uid))?;
    let tried = attempts::tried_by(&begun, |run| {
        let host = survivor.host_name()?;
        let target = attempts::targets(run).remove(host)?;
        (target.uid == survivor.uid()).then(|| (host.to_owned(), target))
    });
    let retries = state.terms.asked_retries(survivor.machine);
    let policy = state.terms.limited(retries).stopped_is_final();
    let effort = Effort {
        area: Area::Machines(role),
        failed: Reason::EtcdRecoveryFailed,
        could_not: format!("{} could not go on alone", survivor.title()),
    };
    // Once it is done the API servers are told, and then the API answers.
    let decision = attempts::retry_decision(&tried, &policy, state.observed.now);
    let proposal = effort.propose(state, decision, |number, retry| {
        let approval = last.annotation(annotation::APPROVE)?;
        Some(begin(state, role, *survivor, approval, number, retry))
    });
    proposal.map(of_loss)
}

/// Makes this member the only one.
pub(super) fn begin(
    state: &ClusterState<'_>,
    role: Role,
    survivor: ClusterMachine<'_>,
    approval: &str,
    number: i32,
    retry: Option<String>,
) -> Proposal {
    let message = format!("etcd goes on with {} alone, from its own data", survivor.title());
    let host = survivor.host_name().unwrap_or_default();
    let mut vars = state.etcd_variables(&[survivor.machine]);
    vars.insert("etcd_recover_member".into(), json!({ "name": host, "host": host }));
    let (steps, targets) = (vec![Step::RecoverEtcd], [(survivor, retry)]);
    let request = Request::new(Intent::Repair, steps, &targets, Attempt::from_start(number))
        .named(["recover", survivor.uid(), approval])
        .with(vars);
    let mut run = request.run(state);
    let annotations = run.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::APPROVE.into(), approval.to_owned());
    lost(role, Reason::RecoveringEtcd, message).and(Action::create(run))
}
