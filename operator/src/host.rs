//! The controller of Hosts: shows whose they are, and has spare ones probed.

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::Reason;
use crds::names::condition;
use crds::playbook_run::RunPhase;
use crds::{Host, HostStatus, Machine, PlaybookRun, conditions};
use jiff::Timestamp;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, ResourceExt};
use plan::claims::{self, is_one_machine};
use plan::host::{HostObserved, Step, due_soon, have_one_machine_id, host, is_probe};
use plan::inputs::{FirstKey, InputsProblem, host_inputs};
use serde_json::json;
use tokio::task::JoinSet;

use crate::context::Context;
use crate::controller::{self, Pass};
use crate::error::{Doing, Error};
use crate::execute;
use crate::playbook_run::inputs::credentials;

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let (hosts, others, claimed) = (ctx.clone(), ctx.clone(), ctx.clone());
    let controller = controller::of(ctx, &ctx.cache.hosts)
        .watches_shared_stream(ctx.cache.runs.changes(), move |run| {
            concerned(&run, hosts.cache.hosts.store())
        })
        .watches_shared_stream(ctx.cache.hosts.changes(), move |host| doubles(&others, &host))
        .watches_shared_stream(ctx.cache.machines.changes(), move |machine| {
            left_behind(&claimed, &machine)
        });
    tasks.spawn(controller::run(ctx.clone(), controller, pass));
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
    let hosts = hosts.state_filter(|host| host.namespace() == run.namespace() && is_concerned(host));
    hosts.iter().map(|host| ObjectRef::from_obj(&**host)).collect()
}

/// The Hosts for which it is news how another one is: those that are the same machine, or were taken for it.
fn doubles(ctx: &Context, changed: &Host) -> Vec<ObjectRef<Host>> {
    let namespace = changed.namespace().unwrap_or_default();
    let was_double = |host: &Host| {
        let conditions = host.status.as_ref().map(|status| status.conditions.as_slice());
        let ready = conditions::find(conditions.unwrap_or_default(), condition::READY);
        ready.is_some_and(|ready| Reason::among(&ready.reason, &[Reason::SameAddress, Reason::SameHostKey]))
    };
    let concerned = |host: &Host| {
        let same = was_double(host) || is_one_machine(host, changed) || have_one_machine_id(host, changed);
        host.name_any() != changed.name_any() && same
    };
    let hosts = ctx.cache.hosts.list(&namespace, concerned);
    hosts.iter().map(|host| ObjectRef::from_obj(&**host)).collect()
}

/// The Hosts that a Machine held when it vanished.
fn left_behind(ctx: &Context, machine: &Machine) -> Vec<ObjectRef<Host>> {
    let namespace = machine.namespace().unwrap_or_default();
    let there = ctx.cache.machines.get(&namespace, &machine.name_any());
    if there.is_some_and(|there| there.uid() == machine.uid()) {
        return Vec::new();
    }
    let hosts = ctx
        .cache
        .hosts
        .list(&namespace, |host| claims::holds(machine, host));
    hosts.iter().map(|host| ObjectRef::from_obj(&**host)).collect()
}

/// Whether the Machine that has claimed the Host is gone. Caches are not believed: the Host is read anew, too.
async fn holder_is_gone(ctx: &Context, namespace: &str, host: &mut Arc<Host>) -> Result<bool, Error> {
    let is = |machine: &Machine, host: &Host| claims::holds(machine, host);
    let Some(claim) = &host.spec.claim_ref else {
        return Ok(false);
    };
    let cached = ctx.cache.machines.get(namespace, &claim.name);
    if cached.is_some_and(|machine| is(&machine, host)) {
        return Ok(false);
    }
    let hosts: Api<Host> = Api::namespaced(ctx.client.clone(), namespace);
    let name = host.name_any();
    let live = hosts.get_opt(&name).await.doing(|| format!("read Host {name}"))?;
    let Some(live) = live.filter(|live| live.uid() == host.uid()) else {
        return Ok(false);
    };
    *host = Arc::new(live);
    let Some(claim) = &host.spec.claim_ref else {
        return Ok(false);
    };
    let machines: Api<Machine> = Api::namespaced(ctx.client.clone(), namespace);
    let holder = machines
        .get_opt(&claim.name)
        .await
        .doing(|| format!("read Machine {}", claim.name))?;
    Ok(holder.is_none_or(|holder| !is(&holder, host)))
}

