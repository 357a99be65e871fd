//! Upgrades workers once all control planes are: one before all others, then of each set as many at once as may be out
//! of service. While one has failed, no other one begins.

use std::collections::BTreeMap;

use crds::step::{Intent, Role, Step};
use crds::{PlaybookRun, Reason};

use super::upgrade_control_plane::{drained, failed};
use crate::attempts::RetryDecision;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::lane::{Lane, Needs};
use crate::cluster_deployment::proposal::{Area, Proposal, Report, Round, Severity};
use crate::cluster_deployment::request::describe_as;
use crate::cluster_deployment::rollout::canaries::Canaries;
use crate::cluster_deployment::rollout::gate::{Begun, gate};
use crate::cluster_deployment::room::{self, set_of};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::cluster_deployment::tried::Tried;
use crate::cluster_deployment::wanted_upgrade::Upgrade;
use crate::cluster_deployment::{surge, upgrade};
use crate::departure::is_healthy;
use crate::hooks::around_upgrade;

/// What is played. The kubelet comes last: what kubeadm leaves for it is of its version.
const STEPS: [Step; 3] = [Step::KubeadmUpgrade, Step::ContainerRuntime, Step::Node];

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    if !round.allows(Lane::Workers, Needs::Spec) {
        return Proposal::default();
    }
    let upgrade = state.upgrade.as_ref();
    let upgrade = upgrade.filter(|upgrade| upgrade.has_begun && upgrade.control_planes().next().is_none());
    upgrade.and_then(|upgrade| Workers::look(state, upgrade).next(round)).unwrap_or_default()
}

/// Where the workers stand.
struct Workers<'s, 'a> {
    state: &'s ClusterState<'a>,
    upgrade: &'s Upgrade<'a>,
    tried: Tried<'a>,
    /// Those whose turn it is, or may be.
    due: Vec<Due<'a>>,
    /// Those on which a run works.
    under_way: Vec<(ClusterMachine<'a>, &'a PlaybookRun)>,
    /// Those that are done, and whose Nodes do not say so yet.
    settling: Vec<ClusterMachine<'a>>,
    /// What is said of one that has failed.
    failed: Option<Proposal>,
}

/// A worker whose turn it is, or may be.
struct Due<'a> {
    worker: ClusterMachine<'a>,
    /// The retry that it answers.
    retry: Option<String>,
    /// It is out of service for the upgrade already, or was tried before.
    begun: Begun,
}

impl<'s, 'a> Workers<'s, 'a> {
    fn look(state: &'s ClusterState<'a>, upgrade: &'s Upgrade<'a>) -> Self {
        let tried = Tried::new(state, Intent::Upgrade, upgrade.to.to_string());
        let (due, under_way) = (Vec::new(), Vec::new());
        let mut workers = Self { state, upgrade, tried, due, under_way, settling: Vec::new(), failed: None };
        for worker in upgrade.workers().copied() {
            let run = worker.host_name().and_then(|host| state.active_on(host));
            if let Some(run) = run {
                workers.under_way.push((worker, run));
                continue;
            }
            let decision = workers.tried.decision(state, &worker, &STEPS);
            let begun = Begun::new(decision.is_again(), upgrade::is_drained_for(&worker));
            match decision {
                RetryDecision::Now { retry, .. } => workers.due.push(Due { worker, retry, begun }),
                RetryDecision::UnderWay { .. } | RetryDecision::Done { .. } => workers.settling.push(worker),
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
        if let Some(why) = self.state.waits_for_api().or_else(|| self.state.waits_for_etcd()) {
            let report = self.report_of_run().or(self.progressing(&why).report);
            return Some(Proposal { report, ..Proposal::default() });
        }
        let mut room = self.room();
        let canaries = Canaries::look(self.state, &self.tried, |worker| self.upgrade.is_due(worker));
        let mut begun = self.under_way.len() + self.settling.len();
        begun += self.due.iter().filter(|due| due.begun != Begun::Nothing).count();
        let (mut actions, mut says, mut closed) = (Vec::new(), None, None);
        for Due { worker, retry, begun: at } in &self.due {
            let has_begun = *at != Begun::Nothing;
            let room = room.entry(set_of(worker)).or_default();
            let waits = !has_begun && (!is_healthy(worker.machine) || *room == 0 || begun >= canaries.most());
            if waits || worker.host_name().is_some_and(|host| round.works_on(host)) {
                continue;
            }
            let title = self.message(&worker.title());
            if let Some(waits) = gate(self.state, *at, Area::Upgrade, &title) {
                closed = closed.or(Some(waits));
                continue;
            }
            if !has_begun {
                *room -= 1;
                begun += 1;
            }
            let progressing = |what: &str| self.progressing(&format!("{}: {what}", worker.title()));
            match drained(self.upgrade, worker, &progressing) {
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
        let waits = closed.unwrap_or_else(|| self.waits(&canaries));
        let report = self.report_of_run().or(says).or(waits.report);
        Some(Proposal { actions, report, requeue: waits.requeue, ..Proposal::default() })
    }

    /// How many more of each set may be taken out of service.
    fn room(&self) -> BTreeMap<String, usize> {
        room::room(self.state, |worker| {
            self.under_way.iter().any(|(busy, _)| busy.uid() == worker.uid())
                || self.settling.iter().any(|settling| settling.uid() == worker.uid())
        })
    }

    fn progressing(&self, what: &str) -> Proposal {
        Proposal::report(Area::Upgrade, Reason::Upgrading, self.message(what), Severity::Progressing)
    }

    fn message(&self, what: &str) -> String {
        let all = self.state.of_role(Role::Worker).filter(ClusterMachine::is_provisioned).count();
        let done = all - self.upgrade.workers().count();
        format!("{}: {done} of {all} workers have it; {what}", self.upgrade.title())
    }

    fn report_of_run(&self) -> Option<Report> {
        let (worker, run) = self.under_way.first()?;
        self.progressing(&describe_as(self.state, &worker.title(), run)).report
    }

    /// Nothing can begin now.
    fn waits(&self, canaries: &Canaries<'_>) -> Proposal {
        if let Some((waits, until)) = canaries.waits() {
            let proposal = self.progressing(&waits);
            return until.into_iter().fold(proposal, |proposal, until| proposal.at(self.state, until));
        }
        let sick = || self.state.of_role(Role::Worker).find(|worker| !is_healthy(worker.machine));
        let drained = || self.state.of_role(Role::Worker).find(|worker| !worker.machine.spec.drain_for.is_empty());
        let well = |worker: ClusterMachine<'_>| format!("waits for {} to be well ({})", worker.title(), worker.says());
        let takes_pods =
            |worker: ClusterMachine<'_>| format!("waits for {} to take Pods again ({})", worker.title(), worker.says());
        let settling = self.settling.first().copied().map(well);
        let waits = settling.or_else(|| surge::waits(self.state));
        let waits = waits.or_else(|| sick().map(well)).or_else(|| drained().map(takes_pods));
        let waits = waits.unwrap_or_else(|| "waits until machines may be taken out of service".to_owned());
        self.progressing(&waits)
    }
}
