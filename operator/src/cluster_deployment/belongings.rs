//! What belongs to a cluster: from the cache, or from the API itself where a step could not be taken back.

use std::sync::Arc;

use crds::{ClusterDeployment, Host, Machine, MachineSet, PlaybookRun};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::context::Context;
use crate::error::{Doing, Error};
use crate::live;

/// All objects that the plan looks at.
pub(super) struct Belongings {
    pub sets: Vec<Arc<MachineSet>>,
    pub machines: Vec<Arc<Machine>>,
    pub hosts: Vec<Arc<Host>>,
    pub runs: Vec<Arc<PlaybookRun>>,
}

pub(super) fn cached(ctx: &Context, namespace: &str, name: &str) -> Belongings {
    let cache = &ctx.cache;
    Belongings {
        sets: cache.machine_sets.list(namespace, |_| true),
        machines: cache
            .machines
            .list(namespace, |machine| machine.spec.cluster_name == name),
        hosts: cache.hosts.list(namespace, |_| true),
        runs: cache
            .runs
            .list(namespace, |run| run.spec.cluster_name.as_deref() == Some(name)),
    }
}

/// Runs that hold the lock and that the cache does not show are read: only what is gone lets go of it unheard.
pub(super) async fn find_holders(
    ctx: &Context,
    deployment: &ClusterDeployment,
    belongings: &mut Belongings,
) -> Result<(), Error> {
    let api: Api<PlaybookRun> =
        Api::namespaced(ctx.client.clone(), &deployment.namespace().unwrap_or_default());
    let cluster = deployment.name_any();
    for held in deployment.status.iter().flat_map(|status| &status.operations) {
        if belongings.runs.iter().any(|run| run.name_any() == held.run) {
            continue;
        }
        let found = api.get_opt(&held.run).await;
        let found = found.doing(|| format!("read PlaybookRun {}", held.run))?;
        let found = found.filter(|run| run.spec.cluster_name.as_ref() == Some(&cluster));
        belongings.runs.extend(found.map(Arc::new));
    }
    Ok(())
}

pub(super) async fn live(ctx: &Context, namespace: &str, name: &str) -> Result<Belongings, Error> {
    let all = ListParams::default();
    let of_cluster = ListParams::default().fields(&format!("spec.clusterName={name}"));
    let sets: Vec<MachineSet> =
        live::list_for_cluster(ctx, namespace, name, &all, "list the MachineSets").await?;
    let action = format!("list the Machines of cluster {name}");
    let machines: Vec<Machine> = live::list_for_cluster(ctx, namespace, name, &of_cluster, &action).await?;
    let hosts: Vec<Host> = live::list_for_cluster(ctx, namespace, name, &all, "list the Hosts").await?;
    let action = format!("list the PlaybookRuns of cluster {name}");
    let runs: Vec<PlaybookRun> = live::list_for_cluster(ctx, namespace, name, &all, &action).await?;
    let runs = runs
        .into_iter()
        .filter(|run| run.spec.cluster_name.as_deref() == Some(name));
    Ok(Belongings {
        sets: sets.into_iter().map(Arc::new).collect(),
        machines: machines.into_iter().map(Arc::new).collect(),
        hosts: hosts.into_iter().map(Arc::new).collect(),
        runs: runs.map(Arc::new).collect(),
    })
}
