//! MachineRequest: observes a request, its set and its Machines; makes Machines and gives them back as planned.

use std::sync::Arc;

use crds::names::{annotation, condition, finalizer, label, worker_set};
use crds::{ClusterDeployment, Conditions, HostPool, Machine, MachineRequest, MachineSet};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use plan::host_pool::{is_automatic, pool_name, selector_of_request};
use plan::machine_request::{Action, Observed, request_of};
use plan::transitions::transitions;
use serde_json::json;
use tokio::task::JoinSet;

use crate::cache::{Decisive, refs};
use crate::context::Context;
use crate::controller::{self, beside};
use crate::error::Error;
use crate::reconcile::{PlanOf, Reconcile, StatusOf, now};
use crate::{execute, live};

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let cache = &ctx.cache;
    let (of_set, of_deployment, of_pool, decisive) = (ctx.clone(), ctx.clone(), ctx.clone(), Decisive::default());
    let of_cluster = |ctx: &Context, namespace: &str, cluster: &str| -> Vec<ObjectRef<MachineRequest>> {
        controller::references(&ctx.cache.machine_requests.of_cluster(namespace, cluster))
    };
    let controller = controller::new(ctx, &cache.machine_requests)
        .watches_shared_stream(cache.machines.changes(), |machine: Arc<Machine>| {
            request_of(&machine).map(|request| beside::<MachineRequest>(&*machine, request))
        })
        .watches_shared_stream(cache.machine_sets.changes(), move |set: Arc<MachineSet>| {
            of_cluster(&of_set, &set.namespace().unwrap_or_default(), &set.spec.cluster_name)
        })
        .watches_shared_stream(cache.host_pools.changes(), move |pool: Arc<HostPool>| lost_pool(&of_pool, &pool))
        .watches_shared_stream(cache.cluster_deployments.changes(), move |deployment: Arc<ClusterDeployment>| {
            if !decisive.is_news(&of_deployment.cache.cluster_deployments, &deployment) {
                return Vec::new();
            }
            of_cluster(&of_deployment, &deployment.namespace().unwrap_or_default(), &deployment.name_any())
        });
    tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));
}

/// The requests of the namespace, if a pool of the operator's is gone: one of them may still ask for its selector.
fn lost_pool(ctx: &Context, pool: &HostPool) -> Vec<ObjectRef<MachineRequest>> {
    let namespace = pool.namespace().unwrap_or_default();
    let is_there = ctx.cache.host_pools.get(&namespace, &pool.name_any()).is_some();
    match is_automatic(pool) && !is_there {
        true => controller::references(&ctx.cache.machine_requests.list(&namespace, |_| true)),
        false => Vec::new(),
    }
}

/// What is known of a MachineRequest.
pub(crate) struct Observation {
    now: Timestamp,
    request: Arc<MachineRequest>,
    deployment: Option<Arc<ClusterDeployment>>,
    set: Option<Arc<MachineSet>>,
    machines: Vec<Arc<Machine>>,
    has_pool: bool,
}

impl Observation {
    fn namespace(&self) -> String {
        self.request.namespace().unwrap_or_default()
    }
}

impl Reconcile for Observation {
    type Object = MachineRequest;
    type Action = Action;

    const LAST: Option<Action> = Some(Action::RemoveFinalizer);

    /// What is given back is known as such before it goes: it is given back whatever becomes of it meanwhile.
    const STATUS_FIRST: bool = true;

    async fn observe(ctx: &Context, request: Arc<MachineRequest>) -> Result<Option<Self>, Error> {
        let namespace = request.namespace().unwrap_or_default();
        let (cache, cluster) = (&ctx.cache, &request.spec.cluster_name);
        let set = cache.machine_sets.get(&namespace, &worker_set(cluster, &request.spec.set));
        let sets: Vec<&MachineSet> = set.iter().map(Arc::as_ref).collect();
        let selector = selector_of_request(&request, &sets);
        let pool = |selector| cache.host_pools.get(&namespace, &pool_name(selector));
        Ok(Some(Self {
            now: now(),
            has_pool: selector.as_ref().is_none_or(|selector| pool(selector).is_some()),
            deployment: cache.cluster_deployments.get(&namespace, cluster),
            machines: cache.machines.of_cluster(&namespace, cluster),
            set,
            request,
        }))
    }

