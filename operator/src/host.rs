//! The controller of Hosts: shows whose they are, and has spare ones probed.

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::names::condition;
use crds::playbook_run::RunPhase;
use crds::{Host, HostStatus, PlaybookRun, conditions};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::{ObjectRef, Store};
use plan::host::{HostObserved, Step, due_soon, host, is_probe};
use plan::inputs::{FirstKey, InputsProblem, host_inputs};
use tokio::task::JoinSet;

use crate::context::Context;
use crate::controller::{self, Pass};
use crate::error::Error;
use crate::execute;
use crate::playbook_run::inputs::credentials;

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let hosts = ctx.cache.hosts.store().clone();
    let controller = controller::of(ctx, &ctx.cache.hosts)
        .watches_shared_stream(ctx.cache.runs.changes(), move |run| concerned(&run, &hosts));
    tasks.spawn(controller::run(ctx.clone(), controller, pass));
}

/// The Hosts that a change of a probe is news for. Its end is for all spare ones: the next one may begin.
fn concerned(run: &PlaybookRun, hosts: &Store<Host>) -> Vec<ObjectRef<Host>> {
    let phase = run.status.as_ref().and_then(|status| status.phase);
    if !is_probe(run) || phase == Some(RunPhase::Running) {
        return Vec::new();
    }
    let ended = phase.is_some_and(RunPhase::is_final);
    let is_concerned = |host: &Host| match ended {
        true => host.spec.claim_ref.is_none(),
        false => run.spec.hosts.contains(&host.name_any()),
    };
    let hosts = hosts.state_filter(|host| host.namespace() == run.namespace() && is_concerned(host));
    hosts.iter().map(|host| ObjectRef::from_obj(&**host)).collect()
}

async fn pass(ctx: Arc<Context>, seen: Arc<Host>) -> Result<Pass, Error> {
    // Times in a status are whole seconds.
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or(Timestamp::UNIX_EPOCH);
    let namespace = seen.namespace().unwrap_or_default();
    let interval_seconds = ctx.settings.probe_interval_seconds;
    let hosts = ctx.cache.hosts.list(&namespace, |_| true);
    let probes = ctx.cache.runs.list(&namespace, is_probe);
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
        problems: &problems,
    });
    for step in &plan.steps {
        match step {
            Step::Probe(run) => drop(execute::create_once(&ctx, &**run).await?),
            Step::Forget(run) => execute::delete(&ctx, &**run, None).await?,
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

/// Tells that a Host has become, or is no longer, ready.
async fn tell(ctx: &Context, host: &Host, status: &HostStatus) {
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
        _ if reason == "WaitsForProbe" => {}
        _ => ctx.events.warning(host, &reason, message).await,
    }
}
