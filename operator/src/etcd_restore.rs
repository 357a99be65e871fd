//! EtcdRestore: observes a restore, its backup and its cluster or plane, and makes the runs that carry it out; a plane
//! carries it out itself.

use std::sync::Arc;

use crds::etcd_restore::RestorePhase;
use crds::names::{condition, finalizer};
use crds::{
    BackupStorage, ClusterDeployment, Conditions, EtcdBackup, EtcdRestore, EtcdRestoreSpec, EtcdRestoreStatus,
    FormerRef, KarmadaDeployment, Machine, PlaybookRun,
};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use plan::etcd_restore::{Action, Observed, is_over, needs_keys, safety_name, safety_wanted, storage_of};
use plan::karmada_deployment::restore::restored_from;
use plan::key_transfer::RestoringSeen;
use plan::transitions::transitions;
use tokio::task::JoinSet;

use crate::cache::{Decisive, IndexKey, refs};
use crate::context::Context;
use crate::controller::{self, beside};
use crate::error::Error;
use crate::karmada_deployment::pki_owner;
use crate::reconcile::{PlanOf, Reconcile, StatusOf, now};
use crate::{execute, key_transfer, live};

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let cache = &ctx.cache;
    let of_run = |run: Arc<PlaybookRun>| {
        let restore = run.spec.restore_ref.as_ref()?;
        Some(beside::<EtcdRestore>(&*run, &restore.name))
    };
    let of_cluster = |ctx: &Arc<Context>, namespace: &str, name: &str| -> Vec<ObjectRef<EtcdRestore>> {
        controller::references(&ctx.cache.etcd_restores.with(namespace, &IndexKey::Cluster(name.to_owned())))
    };
    // What it waits for is seldom there to be waited for: these are few, and so are restores.
    let waiting = |ctx: &Arc<Context>, namespace: &str| -> Vec<ObjectRef<EtcdRestore>> {
        controller::references(&ctx.cache.etcd_restores.list(namespace, |restore| !is_over(restore)))
    };
    let (of_restore, of_storage, of_backup, of_machine, of_deployment, of_plane, decisive) =
        (ctx.clone(), ctx.clone(), ctx.clone(), ctx.clone(), ctx.clone(), ctx.clone(), Decisive::default());
    let controller = controller::new(ctx, &cache.etcd_restores)
        .watches_shared_stream(cache.runs.changes(), of_run)
        .watches_shared_stream(cache.etcd_restores.changes(), move |restore: Arc<EtcdRestore>| {
            let (namespace, spec) = (restore.namespace().unwrap_or_default(), &restore.spec);
            controller::references(&alike(&of_restore, &namespace, spec))
        })
        .watches_shared_stream(cache.backup_storages.changes(), move |storage: Arc<BackupStorage>| {
            waiting(&of_storage, &storage.namespace().unwrap_or_default())
        })
        .watches_shared_stream(cache.etcd_backups.changes(), move |backup: Arc<EtcdBackup>| {
            let namespace = backup.namespace().unwrap_or_default();
            match (&backup.spec.cluster_name, &backup.spec.karmada_deployment_ref) {
                (Some(cluster), _) => of_cluster(&of_backup, &namespace, cluster),
                (None, Some(_)) => waiting(&of_backup, &namespace),
                (None, None) => Vec::new(),
            }
        })
        .watches_shared_stream(cache.karmada_deployments.changes(), move |plane: Arc<KarmadaDeployment>| {
            let is_for = |restore: &EtcdRestore| restore.spec.is_for_plane(&plane.name_any());
            controller::references(&of_plane.cache.etcd_restores.list(&plane.namespace().unwrap_or_default(), is_for))
        })
        .watches_shared_stream(cache.machines.changes(), move |machine: Arc<Machine>| {
            of_cluster(&of_machine, &machine.namespace().unwrap_or_default(), &machine.spec.cluster_name)
        })
        .watches_shared_stream(cache.cluster_deployments.changes(), move |deployment: Arc<ClusterDeployment>| {
            if !decisive.is_news(&of_deployment.cache.cluster_deployments, &deployment) {
                return Vec::new();
            }
            of_cluster(&of_deployment, &deployment.namespace().unwrap_or_default(), &deployment.name_any())
        });
    tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));
}

/// The restores of the same cluster or plane.
fn alike(ctx: &Context, namespace: &str, spec: &EtcdRestoreSpec) -> Vec<Arc<EtcdRestore>> {
    let cache = &ctx.cache.etcd_restores;
    match &spec.cluster_name {
        Some(cluster) => cache.of_cluster(namespace, cluster),
        None => cache.list(namespace, |other| other.spec.karmada_deployment_ref == spec.karmada_deployment_ref),
    }
}

