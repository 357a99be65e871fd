//! EtcdBackup: observes a backup, its storage and its cluster, makes the runs that take it, and the Jobs that remove
//! what it has stored.

use std::sync::Arc;

use crds::names::{condition, finalizer, label};
use crds::{BackupStorage, ClusterDeployment, Conditions, EtcdBackup, EtcdRestore, Machine, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::ListParams;
use kube::runtime::reflector::ObjectRef;
use plan::etcd_backup::{Action, Observed, is_held};
use plan::inputs::StorageSeen;
use plan::transitions::transitions;
use serde_json::json;
use tokio::task::JoinSet;

use crate::backup_storage::look_up;
use crate::cache::{Decisive, IndexKey, refs};
use crate::context::Context;
use crate::controller::{self, beside};
use crate::error::Error;
use crate::reconcile::{PlanOf, Reconcile, now};
use crate::{execute, live};

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let cache = &ctx.cache;
    let of_run = |run: Arc<PlaybookRun>| {
        let backup = run.spec.backup_ref.as_ref()?;
        Some(beside::<EtcdBackup>(&*run, &backup.name))
    };
    let waiting = |ctx: &Arc<Context>, namespace: &str, key: IndexKey| -> Vec<ObjectRef<EtcdBackup>> {
        controller::references(&ctx.cache.etcd_backups.with(namespace, &key))
    };
    let (of_storage, of_deployment, decisive) = (ctx.clone(), ctx.clone(), Decisive::default());
    let controller = controller::new(ctx, &cache.etcd_backups)
        .watches_shared_stream(cache.runs.changes(), of_run)
        .watches_shared_stream(cache.backup_storages.changes(), move |storage: Arc<BackupStorage>| {
            waiting(&of_storage, &storage.namespace().unwrap_or_default(), IndexKey::Storage(storage.name_any()))
        })
        .watches_shared_stream(cache.cluster_deployments.changes(), move |deployment: Arc<ClusterDeployment>| {
            if !decisive.is_news(&of_deployment.cache.cluster_deployments, &deployment) {
                return Vec::new();
            }
            let namespace = deployment.namespace().unwrap_or_default();
            waiting(&of_deployment, &namespace, IndexKey::Cluster(deployment.name_any()))
        });
    tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));
}

/// What is known of an EtcdBackup.
pub(crate) struct Observation {
    now: Timestamp,
    backup: Arc<EtcdBackup>,
    storage: Option<Arc<BackupStorage>>,
    deployment: Option<Arc<ClusterDeployment>>,
    machines: Vec<Arc<Machine>>,
    runs: Vec<Arc<PlaybookRun>>,
    /// None: one cannot be decoded.
    restores: Option<Vec<Arc<EtcdRestore>>>,
    image: String,
    seen: StorageSeen,
    jobs: Vec<Job>,
    pods: Vec<Pod>,
}

impl Reconcile for Observation {
    type Object = EtcdBackup;
    type Action = Action;

    async fn observe(ctx: &Context, backup: Arc<EtcdBackup>) -> Result<Option<Self>, Error> {
        let leaves = backup.metadata.deletion_timestamp.is_some();
        if leaves && !is_held(&backup) {
            return Ok(None);
        }
        let (cache, namespace) = (&ctx.cache, backup.namespace().unwrap_or_default());
        let cluster = &backup.spec.cluster_name;
        let storage = cache.backup_storages.get(&namespace, &backup.spec.storage_ref.name);
        let (mut seen, mut jobs, mut pods) = (StorageSeen::default(), Vec::new(), Vec::new());
        if leaves {
            jobs = live::labelled(ctx, &namespace, label::BACKUP, &backup.name_any()).await?;
            pods = live::labelled(ctx, &namespace, label::BACKUP, &backup.name_any()).await?;
        }
        if let Some(storage) = storage.as_ref().filter(|_| leaves) {
            seen = look_up(ctx, storage).await?;
        }
        Ok(Some(Self {
            now: now(),
            storage,
            deployment: cache.cluster_deployments.get(&namespace, cluster),
            machines: cache.machines.of_cluster(&namespace, cluster),
            runs: cache.runs.of_cluster(&namespace, cluster),
            restores: (!cache.lacks::<EtcdRestore>(&namespace))
                .then(|| cache.etcd_restores.of_cluster(&namespace, cluster)),
            image: ctx.settings.executor_image.clone(),
            seen,
            jobs,
            pods,
            backup,
        }))
    }

    fn object(&self) -> &EtcdBackup {
        &self.backup
    }

    fn plan(&self) -> PlanOf<Self> {
        let restores = self.restores.as_deref().map(refs);
        plan::etcd_backup::plan(&Observed {
            now: self.now,
            backup: &self.backup,
            storage: self.storage.as_deref(),
            deployment: self.deployment.as_deref(),
            machines: &refs(&self.machines),
            runs: &refs(&self.runs),
            restores: restores.as_deref(),
            seen: &self.seen,
            image: &self.image,
            jobs: &self.jobs,
            pods: &self.pods,
        })
    }

    /// A run that the cache does not show yet would be followed by another one, and a restore that it does not show may
    /// need what is removed.
    fn must_refresh(&self, plan: &PlanOf<Self>) -> bool {
        !plan.actions.is_empty()
    }

    async fn refresh(self, ctx: &Context, _: &PlanOf<Self>) -> Result<Option<Self>, Error> {
        let namespace = self.backup.namespace().unwrap_or_default();
        let live = live::get::<EtcdBackup>(ctx, &namespace, &self.backup.name_any()).await?;
        let Some(backup) = live.filter(|live| live.uid() == self.backup.uid()) else {
            return Ok(None);
        };
        let runs = live::runs(ctx, &namespace, &backup.spec.cluster_name).await?;
        let machines = live::machines(ctx, &namespace, &backup.spec.cluster_name).await?;
        let restores = match &self.restores {
            Some(_) => Some(live::list::<EtcdRestore>(ctx, &namespace, &ListParams::default(), |_| true).await?),
            None => None,
        };
        Ok(Some(Self { backup: Arc::new(backup), runs, machines, restores, ..self }))
    }

    async fn execute(&mut self, ctx: &Context, action: &Action) -> Result<(), Error> {
        match action {
            Action::AddFinalizer => execute::add_finalizer(ctx, &*self.backup, finalizer::BACKUP).await,
            Action::Begin(run) => execute::create_ours(ctx, &**run).await,
            Action::CancelRun(run) => execute::ask_run(ctx, run, "cancel", json!({ "cancel": true })).await,
            Action::Remove(job) => execute::create_ours(ctx, &**job).await,
            Action::Forget(job) => execute::delete(ctx, &**job, None).await,
            Action::RemoveFinalizer => execute::remove_finalizer(ctx, &*self.backup, finalizer::BACKUP).await,
            Action::Expire => execute::delete(ctx, &*self.backup, None).await,
        }
    }

    fn is_released(plan: &PlanOf<Self>) -> bool {
        plan.actions.contains(&Action::RemoveFinalizer)
    }

    async fn report(&self, ctx: &Context, plan: &PlanOf<Self>) {
        let types = [condition::COMPLETE, condition::FAILED, condition::DELETING];
        for transition in transitions(self.backup.conditions(), &plan.status.conditions, &types) {
            ctx.events.transition(&*self.backup, &transition).await;
        }
    }
}
