//! Addon: observes an Addon, its source and the clusters, freezes revisions, writes a ClusterAddon for each cluster.

pub(crate) mod bundle;
pub(crate) mod content;
mod source;

use std::sync::Arc;

use crds::names::{condition, finalizer};
use crds::{Addon, AddonStatus, Cluster, ClusterAddon, ClusterDeployment, Conditions, ObjectExt, Reason};
use jiff::Timestamp;
use kube::api::ListParams;
use kube::runtime::reflector::ObjectRef;
use plan::addon::{Action, Content, Observed, Problem};
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
    let (of_object, of_addon, of_cluster, of_deployment) = (ctx.clone(), ctx.clone(), ctx.clone(), ctx.clone());
    let decisive = Decisive::default();
    let controller = controller::new(ctx, &cache.addons)
        .watches_shared_stream(cache.cluster_addons.changes(), move |object: Arc<ClusterAddon>| {
            let (namespace, name) = (object.namespace().to_owned(), &object.spec.addon_ref.name);
            let own = beside::<Addon>(&*object, name);
            std::iter::once(own).chain(later(&of_object, &namespace, name)).collect::<Vec<_>>()
        })
        .watches_shared_stream(cache.addons.changes(), move |addon: Arc<Addon>| {
            later(&of_addon, addon.namespace(), addon.name())
        })
        .watches_shared_stream(cache.clusters.changes(), move |cluster: Arc<Cluster>| {
            all(&of_cluster, cluster.namespace())
        })
        .watches_shared_stream(cache.cluster_deployments.changes(), move |deployment: Arc<ClusterDeployment>| {
            match decisive.is_news(&of_deployment.cache.cluster_deployments, &deployment) {
                true => all(&of_deployment, deployment.namespace()),
                false => Vec::new(),
            }
        });
    tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));
}

fn all(ctx: &Context, namespace: &str) -> Vec<ObjectRef<Addon>> {
    controller::references(&ctx.cache.addons.list(namespace, |_| true))
}

/// The Addons that may wait for the one of this name: to be Ready, or to be gone.
fn later(ctx: &Context, namespace: &str, name: &str) -> Vec<ObjectRef<Addon>> {
    let comes_after =
        |addon: &Addon| addon.spec.wave > 0 || addon.spec.depends_on.iter().any(|earlier| earlier == name);
    let waits = |addon: &Addon| addon.is_deleting() || comes_after(addon);
    controller::references(&ctx.cache.addons.list(namespace, waits))
}

/// What is known of an Addon.
pub(crate) struct Observation {
    now: Timestamp,
    addon: Arc<Addon>,
    addons: Vec<Arc<Addon>>,
    clusters: Vec<Arc<Cluster>>,
    deployments: Vec<Arc<ClusterDeployment>>,
    cluster_addons: Vec<Arc<ClusterAddon>>,
    content: Result<Content, Problem>,
    /// The content as it is kept.
    packed: Vec<u8>,
}

impl Reconcile for Observation {
    type Object = Addon;
    type Action = Action;

    const LAST: Option<Action> = Some(Action::RemoveFinalizer);

    async fn observe(ctx: &Context, addon: Arc<Addon>) -> Result<Option<Self>, Error> {
        if addon.is_deleting() && !addon.has_finalizer(finalizer::ADDON) {
            return Ok(None);
        }
        let (cache, namespace) = (&ctx.cache, addon.namespace().to_owned());
        let (content, packed) = match addon.is_deleting() {
            true => (Err(Problem { reason: Reason::Deleting, message: "is being deleted".into() }), Vec::new()),
            false => source::read(ctx, &addon).await?,
        };
        Ok(Some(Self {
            now: now(),
            addons: cache.addons.list(&namespace, |_| true),
            clusters: cache.clusters.list(&namespace, |_| true),
            deployments: cache.cluster_deployments.list(&namespace, |_| true),
            cluster_addons: cache.cluster_addons.list(&namespace, |_| true),
            content,
            packed,
            addon,
        }))
    }

