//! Host: shows whose they are, and has spare ones probed.

mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::playbook_run::RunPhase;
use crds::{Host, Machine, PlaybookRun};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use plan::claims;
use plan::host::{Action, HostObserved, MOST_HOSTS, ProbeSchedule, due_soon, host, is_probe, looks_at_pool, under_way};
use plan::inputs::{FirstKey, InputsProblem, host_inputs};
use serde_json::json;
use tokio::task::JoinSet;

use crate::cache::IndexKey;
use crate::context::Context;
use crate::controller;
use crate::error::Error;
use crate::playbook_run::inputs::credentials;
use crate::reconcile::{PlanOf, Reconcile, now};
use crate::{execute, live};

/// Hosts that are woken by the end of a probe so that they make the next one: some may have no way to be probed.
const WOKEN: usize = 10;

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let (hosts, others, claimed) = (ctx.clone(), ctx.clone(), ctx.clone());
    let controller = controller::new(ctx, &ctx.cache.hosts)
        .watches_shared_stream(ctx.cache.runs.changes(), move |run| concerned(&hosts, &run))
        .watches_shared_stream(ctx.cache.hosts.changes(), move |host| doubles(&others, &host))
        .watches_shared_stream(ctx.cache.machines.changes(), move |machine| left_behind(&claimed, &machine));
    tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));
}

/// The Hosts that a change of a run is news for. The end of a probe is for those that are due next, too: any of them
/// makes the next one.
fn concerned(ctx: &Context, run: &PlaybookRun) -> Vec<ObjectRef<Host>> {
    let phase = run.status.as_ref().and_then(|status| status.phase);
    let ended = phase.is_some_and(RunPhase::is_final);
    let probes = is_probe(run);
    if phase == Some(RunPhase::Running) || !(probes || ended) {
        return Vec::new();
    }
    let namespace = run.namespace().unwrap_or_default();
    let worked_on: Vec<_> = run.spec.hosts.iter().filter_map(|host| ctx.cache.hosts.get(&namespace, host)).collect();
    let mut concerned = controller::references(&worked_on);
    if probes && ended {
        let (schedule, probed) = (schedule(ctx), &run.spec.hosts);
        let may_be_due = |host: &Host| host.spec.claim_ref.is_none() || schedule.resumed_at.is_some();
        let is_other = |host: &Host| may_be_due(host) && !probed.contains(&host.name_any());
        let others = ctx.cache.hosts.list(&namespace, is_other);
        let probes = ctx.cache.runs.with(&namespace, &IndexKey::Probe);
        let due = due_soon(&others, &probes, now(), schedule);
        concerned.extend(due.into_iter().take(WOKEN).map(ObjectRef::from_obj));
    }
    concerned
}

/// When Hosts are probed.
fn schedule(ctx: &Context) -> ProbeSchedule {
    ProbeSchedule { interval_seconds: ctx.settings.probe_interval_seconds, resumed_at: ctx.resumed_at() }
}

/// The Hosts for which it is news how another one is: those that are the same machine, or were taken for it.
fn doubles(ctx: &Context, changed: &Host) -> Vec<ObjectRef<Host>> {
    let namespace = changed.namespace().unwrap_or_default();
    let mut others = ctx.cache.hosts.one_machine(changed);
    others.extend(ctx.cache.hosts.with(&namespace, &IndexKey::Double));
    others.retain(|host| host.name_any() != changed.name_any());
    controller::references(&others)
}

/// The Hosts that a Machine held when it vanished.
fn left_behind(ctx: &Context, machine: &Machine) -> Vec<ObjectRef<Host>> {
    let namespace = machine.namespace().unwrap_or_default();
    let there = ctx.cache.machines.get(&namespace, &machine.name_any());
    if there.is_some_and(|there| there.uid() == machine.uid()) {
        return Vec::new();
    }
    let uid = machine.uid().unwrap_or_default();
    controller::references(&ctx.cache.hosts.with(&namespace, &IndexKey::Holder(uid)))
}

/// What is known of a Host.
pub(crate) struct Observation {
    now: Timestamp,
    host: Arc<Host>,
    schedule: ProbeSchedule,
    hosts: Vec<Arc<Host>>,
    probes: Vec<Arc<PlaybookRun>>,
    runs: Vec<Arc<PlaybookRun>>,
    problems: BTreeMap<String, InputsProblem>,
    /// Whether the Machine that has claimed the Host is gone: as the cache shows it at first.
    holder_is_gone: bool,
}

