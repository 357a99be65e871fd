//! EtcdBackup: observes a backup, its storage and its cluster, makes the runs that take it, and the Jobs that verify
//! and remove what it has stored.

mod stored;

use std::sync::Arc;

use crds::names::{condition, finalizer};
use crds::{
    BackupStorage, ClusterDeployment, Conditions, EtcdBackup, EtcdBackupStatus, EtcdRestore, FormerRef,
    KarmadaDeployment, Machine, PlaybookRun,
};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::ListParams;
use kube::runtime::reflector::ObjectRef;
use plan::etcd_backup::{Action, Observed, is_held, is_over};
use plan::transitions::transitions;
use serde_json::json;
use stored::Stored;
use tokio::task::JoinSet;

use crate::cache::{Decisive, IndexKey, refs};
use crate::context::Context;
use crate::controller::{self, beside};
use crate::error::Error;
use crate::reconcile::{PlanOf, Reconcile, StatusOf, now};
use crate::{execute, executor_job, live};

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

/// Whether all can be read that may need a backup of the namespace.
pub(crate) fn are_users_known(ctx: &Context, namespace: &str) -> bool {
    !ctx.cache.lacks::<EtcdRestore>(namespace) && !ctx.cache.lacks::<ClusterDeployment>(namespace)
}

/// Whose machines may have the etcd of a backup.
fn former(backup: &EtcdBackup) -> Option<FormerRef<'_>> {
    let spec = &backup.spec;
    let of_plane = || spec.karmada_deployment_ref.as_ref().map(|plane| FormerRef::plane(&plane.name));
    spec.cluster_name.as_deref().map(FormerRef::cluster).or_else(of_plane)
}

/// What is known of an EtcdBackup.
pub(crate) struct Observation {
    now: Timestamp,
    backup: Arc<EtcdBackup>,
    storage: Option<Arc<BackupStorage>>,
    deployment: Option<Arc<ClusterDeployment>>,
    plane: Option<Arc<KarmadaDeployment>>,
    machines: Vec<Arc<Machine>>,
    runs: Vec<Arc<PlaybookRun>>,
    /// None: one of those that may need the backup cannot be decoded.
    restores: Option<Vec<Arc<EtcdRestore>>>,
    /// Those of the namespace.
    deployments: Vec<Arc<ClusterDeployment>>,
    image: String,
    stored: Stored,
    /// An action has written the backup itself.
    has_written: bool,
}

impl Reconcile for Observation {
    type Object = EtcdBackup;
    type Action = Action;

    const LAST: Option<Action> = Some(Action::RemoveFinalizer);