    fn object(&self) -> &Addon {
        &self.addon
    }

    fn plan(&self) -> PlanOf<Self> {
        plan::addon::plan(&Observed {
            now: self.now,
            addon: &self.addon,
            addons: &refs(&self.addons),
            clusters: &refs(&self.clusters),
            deployments: &refs(&self.deployments),
            cluster_addons: &refs(&self.cluster_addons),
            content: &self.content,
        })
    }

    /// A cluster that cannot be decoded is not one that is gone: its objects stay.
    fn hold(&self, ctx: &Context, plan: &PlanOf<Self>) -> Option<(String, AddonStatus)> {
        let namespace = self.addon.namespace().to_owned();
        let lacks = ctx.cache.lacks::<Cluster>(&namespace)
            || ctx.cache.lacks::<ClusterDeployment>(&namespace)
            || ctx.cache.lacks::<ClusterAddon>(&namespace)
            || ctx.cache.lacks::<Addon>(&namespace);
        if !lacks {
            return None;
        }
        let message = "on hold: an object of the namespace that it is decided by cannot be decoded".to_owned();
        Some((message.clone(), AddonStatus { message: Some(message), ..plan.status.clone() }))
    }

    fn must_refresh(&self, plan: &PlanOf<Self>) -> bool {
        !plan.actions.is_empty()
    }

    /// What goes is decided by what is there now.
    async fn refresh(self, ctx: &Context, plan: &PlanOf<Self>) -> Result<Option<Self>, Error> {
        let namespace = self.addon.namespace().to_owned();
        let live = live::get::<Addon>(ctx, &namespace, self.addon.name()).await?;
        let is_same = |live: &Addon| live.uid() == self.addon.uid() && live.generation() == self.addon.generation();
        let Some(addon) = live.filter(is_same) else {
            // Its change is on its way.
            return Ok(None);
        };
        let all = ListParams::default();
        let removes =
            |action: &Action| matches!(action, Action::Delete(_) | Action::RemoveFinalizer | Action::Forget(_));
        if !plan.actions.iter().any(removes) {
            return Ok(Some(Self { addon: Arc::new(addon), ..self }));
        }
        Ok(Some(Self {
            addon: Arc::new(addon),
            clusters: live::list::<Cluster>(ctx, &namespace, &all, |_| true).await?,
            deployments: live::list::<ClusterDeployment>(ctx, &namespace, &all, |_| true).await?,
            cluster_addons: live::list::<ClusterAddon>(ctx, &namespace, &all, |_| true).await?,
            ..self
        }))
    }

    async fn execute(&mut self, ctx: &Context, action: &Action) -> Result<(), Error> {
        let addon = &*self.addon;
        match action {
            Action::AddFinalizer => execute::add_finalizer(ctx, addon, finalizer::ADDON).await,
            Action::RemoveFinalizer => execute::remove_finalizer(ctx, addon, finalizer::ADDON).await,
            Action::Keep(revision) => content::keep(ctx, addon, revision, &self.packed).await,
            Action::Forget(revision) => content::forget(ctx, addon, revision).await,
            Action::Apply(object) => execute::apply(ctx, &**object).await.map(drop),
            Action::Delete(object) => execute::delete(ctx, &**object, None).await,
        }
    }

    async fn report(&self, ctx: &Context, plan: &PlanOf<Self>) {
        for transition in transitions(self.addon.conditions(), &plan.status.conditions, &[condition::READY]) {
            ctx.events.transition(&*self.addon, &transition).await;
        }
    }
}

/// The ClusterAddons of an Addon.
pub(crate) fn objects_of(ctx: &Context, namespace: &str, addon: &str) -> Vec<Arc<ClusterAddon>> {
    ctx.cache.cluster_addons.with(namespace, &IndexKey::Addon(addon.to_owned()))
}

#[cfg(test)]
mod tests;