impl Observation {
    async fn around(ctx: &Context, host: Arc<Host>, holder_is_gone: bool) -> Result<Self, Error> {
        let (namespace, name, now) = (host.namespace().unwrap_or_default(), host.name_any(), now());
        let (cache, schedule) = (&ctx.cache, schedule(ctx));
        let probes = cache.runs.with(&namespace, &IndexKey::Probe);
        let hosts = match looks_at_pool(&host, &probes, now, schedule) {
            true => cache.hosts.list(&namespace, |_| true),
            false => cache.hosts.one_machine(&host),
        };
        let runs = match host.spec.claim_ref {
            Some(_) => cache.runs.with(&namespace, &IndexKey::Host(name)),
            None => Vec::new(),
        };
        let due = due_soon(&hosts, &probes, now, schedule);
        let problems = match due.iter().any(|due| due.uid() == host.uid()) {
            // Nobody makes another one now: only why this Host could not be in it is shown.
            true if under_way(&probes).is_some() => problems(ctx, &namespace, &hosts, &[&host]).await?,
            true => problems(ctx, &namespace, &hosts, &due).await?,
            false => BTreeMap::new(),
        };
        Ok(Self { now, schedule, probes, runs, problems, holder_is_gone, hosts, host })
    }
}

impl Reconcile for Observation {
    type Object = Host;
    type Action = Action;

    async fn observe(ctx: &Context, host: Arc<Host>) -> Result<Option<Self>, Error> {
        let holder_is_gone = host.spec.claim_ref.as_ref().is_some_and(|claim| {
            let namespace = host.namespace().unwrap_or_default();
            let holder = ctx.cache.machines.get(&namespace, &claim.name);
            holder.is_none_or(|holder| !claims::holds(&holder, &host))
        });
        Self::around(ctx, host, holder_is_gone).await.map(Some)
    }

    fn object(&self) -> &Host {
        &self.host
    }

    fn plan(&self) -> PlanOf<Self> {
        host(&HostObserved {
            host: &self.host,
            now: self.now,
            schedule: self.schedule,
            hosts: &self.hosts,
            probes: &self.probes,
            runs: &self.runs,
            problems: &self.problems,
            holder_is_gone: self.holder_is_gone,
        })
    }

    /// That a Machine is gone is never concluded from a cache.
    fn must_refresh(&self, _: &PlanOf<Self>) -> bool {
        self.holder_is_gone
    }

    async fn refresh(self, ctx: &Context, _: &PlanOf<Self>) -> Result<Option<Self>, Error> {
        let namespace = self.host.namespace().unwrap_or_default();
        let live = live::get::<Host>(ctx, &namespace, &self.host.name_any()).await?;
        let Some(host) = live.filter(|live| live.uid() == self.host.uid()) else {
            return Ok(None);
        };
        let holder_is_gone = match &host.spec.claim_ref {
            Some(claim) => {
                let holder = live::get::<Machine>(ctx, &namespace, &claim.name).await?;
                holder.is_none_or(|holder| !claims::holds(&holder, &host))
            }
            None => false,
        };
        Self::around(ctx, Arc::new(host), holder_is_gone).await.map(Some)
    }

    async fn execute(&mut self, ctx: &Context, action: &Action) -> Result<(), Error> {
        match action {
            Action::Probe(run) => execute::create_once(ctx, &**run).await.map(drop),
            Action::Forget(run) => execute::delete(ctx, &**run, None).await,
            Action::EndQuarantine(host) => {
                let patch = json!({ "spec": { "quarantine": null, "identity": null } });
                execute::patch_if_unchanged(ctx, &**host, patch).await.map(drop)
            }
            Action::RaiseEpoch { host, epoch } => {
                let patch = json!({ "spec": { "claimEpoch": epoch } });
                execute::patch_if_unchanged(ctx, &**host, patch).await.map(drop)
            }
            Action::SetIdentity { host, identity } => {
                let patch = json!({ "spec": { "identity": identity } });
                execute::patch_if_unchanged(ctx, &**host, patch).await.map(drop)
            }
            Action::ReleaseClaim { host, finalizers, quarantine } => {
                let patch = json!({
                    "metadata": { "finalizers": finalizers },
                    "spec": { "claimRef": null, "identity": null, "quarantine": quarantine },
                });
                execute::patch_if_unchanged(ctx, &**host, patch).await.map(drop)
            }
        }
    }

    async fn report(&self, ctx: &Context, plan: &PlanOf<Self>) {
        report::changes(ctx, &self.host, &plan.status).await;
    }
}

/// Hosts that a probe cannot even try, as far as the next probe is full without them.
async fn problems(
    ctx: &Context,
    namespace: &str,
    hosts: &[Arc<Host>],
    due: &[&Host],
) -> Result<BTreeMap<String, InputsProblem>, Error> {
    let bastions: BTreeSet<&str> =
        hosts.iter().filter_map(|host| Some(host.spec.ssh.bastion_ref.as_ref()?.name.as_str())).collect();
    let bastions = hosts.iter().filter(|host| bastions.contains(host.name_any().as_str()));
    let bastions: BTreeMap<String, Host> = bastions.map(|host| (host.name_any(), (**host).clone())).collect();
    let credentials = credentials(ctx, namespace, due.iter().copied().chain(bastions.values())).await?;
    let (mut problems, mut well) = (BTreeMap::new(), 0);
    for host in due {
        match host_inputs(host, &bastions, &credentials, FirstKey::Believed) {
            Ok(_) => well += 1,
            Err(problem) => drop(problems.insert(host.name_any(), problem)),
        }
        if well == MOST_HOSTS {
            break;
        }
    }
    Ok(problems)
}

#[cfg(test)]
mod tests;
