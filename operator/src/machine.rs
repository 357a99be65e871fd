//! Machine: observes one machine, its Host, its runs and its node; claims and gives back Hosts as planned.

mod actions;
mod hosts;
mod report;

use std::sync::Arc;

use crds::{Cluster, ClusterDeployment, FormerRef, Host, KarmadaDeployment, Machine, MachineStatus, PlaybookRun};
use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use plan::claims::Shares;
use plan::cluster::NodeSeen;
use plan::drain::Drain;
use plan::former::is_former;
use plan::lifecycle::is_provisioned;
use plan::machine::{Action, NodeAnswer, Observed, looks_at_pods};
use tokio::task::JoinSet;

use crate::cache::{Decisive, IndexKey, refs};
use crate::context::Context;
use crate::controller;
use crate::error::Error;
use crate::former::Former;
use crate::live;
use crate::reconcile::{PlanOf, Reconcile, now};
use crate::remote::{self, drain};

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let cache = &ctx.cache;
    let (of_host, of_run, of_deployment, of_plane, of_node) =
        (ctx.clone(), ctx.clone(), ctx.clone(), ctx.clone(), ctx.clone());
    let (decisive, of_planes) = (Decisive::default(), Decisive::default());
    let nodes = ctx.remote.changes().flat_map(move |change| {
        let key = &change.cluster;
        let is_on =
            |machine: &Machine, node: &String| machine.spec.host_ref.as_ref().is_some_and(|on| on.name == *node);
        let mut machines = of_node.cache.machines.of_cluster(&key.namespace, &key.name);
        machines.retain(|machine| change.node.as_ref().is_none_or(|node| is_on(machine, node)));
        stream::iter(controller::references(&machines))
    });
    let controller = controller::new(ctx, &cache.machines)
        .watches_shared_stream(cache.hosts.changes(), move |host: Arc<Host>| concerned(&of_host, &host))
        .watches_shared_stream(cache.runs.changes(), move |run: Arc<PlaybookRun>| {
            let Some(former) = run.spec.former() else { return Vec::new() };
            let mut machines = of_run.cache.machines.formed_by(&run.namespace().unwrap_or_default(), former);
            machines.retain(|machine| {
                machine.spec.host_ref.as_ref().is_some_and(|host| run.spec.hosts.contains(&host.name))
            });
            controller::references(&machines)
        })
        .watches_shared_stream(cache.cluster_deployments.changes(), move |deployment: Arc<ClusterDeployment>| {
            if !decisive.is_news(&of_deployment.cache.cluster_deployments, &deployment) {
                return Vec::new();
            }
            let namespace = deployment.namespace().unwrap_or_default();
            controller::references(&of_deployment.cache.machines.of_cluster(&namespace, &deployment.name_any()))
        })
        .watches_shared_stream(cache.karmada_deployments.changes(), move |plane: Arc<KarmadaDeployment>| {
            if !of_planes.is_news(&of_plane.cache.karmada_deployments, &plane) {
                return Vec::new();
            }
            let (namespace, name) = (plane.namespace().unwrap_or_default(), plane.name_any());
            controller::references(&of_plane.cache.machines.formed_by(&namespace, FormerRef::plane(&name)))
        })
        .reconcile_on(nodes);
    tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));
}

/// The Machines for which it is news how a Host is: who holds it or names it, and all who look for one.
fn concerned(ctx: &Context, host: &Host) -> Vec<ObjectRef<Machine>> {
    let (namespace, machines) = (host.namespace().unwrap_or_default(), &ctx.cache.machines);
    let mut concerned = machines.with(&namespace, &IndexKey::WaitsForHost);
    concerned.extend(machines.with(&namespace, &IndexKey::Host(host.name_any())));
    let holder = host.spec.claim_ref.as_ref();
    concerned.extend(holder.and_then(|claim| machines.get(&namespace, &claim.name)));
    controller::references(&concerned)
}

