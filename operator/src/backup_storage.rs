//! BackupStorage: has it looked at by a Job, and shows what that found.

use std::sync::Arc;

use crds::names::{condition, label};
use crds::{BackupStorage, Conditions};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::ResourceExt;
use plan::backup_storage::{Action, Observed, is_due};
use plan::inputs::StorageSeen;
use plan::transitions::transitions;
use tokio::task::JoinSet;

use crate::context::Context;
use crate::controller;
use crate::error::Error;
use crate::reconcile::{PlanOf, Reconcile, now};
use crate::{execute, executor_job, live};

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let controller = controller::new(ctx, &ctx.cache.backup_storages);
    tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));
}

/// What is known of a BackupStorage. Its references, Jobs and Pods are read when it is due, and not watched: there are
/// few storages, and each is looked at every few minutes.
pub(crate) struct Observation {
    now: Timestamp,
    storage: Arc<BackupStorage>,
    image: String,
    seen: StorageSeen,
    jobs: Vec<Job>,
    pods: Vec<Pod>,
}

impl Reconcile for Observation {
    type Object = BackupStorage;
    type Action = Action;

    /// What a Job found is kept before the Job goes.
    const STATUS_FIRST: bool = true;

    async fn observe(ctx: &Context, storage: Arc<BackupStorage>) -> Result<Option<Self>, Error> {
        if storage.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let now = now();
        let (mut seen, mut jobs, mut pods) = (StorageSeen::default(), Vec::new(), Vec::new());
        if is_due(&storage, now) {
            seen = look_up(ctx, &storage).await?;
            let (namespace, name) = (storage.namespace().unwrap_or_default(), storage.name_any());
            jobs = live::labelled(ctx, &namespace, label::STORAGE, &name).await?;
            pods = live::labelled(ctx, &namespace, label::STORAGE, &name).await?;
        }
        Ok(Some(Self { now, image: ctx.settings.executor_image.clone(), seen, jobs, pods, storage }))
    }

    fn object(&self) -> &BackupStorage {
        &self.storage
    }

    fn plan(&self) -> PlanOf<Self> {
        plan::backup_storage::plan(&Observed {
            now: self.now,
            storage: &self.storage,
            seen: &self.seen,
            image: &self.image,
            jobs: &self.jobs,
            pods: &self.pods,
        })
    }

    async fn execute(&mut self, ctx: &Context, action: &Action) -> Result<(), Error> {
        match action {
            Action::Look(job) => executor_job::create(ctx, job).await,
            Action::Forget(job) => execute::delete(ctx, &**job, None).await,
        }
    }

    async fn report(&self, ctx: &Context, plan: &PlanOf<Self>) {
        let types = [condition::REACHABLE];
        for transition in transitions(self.storage.conditions(), &plan.status.conditions, &types) {
            ctx.events.transition(&*self.storage, &transition).await;
        }
    }
}

/// What the references of a storage lead to.
pub(crate) async fn look_up(ctx: &Context, storage: &BackupStorage) -> Result<StorageSeen, Error> {
    let namespace = storage.namespace().unwrap_or_default();
    let Some(s3) = &storage.spec.s3 else {
        return Ok(StorageSeen::default());
    };
    let authorities = match &s3.ca_ref {
        Some(reference) => live::get::<ConfigMap>(ctx, &namespace, &reference.name).await?,
        None => None,
    };
    Ok(StorageSeen { credentials: live::get::<Secret>(ctx, &namespace, &s3.credentials_ref.name).await?, authorities })
}