/// What is known of the keys of the backup of a plane, while it is looked at.
async fn keys(ctx: &Context, restore: &EtcdRestore, plane: Option<&KarmadaDeployment>) -> Result<RestoringSeen, Error> {
    match plane.filter(|_| needs_keys(restore)) {
        Some(plane) => key_transfer::seen_in_place(ctx, &pki_owner(plane), &restored_from(restore)).await,
        None => Ok(RestoringSeen::default()),
    }
}

/// What is known of an EtcdRestore.
pub(crate) struct Observation {
    now: Timestamp,
    resumed_at: Option<Timestamp>,
    restore: Arc<EtcdRestore>,
    backup: Option<Arc<EtcdBackup>>,
    storage: Option<Arc<BackupStorage>>,
    safety: Option<Arc<EtcdBackup>>,
    safety_storage: Option<Arc<BackupStorage>>,
    deployment: Option<Arc<ClusterDeployment>>,
    machines: Vec<Arc<Machine>>,
    runs: Vec<Arc<PlaybookRun>>,
    restores: Vec<Arc<EtcdRestore>>,
    plane: Option<Arc<KarmadaDeployment>>,
    keys: RestoringSeen,
    /// An action has written the restore itself.
    has_written: bool,
}

impl Reconcile for Observation {
    type Object = EtcdRestore;
    type Action = Action;

    const LAST: Option<Action> = Some(Action::RemoveFinalizer);

    async fn observe(ctx: &Context, restore: Arc<EtcdRestore>) -> Result<Option<Self>, Error> {
        let (cache, namespace) = (&ctx.cache, restore.namespace().unwrap_or_default());
        let cluster = restore.spec.cluster_name.as_deref().unwrap_or_default();
        let plane = restore.spec.karmada_deployment_ref.as_ref();
        let former = plane.map_or(FormerRef::cluster(cluster), |plane| FormerRef::plane(&plane.name));
        let plane = plane.and_then(|plane| cache.karmada_deployments.get(&namespace, &plane.name));
        let reference = restore.spec.source.backup_ref.as_ref();
        let backup = reference.and_then(|backup| cache.etcd_backups.get(&namespace, &backup.name));
        let storage = storage_of(&restore, backup.as_deref());
        let safety = safety_wanted(&restore, backup.as_deref());
        Ok(Some(Self {
            now: now(),
            resumed_at: ctx.resumed_at(),
            safety: cache.etcd_backups.get(&namespace, &safety_name(&restore)),
            safety_storage: safety.and_then(|(storage, _)| cache.backup_storages.get(&namespace, &storage.name)),
            storage: storage.and_then(|storage| cache.backup_storages.get(&namespace, storage)),
            deployment: cache.cluster_deployments.get(&namespace, cluster),
            machines: cache.machines.formed_by(&namespace, former),
            runs: cache.runs.formed_by(&namespace, former),
            restores: alike(ctx, &namespace, &restore.spec),
            keys: keys(ctx, &restore, plane.as_deref()).await?,
            plane,
            has_written: false,
            backup,
            restore,
        }))
    }

    fn object(&self) -> &EtcdRestore {
        &self.restore
    }

    fn plan(&self) -> PlanOf<Self> {
        plan::etcd_restore::plan(&Observed {
            now: self.now,
            resumed_at: self.resumed_at,
            restore: &self.restore,
            backup: self.backup.as_deref(),
            storage: self.storage.as_deref(),
            safety: self.safety.as_deref(),
            safety_storage: self.safety_storage.as_deref(),
            deployment: self.deployment.as_deref(),
            machines: &refs(&self.machines),
            runs: &refs(&self.runs),
            restores: &refs(&self.restores),
            plane: self.plane.as_deref(),
            keys: &self.keys,
        })
    }

