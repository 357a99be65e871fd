//! EtcdBackup: observes a backup, its storage and its cluster, and makes the runs that take it.

use std::sync::Arc;

use crds::names::condition;
use crds::{BackupStorage, ClusterDeployment, Conditions, EtcdBackup, Machine, PlaybookRun};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use plan::etcd_backup::{Action, Observed};
use plan::transitions::transitions;
use tokio::task::JoinSet;

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
}

impl Reconcile for Observation {
    type Object = EtcdBackup;
    type Action = Action;

    async fn observe(ctx: &Context, backup: Arc<EtcdBackup>) -> Result<Option<Self>, Error> {
        if backup.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let (cache, namespace) = (&ctx.cache, backup.namespace().unwrap_or_default());
        let cluster = &backup.spec.cluster_name;
        Ok(Some(Self {
            now: now(),
            storage: cache.backup_storages.get(&namespace, &backup.spec.storage_ref.name),
            deployment: cache.cluster_deployments.get(&namespace, cluster),
            machines: cache.machines.of_cluster(&namespace, cluster),
            runs: cache.runs.of_cluster(&namespace, cluster),
            backup,
        }))
    }

    fn object(&self) -> &EtcdBackup {
        &self.backup
    }

    fn plan(&self) -> PlanOf<Self> {
        plan::etcd_backup::plan(&Observed {
            now: self.now,
            backup: &self.backup,
            storage: self.storage.as_deref(),
            deployment: self.deployment.as_deref(),
            machines: &refs(&self.machines),
            runs: &refs(&self.runs),
        })
    }

    /// A run that the cache does not show yet would be followed by another one.
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
        Ok(Some(Self { backup: Arc::new(backup), runs, machines, ..self }))
    }

    async fn execute(&mut self, ctx: &Context, action: &Action) -> Result<(), Error> {
        match action {
            Action::Begin(run) => execute::create_ours(ctx, &**run).await,
        }
    }

    async fn report(&self, ctx: &Context, plan: &PlanOf<Self>) {
        let types = [condition::COMPLETE, condition::FAILED];
        for transition in transitions(self.backup.conditions(), &plan.status.conditions, &types) {
            ctx.events.transition(&*self.backup, &transition).await;
        }
    }
}
