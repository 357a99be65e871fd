//! Cluster: looks at a cluster through its API and says what it sees.

mod actions;
mod contact;

use std::sync::Arc;

use crds::names::finalizer;
use crds::{Cluster, ClusterDeployment, ClusterStatus, Host, KarmadaDeployment, Machine, PlaybookRun, Reason};
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::ListParams;
use kube::runtime::reflector::ObjectRef;
use plan::cluster::{Action, Contact, Observed};
use plan::karmada_membership::membership;
use rand::Rng;
use tokio::task::JoinSet;

use crate::cache::IndexKey;
use crate::context::Context;
use crate::controller::{self, beside};
use crate::error::Error;
use crate::execute;
use crate::live;
use crate::reconcile::{PlanOf, Reconcile};
use crate::remote::Key;

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let of_machine = |machine: Arc<Machine>| Some(beside(&*machine, machine.spec.former().deployment()?));
    // A run that ended may have made the API answer.
    let of_run = |run: Arc<PlaybookRun>| {
        let ended = run.status.as_ref().and_then(|status| status.phase).is_some_and(|phase| phase.is_final());
        let cluster = run.spec.former()?.deployment().filter(|_| ended)?;
        Some(beside(&*run, cluster))
    };
    let of_change =
        |change: crate::remote::Change| ObjectRef::new(&change.cluster.name).within(&change.cluster.namespace);
    // What it remembers of machines that were forgotten.
    let of_deployment = |deployment: Arc<ClusterDeployment>| {
        let remembers = deployment.status.as_ref().is_some_and(|status| !status.forgotten.is_empty());
        remembers.then(|| beside(&*deployment, &deployment.name_any()))
    };
    let of_plane = {
        let ctx = ctx.clone();
        move |plane: Arc<KarmadaDeployment>| out_of_step(&ctx, plane.namespace().unwrap_or_default().as_str())
    };
    let controller = controller::new(ctx, &ctx.cache.clusters)
        .watches_shared_stream(ctx.cache.karmada_deployments.changes(), of_plane)
        .watches_shared_stream(ctx.cache.cluster_deployments.changes(), of_deployment)
        .watches_shared_stream(ctx.cache.machines.changes(), of_machine)
        .watches_shared_stream(ctx.cache.runs.changes(), of_run)
        .reconcile_on(ctx.remote.changes().map(of_change));
    tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));

    // An object that is gone is not reconciled: its client and its watch end here.
    let (ctx, mut changes, stopped) = (ctx.clone(), ctx.cache.clusters.changes(), ctx.stopped());
    tasks.spawn(async move {
        let forget = async {
            while let Some(cluster) = changes.next().await {
                let key = key_of(&cluster);
                if ctx.cache.clusters.get(&key.namespace, &key.name).is_none() {
                    ctx.remote.forget(&key);
                }
            }
        };
        tokio::select! { () = forget => {}, () = stopped => {} }
    });
}

/// What is known of a Cluster.
pub(crate) struct Observation {
    now: Time,
    cluster: Arc<Cluster>,
    key: Key,
    contact: Contact,
    machines: Vec<Arc<Machine>>,
    deployment: Option<Arc<ClusterDeployment>>,
    planes: Vec<Arc<KarmadaDeployment>>,
    /// Hosts of the namespace that are quarantined.
    hosts: Vec<Arc<Host>>,
    resumed_at: Option<Timestamp>,
    chance: f64,
}

impl Reconcile for Observation {
    type Object = Cluster;
    type Action = Action;

    /// What a Node refuses must not hide what was seen.
    const STATUS_FIRST: bool = true;
    const LAST: Option<Action> = Some(Action::RemoveFinalizer);