    /// What cannot be decoded is not gone: a restore of a cluster that is not there ends, and one of a backup that is
    /// not there begins without one of what it replaces.
    fn hold(&self, ctx: &Context, _: &PlanOf<Self>) -> Option<(String, StatusOf<Self>)> {
        let (restore, namespace) = (&*self.restore, self.restore.namespace().unwrap_or_default());
        let (backup, safety) = (self.backup.as_deref(), safety_name(restore));
        let source = restore.spec.source.backup_ref.as_ref().map(|backup| backup.name.as_str());
        let wanted = safety_wanted(restore, backup);
        let storages = [storage_of(restore, backup), wanted.as_ref().map(|(storage, _)| storage.name.as_str())];
        let backups = [source, Some(safety.as_str())].into_iter().flatten().map(|name| ("EtcdBackup", name));
        let storages = storages.into_iter().flatten().map(|name| ("BackupStorage", name));
        let needed: Vec<(&str, &str)> = backups.chain(storages).collect();
        let cluster = restore.spec.cluster_name.as_deref();
        let of_cluster = cluster.and_then(|cluster| ctx.cache.hold_of_cluster(&namespace, cluster));
        let plane = restore.spec.karmada_deployment_ref.as_ref();
        let of_plane = plane.and_then(|plane| ctx.cache.hold_of(&namespace, &[("KarmadaDeployment", &plane.name)]));
        let message = of_cluster.or(of_plane).or_else(|| ctx.cache.hold_of(&namespace, &needed))?;
        let old = restore.status.clone().unwrap_or_default();
        let said = if is_over(restore) { old.message.clone() } else { Some(message.clone()) };
        Some((message, EtcdRestoreStatus { message: said, ..old }))
    }

    /// A run that the cache does not show yet would be followed by another one, or be taken for one that is gone, and
    /// what is approved is for what is there now.
    fn must_refresh(&self, plan: &PlanOf<Self>) -> bool {
        let asks_anew = plan.status.phase == Some(RestorePhase::Interrupted)
            && self.restore.status.as_ref().and_then(|status| status.phase) != Some(RestorePhase::Interrupted);
        let hands_over = plan.status.began_at.is_some()
            && self.restore.status.as_ref().is_none_or(|status| status.began_at.is_none());
        !plan.actions.is_empty() || asks_anew || hands_over
    }

    async fn refresh(self, ctx: &Context, _: &PlanOf<Self>) -> Result<Option<Self>, Error> {
        let namespace = self.restore.namespace().unwrap_or_default();
        let live = live::get::<EtcdRestore>(ctx, &namespace, &self.restore.name_any()).await?;
        let Some(restore) = live.filter(|live| live.uid() == self.restore.uid()) else {
            return Ok(None);
        };
        let safety = live::get::<EtcdBackup>(ctx, &namespace, &safety_name(&restore)).await?.map(Arc::new);
        let Some(cluster) = restore.spec.cluster_name.clone() else {
            let plane = match &restore.spec.karmada_deployment_ref {
                Some(plane) => live::get::<KarmadaDeployment>(ctx, &namespace, &plane.name).await?.map(Arc::new),
                None => None,
            };
            let keys = keys(ctx, &restore, plane.as_deref()).await?;
            return Ok(Some(Self { restore: Arc::new(restore), plane, keys, safety, ..self }));
        };
        let runs = live::runs(ctx, &namespace, &cluster).await?;
        let machines = live::machines(ctx, &namespace, &cluster).await?;
        let deployment = live::get::<ClusterDeployment>(ctx, &namespace, &cluster).await?.map(Arc::new);
        Ok(Some(Self { restore: Arc::new(restore), runs, machines, deployment, safety, ..self }))
    }

    async fn execute(&mut self, ctx: &Context, action: &Action) -> Result<(), Error> {
        self.has_written |= matches!(action, Action::AddFinalizer);
        match action {
            Action::AddFinalizer => execute::add_finalizer(ctx, &*self.restore, finalizer::RESTORE).await,
            Action::FetchKeys(transfer) => key_transfer::fetch(ctx, transfer).await,
            Action::DropKeyTransfer => match &self.plane {
                Some(plane) => key_transfer::discard(ctx, &pki_owner(plane)).await,
                // It goes with the plane.
                None => Ok(()),
            },
            Action::BackUp(backup) => execute::create_ours(ctx, &**backup).await,
            Action::Begin(run) => execute::create_ours(ctx, &**run).await,
            Action::RemoveFinalizer => execute::remove_finalizer(ctx, &*self.restore, finalizer::RESTORE).await,
        }
    }

    /// Others hold still by the phase: what a cache that is behind shows must not take it back. An action of ours that
    /// has written the object was decided by what the API showed.
    async fn write_status(&self, ctx: &Context, status: &StatusOf<Self>) -> Result<bool, Error> {
        let restore = &*self.restore;
        match self.has_written {
            true => execute::patch_status(ctx, restore, restore.status.as_ref(), status).await,
            false => execute::patch_status_if_unchanged(ctx, restore, restore.status.as_ref(), status).await,
        }
    }

    async fn report(&self, ctx: &Context, plan: &PlanOf<Self>) {
        let types = [condition::COMPLETE, condition::FAILED];
        for transition in transitions(self.restore.conditions(), &plan.status.conditions, &types) {
            ctx.events.transition(&*self.restore, &transition).await;
        }
    }
}
