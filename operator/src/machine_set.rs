//! MachineSet: observes a set and its Machines, makes and deletes Machines as planned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::Reason;
use crds::names::{annotation, condition, label};
use crds::{
    ClusterDeployment, Conditions, FormerRef, Host, HostPool, KarmadaDeployment, Machine, MachineSet, MachineSetStatus,
    PlaybookRun,
};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use plan::host_pool::{is_automatic, pool_name, selector_of_set};
use plan::machine_set::{Action, Observed};
use plan::transitions::transitions;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::cache::{Decisive, IndexKey, refs};
use crate::context::Context;
use crate::controller::{self, beside};
use crate::error::Error;
use crate::former::Former;
use crate::reconcile::{PlanOf, Reconcile, now};
use crate::{execute, live};

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let cache = &ctx.cache;
    let of_machine = |machine: Arc<Machine>| {
        let labelled = machine.labels().get(label::MACHINE_SET).cloned();
        let owners = machine.owner_references().iter();
        let owned = owners.filter(|owner| owner.controller == Some(true) && owner.kind == "MachineSet");
        // Whoever takes the label off does not take the Machine from its set.
        let names: BTreeSet<String> = labelled.into_iter().chain(owned.map(|owner| owner.name.clone())).collect();
        let sets = names.iter().map(|name| beside(&*machine, name));
        sets.collect::<Vec<ObjectRef<MachineSet>>>()
    };
    let (of_host, of_pool, of_deployment, of_plane) = (ctx.clone(), ctx.clone(), ctx.clone(), ctx.clone());
    let (decisive, of_planes) = (Decisive::default(), Decisive::default());
    let controller = controller::new(ctx, &cache.machine_sets)
        .watches_shared_stream(cache.machines.changes(), of_machine)
        .watches_shared_stream(cache.hosts.changes(), move |host: Arc<Host>| {
            let namespace = host.namespace().unwrap_or_default();
            controller::references(&of_host.cache.machine_sets.with(&namespace, &IndexKey::WaitsForHost))
        })
        .watches_shared_stream(cache.host_pools.changes(), move |pool: Arc<HostPool>| {
            let (namespace, name) = (pool.namespace().unwrap_or_default(), pool.name_any());
            let is_lost = is_automatic(&pool) && of_pool.cache.host_pools.get(&namespace, &name).is_none();
            let selects = |set: &MachineSet| selector_of_set(set).is_some_and(|selector| pool_name(&selector) == name);
            let sets = is_lost.then(|| of_pool.cache.machine_sets.list(&namespace, selects));
            controller::references(&sets.unwrap_or_default())
        })
        .watches_shared_stream(cache.cluster_deployments.changes(), move |deployment: Arc<ClusterDeployment>| {
            if !decisive.is_news(&of_deployment.cache.cluster_deployments, &deployment) {
                return Vec::new();
            }
            let namespace = deployment.namespace().unwrap_or_default();
            controller::references(&of_deployment.cache.machine_sets.of_cluster(&namespace, &deployment.name_any()))
        })
        .watches_shared_stream(cache.karmada_deployments.changes(), move |plane: Arc<KarmadaDeployment>| {
            if !of_planes.is_news(&of_plane.cache.karmada_deployments, &plane) {
                return Vec::new();
            }
            let (namespace, name) = (plane.namespace().unwrap_or_default(), plane.name_any());
            controller::references(&of_plane.cache.machine_sets.formed_by(&namespace, FormerRef::plane(&name)))
        });
    tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));
}

/// What is known of a MachineSet.
pub(crate) struct Observation {
    now: Timestamp,
    set: Arc<MachineSet>,
    former: Option<Former>,
    machines: Vec<Arc<Machine>>,
    hosts: Vec<Arc<Host>>,
    has_pool: bool,
    runs: Vec<Arc<PlaybookRun>>,
}

impl Observation {
    fn namespace(&self) -> String {
        self.set.namespace().unwrap_or_default()
    }
}

impl Reconcile for Observation {
    type Object = MachineSet;
    type Action = Action;

    async fn observe(ctx: &Context, set: Arc<MachineSet>) -> Result<Option<Self>, Error> {
        let namespace = set.namespace().unwrap_or_default();
        let (cache, former) = (&ctx.cache, set.spec.former());
        Ok(Some(Self {
            now: now(),
            former: Former::cached(cache, &namespace, former),
            hosts: cache.hosts.list(&namespace, |_| true),
            has_pool: selector_of_set(&set)
                .is_none_or(|selector| cache.host_pools.get(&namespace, &pool_name(&selector)).is_some()),
            runs: cache.runs.formed_by(&namespace, former),
            machines: cache.machines.formed_by(&namespace, former),
            set,
        }))
    }