/// What is known of a Machine.
pub(crate) struct Observation {
    now: Timestamp,
    resumed_at: Option<Timestamp>,
    machine: Arc<Machine>,
    former: Option<Former>,
    machines: Vec<Arc<Machine>>,
    hosts: Vec<Arc<Host>>,
    /// Where it looks for a Host.
    shares: Option<Arc<Shares>>,
    runs: Vec<Arc<PlaybookRun>>,
    nodes: Option<Vec<NodeSeen>>,
    cluster: Option<Arc<Cluster>>,
    node_answer: Option<NodeAnswer>,
    drain: Option<Drain>,
}

impl Observation {
    fn namespace(&self) -> String {
        self.machine.namespace().unwrap_or_default()
    }

    /// Decides by what was observed.
    fn with<T>(&self, decide: impl Fn(&Observed<'_>) -> T) -> T {
        decide(&Observed {
            now: self.now,
            resumed_at: self.resumed_at,
            machine: &self.machine,
            formed: self.former.as_ref().map(Former::formed),
            machines: &refs(&self.machines),
            hosts: &refs(&self.hosts),
            share: self.shares.as_ref().and_then(|shares| shares.share(&self.machine)),
            runs: &refs(&self.runs),
            nodes: self.nodes.as_deref(),
            cluster: self.cluster.as_deref(),
            node_answer: self.node_answer.as_ref(),
            drain: self.drain.as_ref(),
        })
    }
}

impl Reconcile for Observation {
    type Object = Machine;
    type Action = Action;

    const LAST: Option<Action> = Some(Action::RemoveFinalizer);

    async fn observe(ctx: &Context, machine: Arc<Machine>) -> Result<Option<Self>, Error> {
        let namespace = machine.namespace().unwrap_or_default();
        let (cache, former) = (&ctx.cache, machine.spec.former());
        if awaits_first_look(ctx, &machine) {
            return Ok(None);
        }
        let sets = cache.machine_sets.formed_by(&namespace, former);
        let forms = Former::cached(cache, &namespace, former);
        let (hosts, shares) = hosts::look(ctx, &machine);
        let mut observed = Self {
            now: now(),
            resumed_at: ctx.resumed_at(),
            former: forms.filter(|forms| !is_former(&machine, forms.formed(), &refs(&sets))),
            machines: cache.machines.formed_by(&namespace, former),
            hosts,
            shares,
            runs: cache.runs.formed_by(&namespace, former),
            nodes: nodes(ctx, &namespace, &machine),
            cluster: former.deployment().and_then(|cluster| cache.clusters.get(&namespace, cluster)),
            node_answer: None,
            drain: None,
            machine,
        };
        if observed.with(looks_at_pods)
            && let Some(cluster) = observed.machine.spec.former().deployment()
            && let Some(client) = ctx.remote.client(&namespace, cluster)
        {
            observed.drain = Some(drain::look(client, &host_of(&observed.machine)).await);
        }
        Ok(Some(observed))
    }

    fn object(&self) -> &Machine {
        &self.machine
    }

    fn plan(&self) -> PlanOf<Self> {
        self.with(plan::machine::plan)
    }

    fn hold(&self, ctx: &Context, plan: &PlanOf<Self>) -> Option<(String, MachineStatus)> {
        let of_cluster = ctx.cache.hold_of_cluster(&self.namespace(), &self.machine.spec.cluster_name);
        let of_claim = || plan.actions.iter().find_map(|action| hold_of_claim(ctx, action));
        let message = of_cluster.or_else(of_claim)?;
        let status =
            MachineStatus { message: Some(message.clone()), ..self.machine.status.clone().unwrap_or_default() };
        Some((message, status))
    }

    /// A Machine never holds two Hosts and never lets go of one that is in use.
    fn must_refresh(&self, plan: &PlanOf<Self>) -> bool {
        plan.actions.iter().any(Action::is_irrevocable)
    }

