//! Upgrades machines of a dedicated etcd, then control planes, one after the other; the first one that fails keeps all
//! others as they are.

use crds::Reason;
use crds::cluster_deployment::EtcdTopology;
use crds::machine::DrainReason;
use crds::step::{Intent, Role, Step};

use super::prefetch;
use crate::attempts::RetryDecision;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::backup_before;
use crate::cluster_deployment::drained_for;
use crate::cluster_deployment::lane::{Lane, Needs};
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::request::describe_as;
use crate::cluster_deployment::retrying::Effort;
use crate::cluster_deployment::rollout::gate::{Begun, gate};
use crate::cluster_deployment::rotating;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::cluster_deployment::tried::{self, Tried};
use crate::cluster_deployment::turn;
use crate::cluster_deployment::upgrade;
use crate::cluster_deployment::wanted_upgrade::Upgrade;
use crate::hooks::around_upgrade;

/// Runs that are kept, the newest.
const KEEP: usize = 16;

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    if !round.allows(Lane::ControlPlane, Needs::Spec) {
        return Proposal::default();
    }
    state.upgrade.as_ref().and_then(|upgrade| next(state, upgrade)).unwrap_or_default()
}

/// The runs by which it is known how often it was tried, those on workers among them.
pub(super) fn keeps(state: &ClusterState<'_>) -> Vec<String> {
    tried::kept(state, Intent::Upgrade, KEEP)
}

fn next(state: &ClusterState<'_>, upgrade: &Upgrade<'_>) -> Option<Proposal> {
    let machine = upgrade.control_planes().next()?;
    if !upgrade.has_begun && rotating::under_way(state).is_some() {
        return None;
    }
    if !upgrade.has_begun && (joins(state) || !prefetch::missing(state, upgrade).is_empty()) {
        return None;
    }
    let title = title(state, upgrade, machine);
    let progressing = |what: &str| {
        Proposal::report(Area::Upgrade, Reason::Upgrading, format!("{title}: {what}"), Severity::Progressing)
    };
    let under_way = state.active_on(machine.host_name()?).filter(|run| run.spec.intent == Intent::Upgrade);
    if let Some(run) = under_way {
        let message = describe_as(state, &title, run);
        return Some(Proposal::report(Area::Upgrade, Reason::Upgrading, message, Severity::Progressing));
    }
    let tried = Tried::new(state, Intent::Upgrade, upgrade.to.to_string());
    let steps = steps(state, machine);
    let decision = tried.decision(state, machine, &steps);
    let is_again = decision.is_again();
    match decision {
        RetryDecision::Now { retry, .. } => {
            let begun = Begun::new(is_again, upgrade::is_drained_for(machine));
            if let Some(closed) = gate(state, begun, Area::Upgrade, &title) {
                return Some(closed);
            }
            let why = turn::why_not_now(state, is_again.then_some(machine)).or_else(|| still_drained(state, machine));
            if let Some(why) = why {
                return Some(progressing(&why));
            }
            let is_untouched = !upgrade.has_begun && !upgrade::is_drained_for(machine);
            let backup = || backup_before::propose(state, Reason::Upgrading, &title).filter(|_| is_untouched);
            if let Some(proposal) = backup().or_else(|| drained(upgrade, machine, &progressing)) {
                return Some(proposal);
            }
            let target = [(*machine, retry)];
            let request = tried.request(steps, &target, machine.uid());
            let members = state.etcd_variables(&state.membership().members());
            Some(progressing("begins").and(Action::create(request.with(members).around(around_upgrade).run(state))))
        }
        decision => failed(state, &title, decision)
            .or_else(|| Some(progressing(&format!("waits for its Node to say that its kubelet is {}", upgrade.to)))),
    }
}

/// The one before it has yet to take Pods again.
fn still_drained(state: &ClusterState<'_>, machine: &ClusterMachine<'_>) -> Option<String> {
    let mut others = state.of_role(Role::ControlPlane).filter(|other| other.uid() != machine.uid());
    let other = others.find(upgrade::is_drained_for)?;
    Some(format!("waits for {} to take Pods again", other.title()))
}

/// Whether a control plane or a machine of etcd has yet to join: that goes before an upgrade begins.
fn joins(state: &ClusterState<'_>) -> bool {
    let mut others = state.live.iter().filter(|machine| machine.machine.spec.role != Role::Worker);
    others.any(|machine| machine.host.is_some() && !machine.is_provisioned())
}

/// `upgrading 1.34.4 -> 1.35.4: control plane 2 of 3, a-control-plane-x7k2 (rack2-node01)`.
fn title(state: &ClusterState<'_>, upgrade: &Upgrade<'_>, machine: &ClusterMachine<'_>) -> String {
    let role = machine.machine.spec.role;
    let all = state.of_role(role).filter(ClusterMachine::is_provisioned).count();
    let due = upgrade.due.iter().filter(|due| due.machine.spec.role == role).count();
    let what = match role {
        Role::Etcd => "machine of etcd",
        Role::ControlPlane | Role::Worker => "control plane",
    };
    format!("{}: {what} {} of {all}, {}", upgrade.title(), all + 1 - due, machine.title())
}

/// What is played. The kubelet comes last: it may not be newer than its API server.
fn steps(state: &ClusterState<'_>, machine: &ClusterMachine<'_>) -> Vec<Step> {
    if machine.machine.spec.role == Role::Etcd {
        return vec![Step::Etcd];
    }
    let is_stacked = state.deployment.spec.etcd.topology == EtcdTopology::Stacked;
    let etcd = is_stacked.then_some(Step::Etcd);
    etcd.into_iter().chain([Step::KubeadmUpgrade, Step::ContainerRuntime, Step::ControlPlane]).collect()
}

/// What is done until no Pod is left on the Node that would not outlive it; none: it may begin.
pub(super) fn drained(
    upgrade: &Upgrade<'_>,
    machine: &ClusterMachine<'_>,
    progressing: &dyn Fn(&str) -> Proposal,
) -> Option<Proposal> {
    if !upgrade.drains(machine) {
        return None;
    }
    drained_for::drained(machine, DrainReason::Upgrade, progressing)
}

/// What is said of a machine that has failed; none: it has not.
pub(super) fn failed(state: &ClusterState<'_>, title: &str, decision: RetryDecision) -> Option<Proposal> {
    let effort =
        Effort { area: Area::Upgrade, failed: Reason::UpgradeFailed, could_not: format!("{title}: it failed") };
    let mut proposal = effort.propose(state, decision, |_, _| None)?;
    if let Some(report) = &mut proposal.report {
        report.message.push_str("; all other machines stay as they are until then");
    }
    Some(proposal)
}
