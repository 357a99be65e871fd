//! RemediationPolicy: observes the machines that it holds for, and writes what is seen of them.

use std::sync::Arc;

use crds::names::condition;
use crds::{ClusterDeployment, Machine, RemediationPolicy};
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use plan::news::news;
use plan::remediation_policy::Observed;
use tokio::task::JoinSet;

use crate::cluster_deployment::{now, refs};
use crate::context::Context;
use crate::controller::{self, Pass};
use crate::error::Error;
use crate::execute;

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let cache = &ctx.cache;
    let (of_machine, of_deployment, of_policy) = (ctx.clone(), ctx.clone(), ctx.clone());
    let controller = controller::of(ctx, &cache.policies)
        .watches_shared_stream(cache.machines.changes(), move |machine: Arc<Machine>| {
            references(&of_machine, &machine.namespace().unwrap_or_default())
        })
        .watches_shared_stream(
            cache.cluster_deployments.changes(),
            move |deployment: Arc<ClusterDeployment>| {
                references(&of_deployment, &deployment.namespace().unwrap_or_default())
            },
        )
        // Which one holds depends on all of them.
        .watches_shared_stream(cache.policies.changes(), move |policy: Arc<RemediationPolicy>| {
            references(&of_policy, &policy.namespace().unwrap_or_default())
        });
    tasks.spawn(controller::run(ctx.clone(), controller, pass));
}

fn references(ctx: &Context, namespace: &str) -> Vec<ObjectRef<RemediationPolicy>> {
    let policies = ctx.cache.policies.list(namespace, |_| true);
    policies
        .iter()
        .map(|policy| ObjectRef::from_obj(policy.as_ref()))
        .collect()
}

pub(crate) async fn pass(ctx: Arc<Context>, policy: Arc<RemediationPolicy>) -> Result<Pass, Error> {
    if policy.metadata.deletion_timestamp.is_some() {
        return Ok(Pass::settled());
    }
    let namespace = policy.namespace().unwrap_or_default();
    let cache = &ctx.cache;
    let policies = cache.policies.list(&namespace, |_| true);
    let machines = cache.machines.list(&namespace, |_| true);
    let deployments = cache.cluster_deployments.list(&namespace, |_| true);
    let runs = cache.runs.list(&namespace, |_| true);
    let plan = plan::remediation_policy::plan(&Observed {
        now: now(),
        policy: &policy,
        policies: &refs(&policies),
        machines: &refs(&machines),
        deployments: &refs(&deployments),
        runs: &refs(&runs),
    });
    let written = execute::patch_status(&ctx, &*policy, policy.status.as_ref(), &plan.status).await?;
    if written {
        let old = policy.status.as_ref().map(|status| status.conditions.as_slice());
        let told = news(
            old.unwrap_or_default(),
            &plan.status.conditions,
            &[condition::READY],
        );
        for news in told {
            ctx.events.news(&*policy, &news).await;
        }
    }
    Ok(Pass::of(&plan, written))
}
