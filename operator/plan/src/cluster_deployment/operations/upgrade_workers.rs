//! Upgrades workers once all control planes are: one before all others, then of each set as many at once as may be out of
//! service. While one has failed, no other one begins.

use std::collections::BTreeMap;

use crds::step::{Intent, Role, Step};
use crds::{PlaybookRun, Reason};

use super::upgrade_control_plane::{drained, failed};
use crate::attempts::RetryDecision;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::lane::{Lane, Needs};
use crate::cluster_deployment::proposal::{Area, Proposal, Report, Round, Severity};
use crate::cluster_deployment::request::describe_as;
use crate::cluster_deployment::room::{self, set_of};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::cluster_deployment::tried::Tried;
use crate::cluster_deployment::upgrade::{self, Upgrade};
use crate::departure::is_healthy;
use crate::hooks::around_upgrade;

/// What is played. The kubelet comes last: what kubeadm leaves for it is of its version.
const STEPS: [Step; 3] = [Step::KubeadmUpgrade, Step::ContainerRuntime, Step::Node];

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    if !round.allows(Lane::Workers, Needs::Spec) {
        return Proposal::default();
    }
    let upgrade = Upgrade::find(state);
    let upgrade = upgrade.filter(|upgrade| upgrade.has_begun && upgrade.control_planes().next().is_none());
    upgrade.and_then(|upgrade| Workers::look(state, upgrade).next(round)).unwrap_or_default()
}

/// Where the workers stand.
struct Workers<'s, 'a> {
    state: &'s ClusterState<'a>,
    upgrade: Upgrade<'a>,
    tried: Tried<'a>,
    /// Those whose turn it is, or may be.
    due: Vec<Due<'a>>,
    /// Those on which a run works.
    under_way: Vec<(ClusterMachine<'a>, &'a PlaybookRun)>,
    /// One that is done, and whose Node does not say so yet.
    settling: Option<ClusterMachine<'a>>,
    /// What is said of one that has failed.
    failed: Option<Proposal>,
}

/// A worker whose turn it is, or may be.
struct Due<'a> {
    worker: ClusterMachine<'a>,
    /// The retry that it answers.
    retry: Option<String>,
    /// It is out of service for the upgrade already, or was tried before.
    has_begun: bool,
}

impl<'s, 'a> Workers<'s, 'a> {
    fn look(state: &'s ClusterState<'a>, upgrade: Upgrade<'a>) -> Self {
        let tried = Tried::new(state, Intent::Upgrade, upgrade.to.to_string());
        let (due, under_way) = (Vec::new(), Vec::new());
        let mut workers = Self { state, upgrade, tried, due, under_way, settling: None, failed: None };
        for worker in workers.upgrade.workers().copied().collect::<Vec<_>>() {
            let run = worker.host_name().and_then(|host| state.active_on(host));
            if let Some(run) = run {
                workers.under_way.push((worker, run));
                continue;
            }
            let decision = workers.tried.decision(state, &worker, &STEPS);
            let has_begun = decision.is_again() || upgrade::is_drained_for(&worker);
            match decision {
                RetryDecision::Now { retry, .. } => workers.due.push(Due { worker, retry, has_begun }),
                RetryDecision::UnderWay { .. } | RetryDecision::Done { .. } => workers.settling = Some(worker),
                decision => {
                    let title = format!("{}: worker {}", workers.upgrade.title(), worker.title());
                    workers.failed = workers.failed.take().or_else(|| failed(state, &title, decision));
                }
            }
        }
        workers
    }

    fn next(mut self, round: &Round) -> Option<Proposal> {
        if let Some(failed) = self.failed.take() {
            return Some(failed);
        }
        let mut room = self.room();
        let is_first = !self.is_proved();
        let mut begun = self.under_way.len() + usize::from(self.settling.is_some());
        begun += self.due.iter().filter(|due| due.has_begun).count();
        let (mut actions, mut says) = (Vec::new(), None);
        for Due { worker, retry, has_begun } in &self.due {
            let room = room.entry(set_of(worker)).or_default();
            let waits = !has_begun && (!is_healthy(worker.machine) || *room == 0 || (is_first && begun > 0));
            if waits || worker.host_name().is_some_and(|host| round.works_on(host)) {
                continue;
            }
            if !has_begun {
                *room -= 1;
                begun += 1;
            }
            let progressing = |what: &str| self.progressing(&format!("{}: {what}", worker.title()));
            match drained(&self.upgrade, worker, &progressing) {
                Some(proposal) => {
                    actions.extend(proposal.actions);
                    says = says.or(proposal.report);
                }
                None => {
                    let target = [(*worker, retry.clone())];
                    let request = self.tried.request(STEPS.into(), &target, worker.uid()).around(around_upgrade);
                    actions.push(Action::create(request.run(self.state)));
                    says = says.or(progressing("begins").report);
                }
            }
        }
        let report = self.report_of_run().or(says).or_else(|| self.waits().report);
        Some(Proposal { actions, report, ..Proposal::default() })
    }

    /// How many more of each set may be taken out of service.
    fn room(&self) -> BTreeMap<String, usize> {
        room::room(self.state, |worker| {
            self.under_way.iter().any(|(busy, _)| busy.uid() == worker.uid())
                || self.settling.is_some_and(|settling| settling.uid() == worker.uid())
        })
    }

    /// Whether a worker is well with the version that is wanted.
    fn is_proved(&self) -> bool {
        let mut workers = self.state.of_role(Role::Worker).filter(ClusterMachine::is_provisioned);
        workers.any(|worker| !self.upgrade.is_due(&worker) && is_healthy(worker.machine))
    }

    fn progressing(&self, what: &str) -> Proposal {
        let all = self.state.of_role(Role::Worker).filter(ClusterMachine::is_provisioned).count();
        let done = all - self.upgrade.workers().count();
        let message = format!("{}: {done} of {all} workers have it; {what}", self.upgrade.title());
        Proposal::report(Area::Upgrade, Reason::Upgrading, message, Severity::Progressing)
    }

    fn report_of_run(&self) -> Option<Report> {
        let (worker, run) = self.under_way.first()?;
        self.progressing(&describe_as(self.state, &worker.title(), run)).report
    }

    /// Nothing can begin now.
    fn waits(&self) -> Proposal {
        let sick = || self.state.of_role(Role::Worker).find(|worker| !is_healthy(worker.machine));
        let drained = || self.state.of_role(Role::Worker).find(|worker| !worker.machine.spec.drain_for.is_empty());
        let waits = match (self.settling.or_else(sick), drained()) {
            (Some(worker), _) => format!("waits for {} to be well ({})", worker.title(), worker.says()),
            (None, Some(worker)) => format!("waits for {} to take Pods again ({})", worker.title(), worker.says()),
            (None, None) => "waits until machines may be taken out of service".to_owned(),
        };
        self.progressing(&waits)
    }
}
