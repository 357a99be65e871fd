//! EtcdBackupSchedule: observes a schedule, its clusters and their backups, makes EtcdBackups and deletes old ones.

use std::sync::Arc;

use crds::names::{condition, label};
use crds::{ClusterDeployment, Conditions, EtcdBackup, EtcdBackupSchedule, EtcdRestore, KarmadaDeployment, ObjectExt};
use jiff::Timestamp;
use kube::api::ListParams;
use plan::etcd_backup_schedule::{Action, Observed};
use plan::transitions::transitions;
use tokio::task::JoinSet;

use crate::cache::{Decisive, IndexKey, refs};
use crate::context::Context;
use crate::controller::{self, beside};
use crate::error::Error;
use crate::etcd_backup::are_users_known;
use crate::reconcile::{PlanOf, Reconcile, now};
use crate::{execute, live};

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let cache = &ctx.cache;
    let (of_deployment, of_plane, decisive) = (ctx.clone(), ctx.clone(), Decisive::default());
    let controller = controller::new(ctx, &cache.etcd_backup_schedules)
        .watches_shared_stream(cache.etcd_backups.changes(), |backup: Arc<EtcdBackup>| {
            let schedule = backup.metadata.labels.as_ref()?.get(label::SCHEDULE)?;
            Some(beside::<EtcdBackupSchedule>(&*backup, schedule))
        })
        .watches_shared_stream(cache.karmada_deployments.changes(), move |plane: Arc<KarmadaDeployment>| {
            let is_for = |schedule: &EtcdBackupSchedule| schedule.spec.is_for_plane(plane.name());
            controller::references(&of_plane.cache.etcd_backup_schedules.list(plane.namespace(), is_for))
        })
        .watches_shared_stream(cache.cluster_deployments.changes(), move |deployment: Arc<ClusterDeployment>| {
            let cache = &of_deployment.cache;
            if !decisive.is_news(&cache.cluster_deployments, &deployment) {
                return Vec::new();
            }
            // Also those that select it no more.
            controller::references(&cache.etcd_backup_schedules.list(deployment.namespace(), |_| true))
        });
    tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));
}

/// What is known of an EtcdBackupSchedule.
pub(crate) struct Observation {
    now: Timestamp,
    schedule: Arc<EtcdBackupSchedule>,
    deployments: Vec<Arc<ClusterDeployment>>,
    plane: Option<Arc<KarmadaDeployment>>,
    backups: Vec<Arc<EtcdBackup>>,
    /// None: one of those that may need a backup cannot be decoded.
    restores: Option<Vec<Arc<EtcdRestore>>>,
}

impl Reconcile for Observation {
    type Object = EtcdBackupSchedule;
    type Action = Action;

    async fn observe(ctx: &Context, schedule: Arc<EtcdBackupSchedule>) -> Result<Option<Self>, Error> {
        if schedule.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let (cache, namespace) = (&ctx.cache, schedule.namespace().to_owned());
        let plane = schedule.spec.karmada_deployment_ref.as_ref();
        Ok(Some(Self {
            now: now(),
            plane: plane.and_then(|plane| cache.karmada_deployments.get(&namespace, &plane.name)),
            deployments: cache.cluster_deployments.list(&namespace, |_| true),
            backups: cache.etcd_backups.with(&namespace, &IndexKey::Schedule(schedule.name().to_owned())),
            restores: are_users_known(ctx, &namespace).then(|| cache.etcd_restores.list(&namespace, |_| true)),
            schedule,
        }))
    }

    fn object(&self) -> &EtcdBackupSchedule {
        &self.schedule
    }

    fn plan(&self) -> PlanOf<Self> {
        let restores = self.restores.as_deref().map(refs);
        plan::etcd_backup_schedule::plan(&Observed {
            now: self.now,
            schedule: &self.schedule,
            deployments: &refs(&self.deployments),
            plane: self.plane.as_deref(),
            backups: &refs(&self.backups),
            restores: restores.as_deref(),
        })
    }

    /// A backup that the cache does not show yet would be followed by another one, and a backup is deleted by what is
    /// there now.
    fn must_refresh(&self, plan: &PlanOf<Self>) -> bool {
        !plan.actions.is_empty()
    }

    async fn refresh(self, ctx: &Context, plan: &PlanOf<Self>) -> Result<Option<Self>, Error> {
        let namespace = self.schedule.namespace().to_owned();
        let name = self.schedule.name().to_owned();
        let live = live::get::<EtcdBackupSchedule>(ctx, &namespace, &name).await?;
        let Some(schedule) = live.filter(|live| live.uid() == self.schedule.uid()) else {
            return Ok(None);
        };
        if schedule.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let ours = ListParams::default().labels(&format!("{}={name}", label::SCHEDULE));
        let backups = live::list::<EtcdBackup>(ctx, &namespace, &ours, |_| true).await?;
        let restores = match &self.restores {
            Some(_) => Some(live::list::<EtcdRestore>(ctx, &namespace, &ListParams::default(), |_| true).await?),
            None => None,
        };
        let deployments = match plan.actions.iter().any(|action| matches!(action, Action::Delete(_))) {
            true => live::list::<ClusterDeployment>(ctx, &namespace, &ListParams::default(), |_| true).await?,
            false => self.deployments,
        };
        Ok(Some(Self { schedule: Arc::new(schedule), deployments, backups, restores, ..self }))
    }

    async fn execute(&mut self, ctx: &Context, action: &Action) -> Result<(), Error> {
        match action {
            Action::Begin(backup) => execute::create_ours(ctx, &**backup).await,
            Action::Delete(backup) => execute::delete(ctx, &**backup, None).await,
        }
    }

    async fn report(&self, ctx: &Context, plan: &PlanOf<Self>) {
        let types = [condition::READY];
        for transition in transitions(self.schedule.conditions(), &plan.status.conditions, &types) {
            ctx.events.transition(&*self.schedule, &transition).await;
        }
    }
}
