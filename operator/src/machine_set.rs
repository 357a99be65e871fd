//! MachineSet: observes a set and its Machines, makes and deletes Machines as planned.

use std::collections::BTreeSet;
use std::sync::Arc;

use crds::Reason;
use crds::names::{annotation, condition, label};
use crds::{ClusterDeployment, Host, Machine, MachineSet, MachineSetStatus, PlaybookRun};
use kube::api::ListParams;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt};
use plan::machine_set::{Observed, Step};
use plan::news::news;
use serde_json::json;
use tokio::task::JoinSet;

use crate::cluster_deployment::{now, refs};
use crate::context::Context;
use crate::controller::{self, Pass};
use crate::error::{Doing, Error};
use crate::execute::{self, Creation};
use crate::live;

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let cache = &ctx.cache;
    let of_machine = |machine: Arc<Machine>| {
        let labelled = machine.labels().get(label::MACHINE_SET).cloned();
        let owners = machine.owner_references().iter();
        let owned = owners.filter(|owner| owner.controller == Some(true) && owner.kind == "MachineSet");
        // Whoever takes the label off does not take the Machine from its set.
        let names: BTreeSet<String> = labelled
            .into_iter()
            .chain(owned.map(|owner| owner.name.clone()))
            .collect();
        let namespace = machine.namespace().unwrap_or_default();
        let sets = names
            .into_iter()
            .map(|name| ObjectRef::<MachineSet>::new(&name).within(&namespace));
        sets.collect::<Vec<_>>()
    };
    let (of_host, of_deployment) = (ctx.clone(), ctx.clone());
    let controller = controller::of(ctx, &cache.machine_sets)
        .watches_shared_stream(cache.machines.changes(), of_machine)
        .watches_shared_stream(cache.hosts.changes(), move |host: Arc<Host>| {
            let lacks_hosts = |set: &MachineSet| {
                let conditions = set.status.as_ref().map(|status| status.conditions.as_slice());
                let hosts =
                    crds::conditions::find(conditions.unwrap_or_default(), condition::HOSTS_AVAILABLE);
                hosts.is_some_and(|hosts| hosts.status == "False")
            };
            references(&of_host, &host.namespace().unwrap_or_default(), lacks_hosts)
        })
        .watches_shared_stream(
            cache.cluster_deployments.changes(),
            move |deployment: Arc<ClusterDeployment>| {
                let name = deployment.name_any();
                let namespace = deployment.namespace().unwrap_or_default();
                references(&of_deployment, &namespace, |set| set.spec.cluster_name == name)
            },
        );
    tasks.spawn(controller::run(ctx.clone(), controller, pass));
}

fn references(
    ctx: &Context,
    namespace: &str,
    wanted: impl Fn(&MachineSet) -> bool,
) -> Vec<ObjectRef<MachineSet>> {
    let sets = ctx.cache.machine_sets.list(namespace, wanted);
    sets.iter().map(|set| ObjectRef::from_obj(set.as_ref())).collect()
}