    fn object(&self) -> &MachineRequest {
        &self.request
    }

    fn plan(&self) -> PlanOf<Self> {
        plan::machine_request::plan(&Observed {
            now: self.now,
            request: &self.request,
            deployment: self.deployment.as_deref(),
            set: self.set.as_deref(),
            has_pool: self.has_pool,
            machines: &refs(&self.machines),
        })
    }

    fn hold(&self, ctx: &Context, _: &PlanOf<Self>) -> Option<(String, StatusOf<Self>)> {
        let message = ctx.cache.hold_of_cluster(&self.namespace(), &self.request.spec.cluster_name)?;
        let old = self.request.status.clone().unwrap_or_default();
        Some((message.clone(), StatusOf::<Self> { message: Some(message), ..old }))
    }

    /// Neither a Machine that the cache does not show yet is made again, nor one given back that has just become Ready,
    /// and an answer is for good.
    fn must_refresh(&self, plan: &PlanOf<Self>) -> bool {
        let was_answered = plan::machine_request::is_answered(&self.request);
        !plan.actions.is_empty() || (plan.status.answered_at.is_some() && !was_answered)
    }

    async fn refresh(self, ctx: &Context, _: &PlanOf<Self>) -> Result<Option<Self>, Error> {
        let namespace = self.namespace();
        let found = live::get::<MachineRequest>(ctx, &namespace, &self.request.name_any()).await?;
        let Some(request) = found.filter(|found| found.uid() == self.request.uid()) else {
            return Ok(None);
        };
        let cluster = &request.spec.cluster_name;
        let set = live::get::<MachineSet>(ctx, &namespace, &worker_set(cluster, &request.spec.set)).await?;
        let deployment = live::get::<ClusterDeployment>(ctx, &namespace, cluster).await?;
        let machines = live::machines(ctx, &namespace, cluster).await?;
        let (set, deployment) = (set.map(Arc::new), deployment.map(Arc::new));
        Ok(Some(Self { request: Arc::new(request), set, deployment, machines, ..self }))
    }

    async fn execute(&mut self, ctx: &Context, action: &Action) -> Result<(), Error> {
        match action {
            Action::AddFinalizer => execute::add_finalizer(ctx, &*self.request, finalizer::MACHINE_REQUEST).await,
            Action::CreateHostPool(pool) => execute::create_ours(ctx, &**pool).await,
            Action::CreateMachine(machine) => execute::create_ours(ctx, &**machine).await,
            Action::GiveBack(machine) => execute::delete(ctx, &**machine, None).await,
            Action::LeaveToSet(machine) => {
                let patch = json!({ "metadata": {
                    "labels": { label::MACHINE_REQUEST: null },
                    "annotations": {
                        annotation::MACHINE_REQUEST_UID: null, annotation::REQUEST_ID: null, annotation::ORDINAL: null,
                    },
                } });
                execute::patch_if_unchanged(ctx, &**machine, patch).await.map(drop)
            }
            Action::RemoveFinalizer => execute::remove_finalizer(ctx, &*self.request, finalizer::MACHINE_REQUEST).await,
        }
    }

    /// What it remembers of its Machines decides which are given back: a cache that is behind must not take it back.
    async fn write_status(&self, ctx: &Context, status: &StatusOf<Self>) -> Result<bool, Error> {
        let request = &*self.request;
        execute::patch_status_if_unchanged(ctx, request, request.status.as_ref(), status).await
    }

    async fn report(&self, ctx: &Context, plan: &PlanOf<Self>) {
        let types = [condition::FULFILLED, condition::PARTIALLY_FULFILLED, condition::FAILED];
        for mut transition in transitions(self.request.conditions(), &plan.status.conditions, &types) {
            if let Some(id) = &self.request.spec.request_id {
                transition.note = format!("{id}: {}", transition.note);
            }
            ctx.events.transition(&*self.request, &transition).await;
        }
    }
}

#[cfg(test)]
mod tests;