    fn object(&self) -> &MachineSet {
        &self.set
    }

    fn plan(&self) -> PlanOf<Self> {
        plan::machine_set::plan(&Observed {
            now: self.now,
            set: &self.set,
            formed: self.former.as_ref().map(Former::formed),
            machines: &refs(&self.machines),
            hosts: &refs(&self.hosts),
            has_pool: self.has_pool,
            runs: &refs(&self.runs),
        })
    }

    fn hold(&self, ctx: &Context, _: &PlanOf<Self>) -> Option<(String, MachineSetStatus)> {
        let message = ctx.cache.hold_of_cluster(&self.namespace(), &self.set.spec.cluster_name)?;
        let status = MachineSetStatus { message: Some(message.clone()), ..self.set.status.clone().unwrap_or_default() };
        Some((message, status))
    }

    /// Neither the count nor the Machines are believed from a cache when something is made or deleted for them.
    fn must_refresh(&self, plan: &PlanOf<Self>) -> bool {
        plan.actions.iter().any(|action| !matches!(action, Action::CreateHostPool(_)))
    }

    async fn refresh(mut self, ctx: &Context, plan: &PlanOf<Self>) -> Result<Option<Self>, Error> {
        let namespace = self.namespace();
        let Some(set) = live::get::<MachineSet>(ctx, &namespace, &self.set.name_any()).await? else {
            return Ok(None);
        };
        self.set = Arc::new(set);
        let former = self.set.spec.former();
        self.machines = live::machines_of(ctx, &namespace, former).await?;
        let any = |wanted: fn(&Action) -> bool| plan.actions.iter().any(wanted);
        // A join that has begun anew since is not given up.
        if any(|action| matches!(action, Action::QuarantineHost { .. })) {
            self.runs = live::runs_of(ctx, &namespace, former).await?;
        }
        // Whether a healthy machine may go is said there.
        if any(|action| matches!(action, Action::DeleteMachine(_))) {
            self.former = Former::live(ctx, &namespace, former).await?;
        }
        Ok(Some(self))
    }

    async fn execute(&mut self, ctx: &Context, action: &Action) -> Result<(), Error> {
        execute(ctx, &self.set, action).await
    }

    async fn report(&self, ctx: &Context, plan: &PlanOf<Self>) {
        let types = [condition::HOSTS_AVAILABLE];
        for transition in transitions(self.set.conditions(), &plan.status.conditions, &types) {
            if transition.warning {
                ctx.events.transition(&*self.set, &transition).await;
            }
        }
    }
}

/// The merge patch of a map that is to be another one.
fn replace<T: Serialize>(old: &BTreeMap<String, T>, new: &BTreeMap<String, T>) -> BTreeMap<String, Value> {
    let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    gone.chain(new.iter().map(|(key, value)| (key.clone(), json!(value)))).collect()
}

async fn execute(ctx: &Context, set: &MachineSet, action: &Action) -> Result<(), Error> {
    match action {
        Action::Adopt(machine) => {
            let metadata = &machine.metadata;
            let patch = json!({ "metadata": {
                "labels": metadata.labels,
                "annotations": metadata.annotations,
                "finalizers": metadata.finalizers,
                "ownerReferences": metadata.owner_references,
            } });
            drop(execute::patch_if_unchanged(ctx, &**machine, patch).await?);
            Ok(())
        }
        Action::QuarantineHost { machine, host, quarantine } => {
            let patch = json!({ "metadata": { "annotations": { annotation::QUARANTINE: quarantine } } });
            drop(execute::patch_if_unchanged(ctx, &**machine, patch).await?);
            let note = format!(
                "Host {host} of Machine {} is put aside, another one is taken: {quarantine}",
                machine.name_any()
            );
            ctx.events.warning(set, Reason::HostQuarantined, &note).await;
            Ok(())
        }
        Action::CreateHostPool(pool) => execute::create_ours(ctx, &**pool).await,
        Action::CreateMachine(machine) => execute::create_ours(ctx, &**machine).await,
        Action::DeleteMachine(machine) => execute::delete(ctx, &**machine, None).await,
        Action::SetNodeMetadata { machine, labels, annotations, taints } => {
            let patch = json!({ "spec": {
                "labels": replace(&machine.spec.labels, labels),
                "annotations": replace(&machine.spec.annotations, annotations),
                "taints": taints,
            } });
            execute::patch_if_unchanged(ctx, &**machine, patch).await.map(drop)
        }
        Action::SetVersion { machine, version } => {
            let patch = json!({ "spec": { "kubernetesVersion": version } });
            execute::patch_if_unchanged(ctx, &**machine, patch).await.map(drop)
        }
    }
}

#[cfg(test)]
mod tests;