pub(crate) async fn pass(ctx: Arc<Context>, set: Arc<MachineSet>) -> Result<Pass, Error> {
    let (namespace, name) = (set.namespace().unwrap_or_default(), set.name_any());
    let mut deployment = ctx
        .cache
        .cluster_deployments
        .get(&namespace, &set.spec.cluster_name);
    let hosts = ctx.cache.hosts.list(&namespace, |_| true);
    let cluster = set.spec.cluster_name.clone();
    let decide = |deployment: Option<&ClusterDeployment>,
                  set: &MachineSet,
                  machines: &[Arc<Machine>],
                  runs: &[Arc<PlaybookRun>]| {
        plan::machine_set::plan(&Observed {
            now: now(),
            set,
            deployment,
            machines: &refs(machines),
            hosts: &refs(&hosts),
            runs: &refs(runs),
        })
    };
    let of_cluster = |run: &PlaybookRun| run.spec.cluster_name.as_deref() == Some(cluster.as_str());
    let mut set = set.clone();
    let mut runs = ctx.cache.runs.list(&namespace, of_cluster);
    let machines = ctx
        .cache
        .machines
        .list(&namespace, |machine| machine.spec.cluster_name == cluster);
    let mut plan = decide(deployment.as_deref(), &set, &machines, &runs);
    if let Some(message) = ctx.cache.hold_of_cluster(&namespace, &cluster) {
        let status = MachineSetStatus {
            message: Some(message.clone()),
            ..set.status.clone().unwrap_or_default()
        };
        execute::patch_status(&ctx, &*set, set.status.as_ref(), &status).await?;
        return Ok(Pass::held(message));
    }
    if !plan.steps.is_empty() {
        // Neither the count nor the Machines are believed from a cache when something is made or deleted for them.
        let api: Api<MachineSet> = Api::namespaced(ctx.client.clone(), &namespace);
        let Some(live) = api
            .get_opt(&name)
            .await
            .doing(|| format!("read MachineSet {name}"))?
        else {
            return Ok(Pass::settled());
        };
        set = Arc::new(live);
        let of_cluster = ListParams::default().fields(&format!("spec.clusterName={cluster}"));
        let action = format!("list the Machines of cluster {cluster}");
        let listed: Vec<Machine> =
            live::list_for_cluster(&ctx, &namespace, &cluster, &of_cluster, &action).await?;
        let machines: Vec<Arc<Machine>> = listed.into_iter().map(Arc::new).collect();
        if plan
            .steps
            .iter()
            .any(|step| matches!(step, Step::QuarantineHost { .. }))
        {
            runs = live_runs(&ctx, &namespace, &cluster).await?;
        }
        if plan
            .steps
            .iter()
            .any(|step| matches!(step, Step::DeleteMachine(_)))
        {
            // Whether a healthy machine may go is told there.
            let api: Api<ClusterDeployment> = Api::namespaced(ctx.client.clone(), &namespace);
            let read = api.get_opt(&cluster).await;
            deployment = read
                .doing(|| format!("read ClusterDeployment {cluster}"))?
                .map(Arc::new);
        }
        plan = decide(deployment.as_deref(), &set, &machines, &runs);
    }
    for step in &plan.steps {
        execute(&ctx, &set, step).await?;
    }
    let written = execute::patch_status(&ctx, &*set, set.status.as_ref(), &plan.status).await?;
    if written {
        let old = set
            .status
            .as_ref()
            .map(|status| status.conditions.as_slice())
            .unwrap_or_default();
        let types = [condition::HOSTS_AVAILABLE];
        for news in news(old, &plan.status.conditions, &types) {
            if news.warning {
                ctx.events.news(&*set, &news).await;
            }
        }
    }
    Ok(Pass::of(&plan, written))
}

/// A join that has begun anew since is not given up.
async fn live_runs(ctx: &Context, namespace: &str, cluster: &str) -> Result<Vec<Arc<PlaybookRun>>, Error> {
    let (all, action) = (
        ListParams::default(),
        format!("list the PlaybookRuns of cluster {cluster}"),
    );
    let listed: Vec<PlaybookRun> = live::list_for_cluster(ctx, namespace, cluster, &all, &action).await?;
    let ours = |run: &PlaybookRun| run.spec.cluster_name.as_deref() == Some(cluster);
    Ok(listed.into_iter().filter(ours).map(Arc::new).collect())
}

async fn execute(ctx: &Context, set: &MachineSet, step: &Step) -> Result<(), Error> {
    match step {
        Step::Adopt(machine) => {
            let metadata = &machine.metadata;
            let patch = json!({ "metadata": {
                "labels": metadata.labels,
                "annotations": metadata.annotations,
                "finalizers": metadata.finalizers,
                "ownerReferences": metadata.owner_references,
            } });
            drop(execute::patch_if_unchanged(ctx, &**machine, patch).await?);
            Ok(())
        }
        Step::QuarantineHost {
            machine,
            host,
            quarantine,
        } => {
            let patch = json!({ "metadata": { "annotations": { annotation::QUARANTINE: quarantine } } });
            drop(execute::patch_if_unchanged(ctx, &**machine, patch).await?);
            let note = format!(
                "Host {host} of Machine {} is put aside, another one is taken: {quarantine}",
                machine.name_any()
            );
            ctx.events.warning(set, Reason::HostQuarantined, &note).await;
            Ok(())
        }
        Step::CreateMachine(machine) => match execute::create_once(ctx, &**machine).await? {
            Creation::Made | Creation::Ours => Ok(()),
            Creation::Foreign => Err(Error::Failed {
                action: format!("create Machine {}", machine.name_any()),
                source: "one of that name is there and belongs to another: delete it".into(),
            }),
        },
        Step::DeleteMachine(machine) => execute::delete(ctx, &**machine, None).await,
        Step::SetVersion { machine, version } => {
            let patch = json!({ "spec": { "kubernetesVersion": version } });
            execute::patch_if_unchanged(ctx, &**machine, patch)
                .await
                .map(drop)
        }
    }
}

#[cfg(test)]
mod tests;
