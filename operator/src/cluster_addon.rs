//! ClusterAddon: looks at the objects of an Addon on one cluster, applies them, and removes what is wanted no more.

mod charts;
mod look;
pub(crate) mod news;
mod release;
mod wanted;

use std::sync::Arc;

use crds::addon::AddonDeletionPolicy;
use crds::names::{ADDON_FIELD_MANAGER, condition, finalizer};
use crds::{Addon, Cluster, ClusterAddon, ClusterAddonStatus, Conditions, ObjectExt};
use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::runtime::reflector::ObjectRef;
use plan::cluster_addon::chart::ChartSeen;
use plan::cluster_addon::{Action, Contact, Observed, State, Wanted};
use plan::transitions::transitions;
use tokio::task::JoinSet;

use crate::addon::objects_of;
use crate::cache::refs;
use crate::context::Context;
use crate::controller;
use crate::error::Error;
use crate::objects::{Failure, Objects, Server};
use crate::reconcile::{PlanOf, Reconcile, now};
use crate::remote::Key;
use crate::{execute, live};
use news::News;
use wanted::wanted;

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let cache = &ctx.cache;
    let (of_addon, of_cluster, of_change, news) = (ctx.clone(), ctx.clone(), ctx.clone(), News::default());
    // A Node is none of its business.
    let contact = ctx.remote.changes().filter(|change| std::future::ready(change.node.is_none()));
    let contact = contact.flat_map(move |change| {
        stream::iter(of_cluster_named(&of_change, &change.cluster.namespace, &change.cluster.name))
    });
    let controller = controller::new(ctx, &cache.cluster_addons)
        .watches_shared_stream(cache.addons.changes(), move |addon: Arc<Addon>| {
            controller::references(&objects_of(&of_addon, addon.namespace(), addon.name()))
        })
        .watches_shared_stream(cache.clusters.changes(), move |cluster: Arc<Cluster>| {
            let (namespace, name) = (cluster.namespace().to_owned(), cluster.name().to_owned());
            let is_there = of_cluster.cache.clusters.get(&namespace, &name).is_some();
            match news.is_news(&cluster, is_there) {
                true => of_cluster_named(&of_cluster, &namespace, &name),
                false => Vec::new(),
            }
        })
        .reconcile_on(contact);
    tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));
}

fn of_cluster_named(ctx: &Context, namespace: &str, cluster: &str) -> Vec<ObjectRef<ClusterAddon>> {
    controller::references(&ctx.cache.cluster_addons.of_cluster(namespace, cluster))
}

/// What is known of a ClusterAddon.
pub(crate) struct Observation {
    now: Timestamp,
    object: Arc<ClusterAddon>,
    addon: Option<Arc<Addon>>,
    cluster: Option<Arc<Cluster>>,
    others: Vec<Arc<ClusterAddon>>,
    wanted: Wanted,
    contact: Contact,
    chart: ChartSeen,
    /// How the objects are written; there while there is contact.
    objects: Option<Objects>,
}

impl Observation {
    /// How a document's object is, now that something was done about it.
    fn see(&mut self, index: usize, state: State) {
        if let Contact::Made(seen) = &mut self.contact
            && let Some(document) = seen.documents.get_mut(index)
        {
            document.state = state;
        }
    }
}

impl Reconcile for Observation {
    type Object = ClusterAddon;
    type Action = Action;

    /// What was applied is seen in the answers.
    const PLANS_AGAIN: bool = true;
    const LAST: Option<Action> = Some(Action::RemoveFinalizer);

    async fn observe(ctx: &Context, object: Arc<ClusterAddon>) -> Result<Option<Self>, Error> {
        if object.is_deleting() && !object.has_finalizer(finalizer::CLUSTER_ADDON) {
            return Ok(None);
        }
        let (cache, namespace) = (&ctx.cache, object.namespace().to_owned());
        let name = object.spec.cluster_ref.name.clone();
        let addon = cache.addons.get(&namespace, &object.spec.addon_ref.name);
        let cluster = cache.clusters.get(&namespace, &name);
        let deployment = cache.cluster_deployments.get(&namespace, &name);
        let mut others = cache.cluster_addons.of_cluster(&namespace, &name);
        others.retain(|other| other.name() != object.name());
        let wanted = match (&addon, &cluster) {
            (Some(addon), Some(cluster)) => wanted(ctx, &object, addon, cluster, deployment.as_deref()).await?,
            _ => Wanted::Nothing,
        };
        let needs_contact = match object.is_deleting() {
            true => object.spec.deletion_policy == AddonDeletionPolicy::Delete,
            false => matches!(wanted, Wanted::Documents(_) | Wanted::Chart(_)),
        };
        let key = Key::new(&namespace, &name);
        let client = ctx.remote.client(&namespace, &name).filter(|_| needs_contact && cluster.is_some());
        let objects =
            client.map(|client| Objects::new(client, Server::Cluster(key), ctx.kinds.clone(), ADDON_FIELD_MANAGER));
        let has_release = object.status.as_ref().is_some_and(|status| status.release.is_some());
        let chart = match (&cluster, matches!(wanted, Wanted::Chart(_)) || has_release) {
            (Some(cluster), true) if objects.is_some() => charts::seen(ctx, &object, addon.as_deref(), cluster).await?,
            _ => ChartSeen::default(),
        };
        let contact = match &objects {
            None => Contact::NotMade,
            Some(objects) => look::look(objects, &object, &wanted).await,
        };
        Ok(Some(Self { now: now(), object, addon, cluster, others, wanted, contact, chart, objects }))
    }

