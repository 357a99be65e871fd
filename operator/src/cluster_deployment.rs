//! ClusterDeployment: observes a cluster and all that belongs to it, carries out the plan, and writes the status, its
//! lock included, only if nobody else has written the object since it was read.

mod actions;
mod observe;
mod pki_owner;
mod report;
mod restoring;

use std::sync::Arc;

use crds::{
    Addon, Cluster, ClusterDeployment, ClusterDeploymentStatus, EtcdBackupSchedule, EtcdRestore, Host, Machine,
    MachineSet, PlaybookRun, RemediationPolicy,
};
use kube::ResourceExt;
use plan::cluster_deployment::Action;
use plan::undecodable::status_on_hold;
use tokio::task::JoinSet;

use crate::cache::BackupNews;
use crate::context::Context;
use crate::controller::{self, beside};
use crate::error::Error;
use crate::execute;
use crate::reconcile::{PlanOf, Reconcile};
pub(crate) use actions::{adopt, apply_set, force_remove};
pub(crate) use observe::Observation;
pub(crate) use pki_owner::pki_owner;

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let cache = &ctx.cache;
    let (holder, of_policy, of_schedule, backup_news) = (ctx.clone(), ctx.clone(), ctx.clone(), BackupNews::default());
    let of_host = move |host: Arc<Host>| {
        let Some(claim) = host.spec.claim_ref.as_ref() else {
            // One that was given up may be back.
            let cluster = host.spec.quarantine.as_ref()?.former()?.deployment()?;
            return Some(beside(&*host, cluster));
        };
        let namespace = host.namespace().unwrap_or_default();
        let machine = holder.cache.machines.get(&namespace, &claim.name)?;
        Some(beside(&*host, machine.spec.former().deployment()?))
    };
    let controller = controller::new(ctx, &cache.cluster_deployments)
        .watches_shared_stream(cache.machine_sets.changes(), |set: Arc<MachineSet>| {
            Some(beside(&*set, set.spec.former().deployment()?))
        })
        .watches_shared_stream(cache.machines.changes(), |machine: Arc<Machine>| {
            Some(beside(&*machine, machine.spec.former().deployment()?))
        })
        .watches_shared_stream(cache.hosts.changes(), of_host)
        .watches_shared_stream(cache.runs.changes(), |run: Arc<PlaybookRun>| {
            Some(beside(&*run, run.spec.former()?.deployment()?))
        })
        .watches_shared_stream(cache.etcd_restores.changes(), |restore: Arc<EtcdRestore>| {
            Some(beside(&*restore, restore.spec.cluster_name.as_deref()?))
        })
        .watches_shared_stream(cache.etcd_backup_schedules.changes(), move |schedule: Arc<EtcdBackupSchedule>| {
            backup_news.clusters(&of_schedule.cache.etcd_backup_schedules, &schedule)
        })
        .watches_shared_stream(cache.policies.changes(), move |policy: Arc<RemediationPolicy>| {
            let namespace = policy.namespace().unwrap_or_default();
            controller::references(&of_policy.cache.cluster_deployments.list(&namespace, |_| true))
        })
        .watches_shared_stream(cache.clusters.changes(), |cluster: Arc<Cluster>| {
            Some(beside(&*cluster, &cluster.name_any()))
        })
        .watches_shared_stream(cache.addons.changes(), |addon: Arc<Addon>| {
            let owner = addon.owner_references().iter().find(|owner| owner.controller == Some(true))?;
            Some(beside(&*addon, &owner.name))
        });
    tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));
}

impl Reconcile for Observation {
    type Object = ClusterDeployment;
    type Action = Action;

    const LAST: Option<Action> = Some(Action::RemoveFinalizer);

    async fn observe(ctx: &Context, deployment: Arc<ClusterDeployment>) -> Result<Option<Self>, Error> {
        Observation::cached(ctx, &deployment).await
    }

    fn object(&self) -> &ClusterDeployment {
        &self.deployment
    }

    fn plan(&self) -> PlanOf<Self> {
        self.decide()
    }

    fn hold(&self, ctx: &Context, _: &PlanOf<Self>) -> Option<(String, ClusterDeploymentStatus)> {
        let message = ctx.cache.hold_of_deployment(&self.deployment)?;
        let status = status_on_hold(&self.deployment, &message, self.now);
        Some((message, status))
    }

    /// A lock that was lost is opened by what the API itself shows.
    fn must_refresh(&self, plan: &PlanOf<Self>) -> bool {
        let known = |status: Option<&ClusterDeploymentStatus>| status.is_some_and(|s| s.last_token.is_some());
        let opens = known(Some(&plan.status)) && !known(self.deployment.status.as_ref());
        opens || plan.actions.iter().any(Action::is_irrevocable)
    }

    async fn refresh(self, ctx: &Context, _: &PlanOf<Self>) -> Result<Option<Self>, Error> {
        self.live(ctx).await.map(Some)
    }

    async fn execute(&mut self, ctx: &Context, action: &Action) -> Result<(), Error> {
        actions::execute(ctx, &self.deployment, action).await
    }

    /// As a whole, and only if nobody else has written the object: the lock is in it.
    async fn write_status(&self, ctx: &Context, status: &ClusterDeploymentStatus) -> Result<bool, Error> {
        if self.deployment.status.as_ref() == Some(status) {
            return Ok(false);
        }
        let mut wanted = self.deployment.clone();
        wanted.status = Some(status.clone());
        execute::replace_status(ctx, &wanted).await.map(|_| true)
    }

    async fn report(&self, ctx: &Context, plan: &PlanOf<Self>) {
        if plan.actions.contains(&Action::RemoveFinalizer) {
            return;
        }
        report::conditions(ctx, &self.deployment, &plan.status.conditions).await;
        report::replacements(ctx, &self.deployment, &plan.status).await;
    }
}

#[cfg(test)]
mod tests;