    async fn refresh(mut self, ctx: &Context, plan: &PlanOf<Self>) -> Result<Option<Self>, Error> {
        let namespace = self.namespace();
        let Some(machine) = live::get::<Machine>(ctx, &namespace, &self.machine.name_any()).await? else {
            return Ok(None);
        };
        self.machine = Arc::new(machine);
        hosts::read_again(ctx, &self.machine, &plan.actions, &mut self.hosts).await?;
        if self.machine.metadata.deletion_timestamp.is_some() {
            self.runs = live::runs_of(ctx, &namespace, self.machine.spec.former()).await?;
        }
        Ok(Some(self))
    }

    async fn execute(&mut self, ctx: &Context, action: &Action) -> Result<(), Error> {
        let answers = actions::execute(ctx, &self.machine, action).await?;
        if let Some(drain) = &mut self.drain {
            drain.refusals.extend(answers.refusals);
        }
        self.node_answer = answers.node.or(self.node_answer.take());
        Ok(())
    }

    /// What refused evictions, or a Node that was not written, were answered is shown.
    fn conclude(&self, plan: PlanOf<Self>) -> PlanOf<Self> {
        let is_drained = self.drain.as_ref().is_none_or(|drain| drain.refusals.is_empty());
        if is_drained && self.node_answer.is_none() {
            return plan;
        }
        let answered = self.plan();
        PlanOf::<Self> { status: answered.status, next: answered.next, ..plan }
    }

    async fn report(&self, ctx: &Context, plan: &PlanOf<Self>) {
        let (machine, conditions) = (&*self.machine, &plan.status.conditions);
        if plan.actions.contains(&Action::RemoveFinalizer) {
            report::quarantine(ctx, machine, &plan.actions).await;
            report::conditions(ctx, machine, conditions).await;
        } else {
            report::conditions(ctx, machine, conditions).await;
            report::remediation(ctx, machine, conditions).await;
        }
    }
}

/// Whether nobody has looked at the Machine's cluster since the operator started. Until then what its status says of
/// its Node stands: an operator that starts would call all Nodes unknown, and known again a moment later.
fn awaits_first_look(ctx: &Context, machine: &Machine) -> bool {
    let namespace = machine.namespace().unwrap_or_default();
    let Some(cluster) = machine.spec.former().deployment() else { return false };
    let settled = is_provisioned(machine) && machine.metadata.deletion_timestamp.is_none();
    let is_there = || ctx.cache.clusters.get(&namespace, cluster).is_some();
    settled && !ctx.remote.was_looked_at(&remote::Key::new(&namespace, cluster)) && is_there()
}

fn hold_of_claim(ctx: &Context, action: &Action) -> Option<String> {
    let Action::Claim { host, .. } = action else {
        return None;
    };
    ctx.cache.hold_of_claim(host)
}

fn host_of(machine: &Machine) -> String {
    let host = machine.spec.host_ref.as_ref();
    host.map(|host| host.name.clone()).unwrap_or_default()
}

/// The machine's own node, in a list of at most one; `None` while nothing is known of the cluster's nodes, or another
/// cluster answers than the one that its Cluster object has seen; of a plane, which has none.
fn nodes(ctx: &Context, namespace: &str, machine: &Machine) -> Option<Vec<NodeSeen>> {
    let name = machine.spec.former().deployment()?;
    let cluster = ctx.cache.clusters.get(namespace, name);
    let known = cluster.and_then(|cluster| cluster.status.as_ref()?.cluster_uid.clone());
    let found = ctx.remote.cluster_uid(&remote::Key::new(namespace, name));
    if known.zip(found).is_some_and(|(known, found)| known != found) {
        return None;
    }
    let node = ctx.remote.node(namespace, name, &host_of(machine))?;
    Some(node.into_iter().collect())
}

#[cfg(test)]
mod tests;
