//! The end of an install: what must hold, and what was seen on the way, brought before the judge.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Result;
use crds::Host;
use crds::host::HostPhase;
use crds::playbook_run::{PlaybookRunStatus, RunPhase};
use jiff::Timestamp;
use kube::api::ListParams;

use super::struck::Struck;
use super::{CLUSTER, Installation};
use crate::eventually::{Look, eventually};
use crate::faults::fault::{Ending, Fault, Place};
use crate::faults::fault_effect::FaultEffect;
use crate::faults::observers::{GuardLog, View};
use crate::faults::verdict::{self, Hit, Install, Verdict};
use crate::scenario::Scenario;
use crate::{pod_network, workload};

const READY: Duration = Duration::from_secs(300);
const POOL: Duration = Duration::from_secs(120);
const POD_NETWORK: Duration = Duration::from_secs(120);
/// How old a status may be: an executor writes one a second.
const LAG: Duration = Duration::from_millis(1500);
/// Hosts are quiet this long after a cancel.
const QUIET: Duration = Duration::from_secs(120);

impl Installation<'_> {
    /// Waits for the end that is promised, and judges each hit.
    pub(super) async fn judge(&mut self) -> BTreeMap<Place, Verdict> {
        let gone = self.struck.iter().any(|struck| struck.fault.ending() == Ending::Gone);
        let end = if gone { self.pool_is_whole().await.err() } else { self.is_ready().await.err() };
        let view = self.observer.view();
        let (commands, guards) = match self.ask_guards().await {
            Ok(said) => said,
            Err(error) => (0, vec![format!("a guard's log cannot be read: {error:#}")]),
        };
        let install = Install {
            guards,
            commands,
            inits: self.inits.seen(),
            uids: view.uids.clone(),
            end: self.broke_off.take().or(end.map(|error| format!("{error:#}"))),
        };
        // A run that went on after a hit was not interrupted by it, but by the next.
        let last = |struck: &Struck| {
            let later = self.struck.iter().rfind(|other| other.aim.run == struck.aim.run);
            later.is_none_or(|later| later.at == struck.at)
        };
        let judged = self.struck.iter().map(|struck| {
            let next = self.struck.iter().map(|other| other.at).find(|at| *at > struck.at);
            let until = next.unwrap_or(Timestamp::MAX);
            let mut hit = hit(struck, &view, &self.guard_log, until);
            hit.interrupted &= last(struck);
            (struck.place, verdict::judge(&hit, &install))
        });
        judged.collect()
    }

    async fn is_ready(&self) -> Result<()> {
        self.scenario.ready(CLUSTER, READY).await?;
        let client = self.scenario.cluster_client(CLUSTER).await?;
        workload::nodes_ready(&client, self.machines.len(), Duration::from_secs(60)).await?;
        pod_network::connected(&client, None, POD_NETWORK).await
    }

    async fn pool_is_whole(&self) -> Result<()> {
        hosts_available(self.scenario, self.machines.len()).await
    }

    /// What the guards' logs, fetched as an administrator would, show that must never be; and how many commands they
    /// know.
    async fn ask_guards(&self) -> Result<(usize, Vec<String>)> {
        let (mut commands, mut broken) = (0, Vec::new());
        for machine in &self.machines {
            let file = |name: &str| format!("cat {}/{name} 2>/dev/null || true", guard::DIRECTORY);
            let older = self.scenario.ssh(machine, &file("log.1")).await?;
            let log = self.scenario.ssh(machine, &file("log")).await?;
            let report = guard::log_audit::read(&older, &log);
            commands += report.commands;
            let said = report.violations.iter().map(|violation| format!("{}: {violation}", machine.name()));
            broken.extend(said);
        }
        Ok((commands, broken))
    }
}

/// Waits until that many Hosts are clean, claimed by nobody, and can be taken.
pub(super) async fn hosts_available(scenario: &Scenario, count: usize) -> Result<()> {
    let api = scenario.api::<Host>();
    eventually(&format!("{count} Hosts Available"), POOL, async || {
        let hosts = api.list(&ListParams::default()).await?.items;
        let available = hosts.iter().filter(|host| {
            let phase = host.status.as_ref().and_then(|status| status.phase);
            phase == Some(HostPhase::Available) && host.spec.claim_ref.is_none()
        });
        Ok(match available.count() {
            all if all == count => Look::Done(()),
            some => Look::Waiting(format!("{some} are")),
        })
    })
    .await
}

/// The hit with what was seen until the next one: a Pod that is asked to end, or a machine that goes down gently, lets
/// the run come further before it is over.
fn hit(struck: &Struck, view: &View, guard_log: &GuardLog, until: Timestamp) -> Hit {
    let mut steps = guard_log.steps_within(&struck.aim.run, struck.at - LAG, until);
    steps.insert(struck.place.step);
    if let Some(FaultEffect::Grazed(place)) = &struck.effect {
        steps.insert(place.step);
    }
    let status = view.run(&struck.aim.run).cloned().unwrap_or_default();
    let within = view.said.iter().filter(|said| said.at >= struck.at && said.at <= until);
    Hit {
        fault: struck.fault,
        place: struck.place,
        host: struck.aim.machine.name().to_owned(),
        steps,
        effect: struck.effect.clone().unwrap_or(FaultEffect::Held),
        interrupted: status.phase.is_some_and(|phase| phase.is_final() && phase != RunPhase::Succeeded),
        reasons: reasons(&status),
        said: within.map(|said| said.text.clone()).collect(),
        recovered: struck.recovered,
        broken: broken(struck, view, &status),
    }
}

/// The reasons that a run, its outcome and its hosts give.
fn reasons(status: &PlaybookRunStatus) -> BTreeSet<String> {
    let conditions = status.conditions.iter().map(|condition| condition.reason.clone());
    let outcome = status.outcome.iter().map(|outcome| outcome.reason.clone());
    let hosts = status.hosts.iter().filter_map(|host| host.failure.as_ref());
    conditions.chain(outcome).chain(hosts.map(|failure| failure.reason.clone())).collect()
}

/// What a fault promises beside what all do.
fn broken(struck: &Struck, view: &View, status: &PlaybookRunStatus) -> Vec<String> {
    let mut broken = Vec::new();
    let mut promise = |kept: bool, what: &str| {
        if !kept {
            broken.push(format!("{what}; its run says: {:?} {:?}", status.phase, status.message));
        }
    };
    if struck.fault == Fault::SpecEdited {
        promise(view.generation_waited, "the edited spec did not wait in pendingGeneration");
    }
    if matches!(struck.fault, Fault::RunCanceled | Fault::ClusterDeleted) {
        let canceled = status.phase == Some(RunPhase::Canceled);
        promise(canceled, "the run was not canceled");
        let ended = status.finished_at.as_ref().map(|time| time.0.duration_since(struck.at));
        promise(
            ended.is_some_and(|after| after.unsigned_abs() <= QUIET),
            "it took more than two minutes until the run had ended",
        );
        let quiet = !status.hosts.is_empty() && status.hosts.iter().all(|host| host.quiet == Some(true));
        promise(quiet, "not every host was confirmed quiet");
    }
    broken
}
