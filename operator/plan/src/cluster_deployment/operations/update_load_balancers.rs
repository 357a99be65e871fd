//! Updates the load balancers on the control planes, where those hold the endpoint themselves: all of them know who is
//! behind it before another one joins, and after one has left.

use crds::PlaybookRun;
use crds::Reason;
use crds::step::{Intent, Role, Step};

use crate::attempts;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::endpoint;
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::request::{Attempt, BACKENDS, Request, Target, describe, number_after};
use crate::cluster_deployment::retrying::Effort;
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::departure::is_healthy;
use crate::message::count;
use crate::settings;

const ROLE: Role = Role::ControlPlane;

fn progressing(message: String) -> Proposal {
    let reason = Reason::UpdatingLoadBalancers;
    Proposal::report(Area::Machines(ROLE), reason, message, Severity::Progressing)
}

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    if state.installed.is_none() || endpoint::held(state).is_none() {
        return Proposal::default();
    }
    let run = state.active_with(&Step::LoadBalancer);
    match run.filter(|run| run.spec.steps.len() == 1) {
        Some(run) => progressing(describe(state, run)),
        None => update(state).unwrap_or_default(),
    }
}

fn update(state: &ClusterState<'_>) -> Option<Proposal> {
    let behind: Vec<ClusterMachine<'_>> = state.of_role(ROLE).filter(|machine| machine.host.is_some()).collect();
    let wanted = endpoint::backends(&behind);
    let digest = settings::digest(&wanted);
    // One that is sick is told when it is well, or is replaced.
    let is_untold = |machine: &ClusterMachine<'_>| {
        machine.is_provisioned() && is_healthy(machine.machine) && told(state, machine).as_ref() != Some(&digest)
    };
    let untold: Vec<ClusterMachine<'_>> = behind.into_iter().filter(is_untold).collect();
    if untold.is_empty() {
        return None;
    }
    if let Some(why) = state.membership().run_in_the_way(None) {
        return Some(progressing(why));
    }
    let tells_the_same =
        |run: &&PlaybookRun| run.spec.steps == [Step::LoadBalancer] && run.spec.vars.get(BACKENDS) == Some(&wanted);
    let same: Vec<&PlaybookRun> = state.observed.runs.iter().copied().filter(tells_the_same).collect();
    let mut targets: Vec<Target<'_>> = Vec::new();
    for machine in untold {
        let effort = Effort {
            area: Area::Machines(ROLE),
            failed: Reason::EndpointUpdateFailed,
            could_not: format!("{} could not be told who is behind the endpoint", machine.title()),
        };
        let tried = attempts::tried(&same, &[Intent::Repair], machine.uid());
        let retries = state.terms.asked_retries(machine.machine);
        let policy = state.terms.endless(retries);
        let decision = attempts::retry_decision(&tried, &policy, state.observed.now);
        let retry = decision.retry();
        if let Some(waits) = effort.propose(state, decision, |_, _| None) {
            return Some(waits);
        }
        targets.push((machine, retry));
    }
    let message = format!("tells {} who is behind the endpoint", count(targets.len(), "control plane"));
    let attempt = Attempt::from_start(number_after(same));
    let request = Request::new(Intent::Repair, vec![Step::LoadBalancer], &targets, attempt)
        .named(["load-balancer", &wanted.to_string()]);
    Some(progressing(message).and(Action::create(request.run(state))))
}

/// Who is behind the endpoint as far as a machine was told last, as a digest: its status remembers that.
fn told(state: &ClusterState<'_>, machine: &ClusterMachine<'_>) -> Option<String> {
    let applied = settings::applied(machine.machine, machine.host_name()?, state.observed.runs);
    applied?.load_balancer_backends
}
