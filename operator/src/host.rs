//! Host: shows whose they are, and has spare ones probed.

mod report;

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::Reason;
use crds::names::condition;
use crds::playbook_run::RunPhase;
use crds::{Conditions, Host, Machine, PlaybookRun};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::{ObjectRef, Store};
use plan::claims::{self, is_one_machine};
use plan::host::{Action, HostObserved, due_soon, have_one_machine_id, host, is_probe};
use plan::inputs::{FirstKey, InputsProblem, host_inputs};
use serde_json::json;
use tokio::task::JoinSet;

use crate::context::Context;
use crate::controller;
use crate::error::Error;
use crate::playbook_run::inputs::credentials;
use crate::reconcile::{PlanOf, Reconcile, now};
use crate::{execute, live};

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let (hosts, others, claimed) = (ctx.clone(), ctx.clone(), ctx.clone());
    let controller = controller::new(ctx, &ctx.cache.hosts)
        .watches_shared_stream(ctx.cache.runs.changes(), move |run| concerned(&run, hosts.cache.hosts.store()))
        .watches_shared_stream(ctx.cache.hosts.changes(), move |host| doubles(&others, &host))
        .watches_shared_stream(ctx.cache.machines.changes(), move |machine| left_behind(&claimed, &machine));
    tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));
}

/// The Hosts that a change of a run is news for. The end of a probe is for all spare ones: the next one may begin.
fn concerned(run: &PlaybookRun, hosts: &Store<Host>) -> Vec<ObjectRef<Host>> {
    let phase = run.status.as_ref().and_then(|status| status.phase);
    let ended = phase.is_some_and(RunPhase::is_final);
    let is_probe = is_probe(run);
    if phase == Some(RunPhase::Running) || !(is_probe || ended) {
        return Vec::new();
    }
    let is_concerned = |host: &Host| {
        let spare = is_probe && ended && host.spec.claim_ref.is_none();
        spare || run.spec.hosts.contains(&host.name_any())
    };
    controller::references(&hosts.state_filter(|host| host.namespace() == run.namespace() && is_concerned(host)))
}

/// The Hosts for which it is news how another one is: those that are the same machine, or were taken for it.
fn doubles(ctx: &Context, changed: &Host) -> Vec<ObjectRef<Host>> {
    let namespace = changed.namespace().unwrap_or_default();
    let was_double = |host: &Host| {
        let ready = host.condition(condition::READY);
        ready.is_some_and(|ready| Reason::among(&ready.reason, &[Reason::SameAddress, Reason::SameHostKey]))
    };
    let concerned = |host: &Host| {
        let same = was_double(host) || is_one_machine(host, changed) || have_one_machine_id(host, changed);
        host.name_any() != changed.name_any() && same
    };
    controller::references(&ctx.cache.hosts.list(&namespace, concerned))
}

/// The Hosts that a Machine held when it vanished.
fn left_behind(ctx: &Context, machine: &Machine) -> Vec<ObjectRef<Host>> {
    let namespace = machine.namespace().unwrap_or_default();
    let there = ctx.cache.machines.get(&namespace, &machine.name_any());
    if there.is_some_and(|there| there.uid() == machine.uid()) {
        return Vec::new();
    }
    let holds = |host: &Host| claims::holds(machine, host);
    controller::references(&ctx.cache.hosts.list(&namespace, holds))
}

/// What is known of a Host.
pub(crate) struct Observation {
    now: Timestamp,
    host: Arc<Host>,
    interval_seconds: u64,
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
        let (cache, interval_seconds) = (&ctx.cache, ctx.settings.probe_interval_seconds);
        let hosts = cache.hosts.list(&namespace, |_| true);
        let runs = match host.spec.claim_ref {
            Some(_) => cache.runs.list(&namespace, |run| run.spec.hosts.contains(&name)),
            None => Vec::new(),
        };
        let due = due_soon(&hosts, now, interval_seconds);
        let problems = match due.iter().any(|due| due.uid() == host.uid()) {
            true => problems(ctx, &namespace, &hosts, &due).await?,
            false => BTreeMap::new(),
        };
        Ok(Self {
            now,
            interval_seconds,
            probes: cache.runs.list(&namespace, is_probe),
            runs,
            problems,
            holder_is_gone,
            hosts,
            host,
        })
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
            interval_seconds: self.interval_seconds,
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

/// Hosts that a probe cannot even try.
async fn problems(
    ctx: &Context,
    namespace: &str,
    hosts: &[Arc<Host>],
    due: &[&Host],
) -> Result<BTreeMap<String, InputsProblem>, Error> {
    let by_name: BTreeMap<String, Host> = hosts.iter().map(|host| (host.name_any(), (**host).clone())).collect();
    let bastions = hosts.iter().filter_map(|host| host.spec.ssh.bastion_ref.as_ref());
    let bastions = bastions.filter_map(|bastion| by_name.get(&bastion.name));
    let credentials = credentials(ctx, namespace, due.iter().copied().chain(bastions)).await?;
    let problem = |host: &&Host| {
        let problem = host_inputs(host, &by_name, &credentials, FirstKey::Believed).err()?;
        Some((host.name_any(), problem))
    };
    Ok(due.iter().filter_map(problem).collect())
}

#[cfg(test)]
mod tests;