    async fn observe(ctx: &Context, cluster: Arc<Cluster>) -> Result<Option<Self>, Error> {
        let key = key_of(&cluster);
        let contact = match cluster.metadata.deletion_timestamp.is_some() {
            true if !is_held(&cluster) => {
                ctx.remote.forget(&key);
                return Ok(None);
            }
            true => Contact::Refused { reason: Reason::Deleting, message: "it is being deleted".to_owned() },
            false => contact::make(ctx, &cluster, &key).await?,
        };
        let (cache, namespace, name) = (&ctx.cache, &key.namespace, &key.name);
        Ok(Some(Self {
            contact,
            planes: cache.karmada_deployments.list(namespace, |_| true),
            machines: cache.machines.of_cluster(namespace, name),
            deployment: cache.cluster_deployments.get(namespace, name),
            hosts: cache.hosts.with(namespace, &IndexKey::Quarantined),
            resumed_at: ctx.resumed_at(),
            now: Time(Timestamp::now()),
            chance: rand::rng().random(),
            cluster,
            key,
        }))
    }

    fn object(&self) -> &Cluster {
        &self.cluster
    }

    fn plan(&self) -> PlanOf<Self> {
        plan::cluster::plan(&Observed {
            cluster: &self.cluster,
            contact: self.contact.clone(),
            machines: &self.machines,
            deployment: self.deployment.as_deref(),
            hosts: &self.hosts,
            planes: &self.planes,
            resumed_at: self.resumed_at,
            now: self.now.clone(),
            chance: self.chance,
        })
    }

    /// What is seen through its API is shown all the same.
    fn hold(&self, ctx: &Context, plan: &PlanOf<Self>) -> Option<(String, ClusterStatus)> {
        let message = ctx.cache.hold_of_cluster(&self.key.namespace, &self.key.name)?;
        Some((message, plan.status.clone()))
    }

    fn must_refresh(&self, plan: &PlanOf<Self>) -> bool {
        let deletes = |action: &Action| matches!(action, Action::DeleteOrphan(_) | Action::RemoveFinalizer);
        plan.actions.iter().any(deletes)
    }

    async fn refresh(self, ctx: &Context, plan: &PlanOf<Self>) -> Result<Option<Self>, Error> {
        let (namespace, name) = (&self.key.namespace, &self.key.name);
        let planes = match plan.actions.contains(&Action::RemoveFinalizer) {
            // One that cannot be decoded may have it as a member.
            true => match live::list(ctx, namespace, &ListParams::default(), |_| true).await {
                // The kind is not installed any more.
                Err(error) if error.is_not_found() => Vec::new(),
                planes => planes?,
            },
            false => self.planes,
        };
        let mut hosts = live::hosts(ctx, namespace, name).await?;
        hosts.retain(|host| is_quarantined(host));
        Ok(Some(Self {
            machines: live::machines(ctx, namespace, name).await?,
            deployment: live::get(ctx, namespace, name).await?.map(Arc::new),
            hosts,
            planes,
            ..self
        }))
    }

    async fn execute(&mut self, ctx: &Context, action: &Action) -> Result<(), Error> {
        match action {
            Action::AddFinalizer => execute::add_finalizer(ctx, &*self.cluster, finalizer::CLUSTER).await,
            Action::RemoveFinalizer => execute::remove_finalizer(ctx, &*self.cluster, finalizer::CLUSTER).await,
            action => actions::execute(ctx, &self.cluster, &self.key, action).await,
        }
    }
}

/// Clusters of a namespace that are held though they are members of no plane, or the other way round.
fn out_of_step(ctx: &Context, namespace: &str) -> Vec<ObjectRef<Cluster>> {
    let planes = ctx.cache.karmada_deployments.list(namespace, |_| true);
    let is_it = |cluster: &Cluster| {
        let name = cluster.name_any();
        let is_imported = ctx.cache.cluster_deployments.get(namespace, &name).is_none();
        let is_member = membership(planes.iter().map(|plane| &**plane), namespace, &name).is_some();
        (is_member && is_imported) != is_held(cluster)
    };
    controller::references(&ctx.cache.clusters.list(namespace, is_it))
}

fn is_held(cluster: &Cluster) -> bool {
    cluster.finalizers().iter().any(|held| held == finalizer::CLUSTER)
}

fn is_quarantined(host: &Host) -> bool {
    host.spec.quarantine.is_some()
}

fn key_of(cluster: &Cluster) -> Key {
    Key::new(&cluster.namespace().unwrap_or_default(), &cluster.name_any())
}