    fn object(&self) -> &ClusterAddon {
        &self.object
    }

    fn plan(&self) -> PlanOf<Self> {
        plan::cluster_addon::plan(&Observed {
            now: self.now,
            object: &self.object,
            addon: self.addon.as_deref(),
            cluster: self.cluster.as_deref(),
            others: &refs(&self.others),
            wanted: &self.wanted,
            contact: &self.contact,
            chart: &self.chart,
        })
    }

    /// A Cluster that cannot be decoded is not one that is gone.
    fn hold(&self, ctx: &Context, plan: &PlanOf<Self>) -> Option<(String, ClusterAddonStatus)> {
        let spec = &self.object.spec;
        let needed = [("Addon", spec.addon_ref.name.as_str()), ("Cluster", spec.cluster_ref.name.as_str())];
        let message = ctx.cache.hold_of(self.object.namespace(), &needed)?;
        let old = self.object.status.clone().unwrap_or_else(|| plan.status.clone());
        Some((message.clone(), ClusterAddonStatus { message: Some(message), ..old }))
    }

    fn must_refresh(&self, plan: &PlanOf<Self>) -> bool {
        !plan.actions.is_empty()
    }

    /// What was seen on the cluster was read just now; that it is still wanted there is asked again.
    async fn refresh(self, ctx: &Context, _: &PlanOf<Self>) -> Result<Option<Self>, Error> {
        let namespace = self.object.namespace().to_owned();
        let object = live::get::<ClusterAddon>(ctx, &namespace, self.object.name()).await?;
        let addon = live::get::<Addon>(ctx, &namespace, &self.object.spec.addon_ref.name).await?;
        let version = |object: &ClusterAddon| (object.metadata.uid.clone(), object.metadata.resource_version.clone());
        let of_addon = |addon: &Addon| (addon.metadata.uid.clone(), addon.metadata.generation, addon.is_deleting());
        let is_same = object.as_ref().map(version) == Some(version(&self.object))
            && addon.as_ref().map(of_addon) == self.addon.as_deref().map(of_addon);
        // Its change is on its way.
        Ok(is_same.then_some(self))
    }

    async fn execute(&mut self, ctx: &Context, action: &Action) -> Result<(), Error> {
        match action {
            Action::AddFinalizer => execute::add_finalizer(ctx, &*self.object, finalizer::CLUSTER_ADDON).await,
            Action::RemoveFinalizer => execute::remove_finalizer(ctx, &*self.object, finalizer::CLUSTER_ADDON).await,
            Action::Record(inventory) => {
                let old = self.object.status.clone();
                let status = ClusterAddonStatus { inventory: inventory.clone(), ..old.clone().unwrap_or_default() };
                execute::patch_status(ctx, &*self.object, old.as_ref(), &status).await.map(drop)
            }
            Action::RecordRelease(release) => {
                let old = self.object.status.clone();
                let status =
                    ClusterAddonStatus { release: Some((**release).clone()), ..old.clone().unwrap_or_default() };
                execute::patch_status(ctx, &*self.object, old.as_ref(), &status).await.map(drop)
            }
            Action::Run(operation) => charts::run(ctx, operation).await,
            Action::DropInputs(name) => charts::drop_inputs(ctx, &self.object, name).await,
            Action::Adopt { index, object, patch } => {
                let (Some(objects), Wanted::Documents(prepared)) = (&self.objects, &self.wanted) else { return Ok(()) };
                let Some(document) = prepared.documents.get(*index) else { return Ok(()) };
                let lost = |why: String| Failure::lost(&format!("adopt {object}"), why);
                let state = match objects.adopt(object, patch).await {
                    Ok(()) => look::again(objects, document, object).await.map_err(lost)?,
                    Err(Failure::Lost(why)) => return Err(lost(why)),
                    Err(failure) => State::Refused(failure.to_string()),
                };
                self.see(*index, state);
                Ok(())
            }
            Action::Apply { index, object, manifest, force } => {
                let Some(objects) = &self.objects else { return Ok(()) };
                let state = objects.apply(object, manifest, *force).await?;
                self.see(*index, state);
                Ok(())
            }
            Action::Delete(deletion) => {
                let Some(objects) = &self.objects else { return Ok(()) };
                let why = match objects.delete(deletion).await {
                    Ok(()) => return Ok(()),
                    Err(Failure::Lost(why)) => return Err(Failure::lost(&format!("delete {}", deletion.object), why)),
                    Err(failure) => failure.to_string(),
                };
                if let Contact::Made(seen) = &mut self.contact {
                    let mut leftovers = seen.leftovers.iter_mut();
                    if let Some(leftover) = leftovers.find(|leftover| leftover.object.is_same(&deletion.object)) {
                        leftover.refused = Some(why);
                    }
                }
                Ok(())
            }
        }
    }

    async fn report(&self, ctx: &Context, plan: &PlanOf<Self>) {
        for transition in transitions(self.object.conditions(), &plan.status.conditions, &[condition::READY]) {
            ctx.events.transition(&*self.object, &transition).await;
        }
    }
}

#[cfg(test)]
mod tests;
