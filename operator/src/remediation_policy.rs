//! RemediationPolicy: observes the machines that it holds for, and writes what is seen of them.

use std::sync::Arc;

use crds::names::condition;
use crds::{ClusterDeployment, Conditions, Machine, PlaybookRun, RemediationPolicy};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use plan::remediation_policy::{Action, Observed};
use plan::transitions::transitions;
use tokio::task::JoinSet;

use crate::cache::refs;
use crate::context::Context;
use crate::controller;
use crate::error::Error;
use crate::reconcile::{PlanOf, Reconcile, now};

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let cache = &ctx.cache;
    let (of_machine, of_deployment, of_policy) = (ctx.clone(), ctx.clone(), ctx.clone());
    let controller = controller::new(ctx, &cache.policies)
        .watches_shared_stream(cache.machines.changes(), move |machine: Arc<Machine>| {
            references(&of_machine, &machine.namespace().unwrap_or_default())
        })
        .watches_shared_stream(cache.cluster_deployments.changes(), move |deployment: Arc<ClusterDeployment>| {
            references(&of_deployment, &deployment.namespace().unwrap_or_default())
        })
        // Which one holds depends on all of them.
        .watches_shared_stream(cache.policies.changes(), move |policy: Arc<RemediationPolicy>| {
            references(&of_policy, &policy.namespace().unwrap_or_default())
        });
    tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));
}

fn references(ctx: &Context, namespace: &str) -> Vec<ObjectRef<RemediationPolicy>> {
    controller::references(&ctx.cache.policies.list(namespace, |_| true))
}

/// What is known of a RemediationPolicy.
pub(crate) struct Observation {
    now: Timestamp,
    policy: Arc<RemediationPolicy>,
    policies: Vec<Arc<RemediationPolicy>>,
    machines: Vec<Arc<Machine>>,
    deployments: Vec<Arc<ClusterDeployment>>,
    runs: Vec<Arc<PlaybookRun>>,
}

impl Reconcile for Observation {
    type Object = RemediationPolicy;
    type Action = Action;

    async fn observe(ctx: &Context, policy: Arc<RemediationPolicy>) -> Result<Option<Self>, Error> {
        if policy.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let (cache, namespace) = (&ctx.cache, policy.namespace().unwrap_or_default());
        Ok(Some(Self {
            now: now(),
            policies: cache.policies.list(&namespace, |_| true),
            machines: cache.machines.list(&namespace, |_| true),
            deployments: cache.cluster_deployments.list(&namespace, |_| true),
            runs: cache.runs.list(&namespace, |_| true),
            policy,
        }))
    }

    fn object(&self) -> &RemediationPolicy {
        &self.policy
    }

    fn plan(&self) -> PlanOf<Self> {
        plan::remediation_policy::plan(&Observed {
            now: self.now,
            policy: &self.policy,
            policies: &refs(&self.policies),
            machines: &refs(&self.machines),
            deployments: &refs(&self.deployments),
            runs: &refs(&self.runs),
        })
    }

    async fn execute(&mut self, _: &Context, action: &Action) -> Result<(), Error> {
        match *action {}
    }

    async fn report(&self, ctx: &Context, plan: &PlanOf<Self>) {
        let types = [condition::READY];
        for transition in transitions(self.policy.conditions(), &plan.status.conditions, &types) {
            ctx.events.transition(&*self.policy, &transition).await;
        }
    }
}