    async fn observe(ctx: &Context, backup: Arc<EtcdBackup>) -> Result<Option<Self>, Error> {
        let leaves = backup.metadata.deletion_timestamp.is_some();
        if leaves && !is_held(&backup) {
            return Ok(None);
        }
        let (cache, namespace) = (&ctx.cache, backup.namespace().unwrap_or_default());
        let storage = cache.backup_storages.get(&namespace, &backup.spec.storage_ref.name);
        let cluster = backup.spec.cluster_name.as_deref();
        let deployment = cluster.and_then(|cluster| cache.cluster_deployments.get(&namespace, cluster));
        let plane = backup.spec.karmada_deployment_ref.as_ref();
        let plane = plane.and_then(|plane| cache.karmada_deployments.get(&namespace, &plane.name));
        let now = now();
        let stored = Stored::look_up(ctx, &backup, storage.as_deref(), deployment.as_deref(), now).await?;
        let (machines, runs, restores) = match cluster {
            Some(cluster) => (
                cache.machines.of_cluster(&namespace, cluster),
                cache.runs.of_cluster(&namespace, cluster),
                cache.etcd_restores.of_cluster(&namespace, cluster),
            ),
            None => (
                former(&backup).map_or_else(Vec::new, |plane| cache.machines.formed_by(&namespace, plane)),
                cache.runs.with(&namespace, &IndexKey::Backup(backup.name_any())),
                cache.etcd_restores.list(&namespace, |_| true),
            ),
        };
        Ok(Some(Self {
            now,
            storage,
            deployment,
            plane,
            machines,
            runs,
            restores: are_users_known(ctx, &namespace).then_some(restores),
            deployments: cache.cluster_deployments.list(&namespace, |_| true),
            image: ctx.settings.executor_image.clone(),
            stored,
            has_written: false,
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
            plane: self.plane.as_deref(),
            machines: &refs(&self.machines),
            runs: &refs(&self.runs),
            restores: restores.as_deref(),
            deployments: &refs(&self.deployments),
            seen: &self.stored.seen,
            image: &self.image,
            identity: self.stored.identity.as_ref(),
            artifacts: &self.stored.artifacts,
            jobs: &self.stored.jobs,
            pods: &self.stored.pods,
        })
    }

    /// What cannot be decoded is not gone, and is not said to be.
    fn hold(&self, ctx: &Context, _: &PlanOf<Self>) -> Option<(String, StatusOf<Self>)> {
        let (backup, namespace) = (&*self.backup, self.backup.namespace().unwrap_or_default());
        let storage = Some(("BackupStorage", backup.spec.storage_ref.name.as_str()));
        let cluster = backup.spec.cluster_name.as_deref().map(|cluster| ("ClusterDeployment", cluster));
        let plane = backup.spec.karmada_deployment_ref.as_ref();
        let plane = plane.map(|plane| ("KarmadaDeployment", plane.name.as_str()));
        let needed: Vec<(&str, &str)> = [storage, cluster, plane].into_iter().flatten().collect();
        let message = ctx.cache.hold_of(&namespace, &needed)?;
        let old = backup.status.clone().unwrap_or_default();
        let said = if is_over(backup) { old.message.clone() } else { Some(message.clone()) };
        Some((message, EtcdBackupStatus { message: said, ..old }))
    }

    /// A run that the cache does not show yet would be followed by another one, and a restore that it does not show may
    /// need what is removed.
    fn must_refresh(&self, plan: &PlanOf<Self>) -> bool {
        !plan.actions.is_empty()
    }

    async fn refresh(self, ctx: &Context, plan: &PlanOf<Self>) -> Result<Option<Self>, Error> {
        let namespace = self.backup.namespace().unwrap_or_default();
        let live = live::get::<EtcdBackup>(ctx, &namespace, &self.backup.name_any()).await?;
        let Some(backup) = live.filter(|live| live.uid() == self.backup.uid()) else {
            return Ok(None);
        };
        let runs = match &backup.spec.cluster_name {
            Some(cluster) => live::runs(ctx, &namespace, cluster).await?,
            None => live::backup_runs(ctx, &namespace).await?,
        };
        let machines = match former(&backup) {
            Some(former) => live::machines_of(ctx, &namespace, former).await?,
            None => Vec::new(),
        };
        let restores = match &self.restores {
            Some(_) => Some(live::list::<EtcdRestore>(ctx, &namespace, &ListParams::default(), |_| true).await?),
            None => None,
        };
        let removes = plan.actions.iter().any(|action| matches!(action, Action::Remove(_) | Action::Expire));
        let deployments = match removes {
            true => live::list::<ClusterDeployment>(ctx, &namespace, &ListParams::default(), |_| true).await?,
            false => self.deployments,
        };
        // It may have been stored since.
        let (storage, deployment) = (self.storage.as_deref(), self.deployment.as_deref());
        let stored = Stored::look_up(ctx, &backup, storage, deployment, self.now).await?;
        Ok(Some(Self { backup: Arc::new(backup), runs, machines, restores, deployments, stored, ..self }))
    }

    async fn execute(&mut self, ctx: &Context, action: &Action) -> Result<(), Error> {
        self.has_written |= matches!(action, Action::AddFinalizer | Action::Expire);
        match action {
            Action::AddFinalizer => execute::add_finalizer(ctx, &*self.backup, finalizer::BACKUP).await,
            Action::Begin(run) => execute::create_ours(ctx, &**run).await,
            Action::CancelRun(run) => execute::ask_run(ctx, run, "cancel", json!({ "cancel": true })).await,
            Action::Verify(job) => executor_job::create(ctx, job).await,
            Action::Remove(job) => executor_job::create(ctx, job).await,
            Action::Forget(job) => execute::delete(ctx, &**job, None).await,
            Action::RemoveFinalizer => execute::remove_finalizer(ctx, &*self.backup, finalizer::BACKUP).await,
            Action::Expire => execute::delete(ctx, &*self.backup, None).await,
        }
    }

    /// Others count it by the phase: what a cache that is behind shows must not take it back. An action of ours that
    /// has written the object was decided by what the API showed.
    async fn write_status(&self, ctx: &Context, status: &StatusOf<Self>) -> Result<bool, Error> {
        let backup = &*self.backup;
        match self.has_written {
            true => execute::patch_status(ctx, backup, backup.status.as_ref(), status).await,
            false => execute::patch_status_if_unchanged(ctx, backup, backup.status.as_ref(), status).await,
        }
    }

    async fn report(&self, ctx: &Context, plan: &PlanOf<Self>) {
        let types = [condition::COMPLETE, condition::FAILED, condition::VERIFIED, condition::DELETING];
        for transition in transitions(self.backup.conditions(), &plan.status.conditions, &types) {
            ctx.events.transition(&*self.backup, &transition).await;
        }
    }
}