pub(crate) async fn pass(ctx: Arc<Context>, mut seen: Arc<Host>) -> Result<Pass, Error> {
    // Times in a status are whole seconds.
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or(Timestamp::UNIX_EPOCH);
    let namespace = seen.namespace().unwrap_or_default();
    let interval_seconds = ctx.settings.probe_interval_seconds;
    let holder_is_gone = holder_is_gone(&ctx, &namespace, &mut seen).await?;
    let hosts = ctx.cache.hosts.list(&namespace, |_| true);
    let probes = ctx.cache.runs.list(&namespace, is_probe);
    let name = seen.name_any();
    let runs = match seen.spec.claim_ref {
        Some(_) => ctx
            .cache
            .runs
            .list(&namespace, |run| run.spec.hosts.contains(&name)),
        None => Vec::new(),
    };
    let due = due_soon(&hosts, now, interval_seconds);
    let problems = match due.iter().any(|host| host.uid() == seen.uid()) {
        true => problems(&ctx, &namespace, &hosts, &due).await?,
        false => BTreeMap::new(),
    };
    let plan = host(&HostObserved {
        host: &seen,
        now,
        interval_seconds,
        hosts: &hosts,
        probes: &probes,
        runs: &runs,
        problems: &problems,
        holder_is_gone,
    });
    for step in &plan.steps {
        match step {
            Step::Probe(run) => drop(execute::create_once(&ctx, &**run).await?),
            Step::Forget(run) => execute::delete(&ctx, &**run, None).await?,
            Step::EndQuarantine(host) => {
                let patch = json!({ "spec": { "quarantine": null, "identity": null } });
                drop(execute::patch_if_unchanged(&ctx, &**host, patch).await?);
            }
            Step::SetIdentity { host, identity } => {
                let patch = json!({ "spec": { "identity": identity } });
                drop(execute::patch_if_unchanged(&ctx, &**host, patch).await?);
            }
            Step::ReleaseClaim {
                host,
                finalizers,
                quarantine,
            } => {
                let patch = json!({
                    "metadata": { "finalizers": finalizers },
                    "spec": { "claimRef": null, "identity": null, "quarantine": quarantine },
                });
                drop(execute::patch_if_unchanged(&ctx, &**host, patch).await?);
            }
        }
    }
    let written = execute::patch_status(&ctx, &*seen, seen.status.as_ref(), &plan.status).await?;
    if written {
        tell(&ctx, &seen, &plan.status).await;
    }
    Ok(Pass::of(&plan, written))
}

/// Hosts that a probe cannot even try.
async fn problems(
    ctx: &Context,
    namespace: &str,
    hosts: &[Arc<Host>],
    due: &[&Host],
) -> Result<BTreeMap<String, InputsProblem>, Error> {
    let by_name: BTreeMap<String, Host> = hosts
        .iter()
        .map(|host| (host.name_any(), (**host).clone()))
        .collect();
    let bastions = hosts.iter().filter_map(|host| host.spec.ssh.bastion_ref.as_ref());
    let bastions = bastions.filter_map(|bastion| by_name.get(&bastion.name));
    let credentials = credentials(ctx, namespace, due.iter().copied().chain(bastions)).await?;
    let problem = |host: &&Host| {
        let problem = host_inputs(host, &by_name, &credentials, FirstKey::Believed).err()?;
        Some((host.name_any(), problem))
    };
    Ok(due.iter().filter_map(problem).collect())
}

/// Tells that a Host has become, or is no longer, ready; and that it shares its machine-id.
async fn tell(ctx: &Context, host: &Host, status: &HostStatus) {
    let clones = |status: Option<&HostStatus>| {
        let conditions = status
            .map(|status| status.conditions.as_slice())
            .unwrap_or_default();
        let found = conditions::find(conditions, condition::MACHINE_ID_UNIQUE);
        found.map(|found| (found.reason.clone(), found.message.clone()))
    };
    let told = clones(host.status.as_ref());
    if let Some((reason, message)) = clones(Some(status)).filter(|now| told.as_ref() != Some(now)) {
        ctx.events.warning(host, &reason, &message).await;
    }
    let ready = |status: Option<&HostStatus>| {
        let condition = status.and_then(|status| conditions::find(&status.conditions, condition::READY));
        condition.map(|condition| (condition.status.clone(), condition.reason.clone()))
    };
    let (before, after) = (ready(host.status.as_ref()), ready(Some(status)));
    let Some((state, reason)) = after.filter(|after| before.as_ref() != Some(after)) else {
        return;
    };
    let message = status.message.as_deref().unwrap_or_default();
    match state.as_str() {
        "True" => ctx.events.normal(host, &reason, message).await,
        _ if reason == Reason::WaitingForProbe => {}
        _ => ctx.events.warning(host, &reason, message).await,
    }
}

#[cfg(test)]
mod tests;
