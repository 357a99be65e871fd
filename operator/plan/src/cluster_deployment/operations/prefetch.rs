//! Looks for everything that stands against another Kubernetes version, and brings what it needs to all machines before
//! the first of them is touched. Nothing runs there with it yet, so the wish may still be taken back.

use crds::Reason;
use crds::step::{Intent, Role, Step};

use crate::attempts::{self, RetryDecision};
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::backup_before;
use crate::cluster_deployment::lane::{Lane, Needs};
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::request::{BATCH, Target, describe};
use crate::cluster_deployment::retrying::Effort;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::cluster_deployment::tried::{self, Tried};
use crate::cluster_deployment::upgrade;
use crate::cluster_deployment::wanted_upgrade::Upgrade;
use crate::departure::is_healthy;

/// What is played.
const STEPS: [Step; 2] = [Step::PreflightUpgrade, Step::Prefetch];
/// Runs that are kept, the newest.
const KEEP: usize = 4;

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    if !round.allows(Lane::Workers, Needs::Spec) {
        return Proposal::default();
    }
    let upgrade = state.upgrade.as_ref().filter(|upgrade| !upgrade.has_begun);
    upgrade.and_then(|upgrade| next(state, round, upgrade)).unwrap_or_default()
}

/// The runs by which it is known how often it was tried.
pub(super) fn keeps(state: &ClusterState<'_>) -> Vec<String> {
    tried::kept(state, Intent::Prefetch, KEEP)
}

/// The machines that have yet to be brought it: all but workers that are not well, for which nobody waits.
pub(super) fn missing<'a>(state: &ClusterState<'a>, upgrade: &Upgrade<'_>) -> Vec<ClusterMachine<'a>> {
    let is_awaited = |machine: &ClusterMachine<'_>| {
        let is_part = machine.is_provisioned() && machine.host.is_some();
        is_part && (machine.machine.spec.role != Role::Worker || is_healthy(machine.machine))
    };
    let awaited = state.live.iter().copied().filter(is_awaited);
    awaited.filter(|machine| !upgrade::is_prefetched(state, machine, upgrade.to)).collect()
}

fn next(state: &ClusterState<'_>, round: &Round, upgrade: &Upgrade<'_>) -> Option<Proposal> {
    let progressing = |what: String| {
        let message = format!("{}: {what}", upgrade.title());
        Proposal::report(Area::Upgrade, Reason::Upgrading, message, Severity::Progressing)
    };
    let under_way = tried::runs(state, Intent::Prefetch).into_iter().find(|run| !attempts::is_over(run));
    if let Some(run) = under_way {
        return Some(progressing(format!("{}{}", describe(state, run), backup_before::warning(state))));
    }
    let tried = Tried::new(state, Intent::Prefetch, upgrade.to.to_string());
    let missing = missing(state, upgrade);
    let (mut due, mut failed): (Vec<Target<'_>>, Option<Proposal>) = (Vec::new(), None);
    for machine in &missing {
        match next_attempt(state, &tried, machine) {
            Ok(retry) => {
                let is_free = |host| state.active_on(host).is_none() && !round.works_on(host);
                if is_healthy(machine.machine) && machine.host_name().is_some_and(is_free) {
                    due.push((*machine, retry));
                }
            }
            Err(decision) => failed = failed.or_else(|| report_failure(state, upgrade, machine, decision)),
        }
    }
    let mut proposal = match (&failed, missing.as_slice()) {
        (Some(_), _) => failed.unwrap_or_default(),
        (None, []) => return None,
        (None, _) => progressing(format!("what it needs is brought to the machines{}", backup_before::warning(state))),
    };
    for (number, batch) in due.chunks(BATCH).enumerate() {
        let run = tried.request(STEPS.into(), batch, &number.to_string()).run(state);
        proposal = proposal.and(Action::create(run));
    }
    Some(proposal)
}

/// The retry that the machine's next attempt answers, if that is due; else where the last one stands. One that went
/// well is made again when its word is too old, and when another version was brought since.
fn next_attempt(
    state: &ClusterState<'_>,
    tried: &Tried<'_>,
    machine: &ClusterMachine<'_>,
) -> Result<Option<String>, RetryDecision> {
    match tried.decision(state, machine, &STEPS) {
        RetryDecision::Now { retry, .. } => Ok(retry),
        RetryDecision::Done { at: Some(at), .. } if upgrade::is_stale(state, at) => Ok(None),
        RetryDecision::Done { .. } if !tried.is_in_vain(state, machine, &STEPS) => Ok(None),
        decision => Err(decision),
    }
}

fn report_failure(
    state: &ClusterState<'_>,
    upgrade: &Upgrade<'_>,
    machine: &ClusterMachine<'_>,
    decision: RetryDecision,
) -> Option<Proposal> {
    let is_refused = decision.cause().is_some_and(|cause| cause.reason == Reason::PreflightFailed);
    let (title, name) = (upgrade.title(), machine.title());
    let could_not = match is_refused {
        true => format!("{title}: preflight on {name} found what blocks it"),
        false => format!("{title}: what {} needs could not be brought to {name}", upgrade.to),
    };
    let effort = Effort { area: Area::Upgrade, failed: Reason::UpgradeFailed, could_not };
    let mut proposal = effort.propose(state, decision, |_, _| None)?;
    if let Some(report) = proposal.report.as_mut().filter(|_| is_refused) {
        let back = state.version_begun();
        report.message.push_str(&format!(
            "; or name the finding in spec.preflight.ignore, or set spec.kubernetesVersion back to {back}"
        ));
    }
    Some(proposal)
}
