//! The machines of a plane with mode `Binary`: what belongs to them, from the caches, or from the API itself where
//! something cannot be undone; and what is done about them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crds::names::{plane_control_plane_set, plane_etcd_set};
use crds::{ClusterDeployment, FormerRef, Host, KarmadaDeployment, Machine, MachineSet, ObjectExt, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use plan::karmada_deployment::machines::{Act, secret_files};
use plan::karmada_deployment::{HostFacts, MachinesSeen, Seats, seats};
use serde_json::json;

use super::material;
use crate::cache::refs;
use crate::cluster_deployment::{adopt, apply_set, force_remove};
use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::pki::material::Data;
use crate::reconcile::now;
use crate::{execute, live};

/// Objects that belong to the machines of a plane, or may; nothing of a plane in Pods.
#[derive(Default)]
pub(super) struct Belongings {
    resumed_at: Option<Timestamp>,
    sets: Vec<Arc<MachineSet>>,
    machines: Vec<Arc<Machine>>,
    hosts: Vec<Arc<Host>>,
    runs: Vec<Arc<PlaybookRun>>,
    deployments: Vec<Arc<ClusterDeployment>>,
}

impl Belongings {
    /// As the caches show them, with the runs that hold the lock and that they do not show: only one that is gone lets
    /// go of it unheard.
    pub async fn cached(ctx: &Context, object: &KarmadaDeployment) -> Result<Self, Error> {
        if object.spec.binary.is_none() {
            return Ok(Self::default());
        }
        let (cache, namespace, plane) = (&ctx.cache, object.namespace(), FormerRef::plane(object.name()));
        let mut found = Self {
            resumed_at: ctx.resumed_at(),
            sets: [cache.machine_sets.formed_by(namespace, plane), namesakes(ctx, object)].concat(),
            machines: cache.machines.formed_by(namespace, plane),
            hosts: cache.hosts.list(namespace, |_| true),
            runs: cache.runs.formed_by(namespace, plane),
            deployments: cache.cluster_deployments.everywhere(),
        };
        for held in object.status.iter().flat_map(|status| &status.operations) {
            if found.runs.iter().any(|run| run.name() == held.run) {
                continue;
            }
            let run = live::get::<PlaybookRun>(ctx, namespace, &held.run).await?;
            found.runs.extend(run.filter(|run| run.spec.former() == Some(plane)).map(Arc::new));
        }
        Ok(found)
    }

    /// The same, from the API; Hosts that no machine of the plane holds as the cache shows them.
    pub async fn live(self, ctx: &Context, object: &KarmadaDeployment) -> Result<Self, Error> {
        if object.spec.binary.is_none() {
            return Ok(self);
        }
        let (namespace, plane) = (object.namespace(), FormerRef::plane(object.name()));
        let machines = live::machines_of(ctx, namespace, plane).await?;
        Ok(Self {
            sets: [live::machine_sets_of(ctx, namespace, plane).await?, namesakes(ctx, object)].concat(),
            hosts: live_hosts(ctx, object, &machines).await?,
            machines,
            runs: live::runs_of(ctx, namespace, plane).await?,
            ..self
        })
    }

    /// As the planner looks at them.
    pub fn look<T>(&self, with: impl FnOnce(MachinesSeen<'_>) -> T) -> T {
        with(MachinesSeen {
            resumed_at: self.resumed_at,
            sets: &refs(&self.sets),
            machines: &refs(&self.machines),
            hosts: &refs(&self.hosts),
            runs: &refs(&self.runs),
            deployments: &refs(&self.deployments),
        })
    }

    /// The seats of the plane.
    pub fn seats(&self, object: &KarmadaDeployment) -> Seats {
        self.look(|seen| seats(object, &seen))
    }
}

/// MachineSets of others that have a name which the plane needs.
fn namesakes(ctx: &Context, object: &KarmadaDeployment) -> Vec<Arc<MachineSet>> {
    let (namespace, name) = (object.namespace(), object.name());
    let needed = [plane_control_plane_set(name), plane_etcd_set(name)];
    let named = needed.into_iter().filter_map(|name| ctx.cache.machine_sets.get(namespace, &name));
    named.filter(|set| set.spec.former() != FormerRef::plane(name)).collect()
}

/// The Hosts that the plane's Machines hold or name, and those that are quarantined, from the API; all others, which
/// nothing is done to, as the cache shows them.
async fn live_hosts(
    ctx: &Context,
    object: &KarmadaDeployment,
    machines: &[Arc<Machine>],
) -> Result<Vec<Arc<Host>>, Error> {
    let (namespace, plane) = (object.namespace(), object.name());
    let mut hosts = ctx.cache.hosts.list(namespace, |_| true);
    let uids: BTreeSet<&str> = machines.iter().map(|machine| machine.uid()).collect();
    let named = machines.iter().filter_map(|machine| Some(machine.spec.host_ref.as_ref()?.name.clone()));
    let is_in_question = |host: &&Arc<Host>| {
        let holder = host.spec.claim_ref.as_ref().map(|claim| claim.uid.as_str());
        host.spec.quarantine.is_some() || holder.is_some_and(|holder| uids.contains(holder))
    };
    let in_question = hosts.iter().filter(is_in_question).map(|host| host.name().to_owned());
    let names: BTreeSet<String> = named.chain(in_question).collect();
    let live: Vec<Arc<Host>> =
        live::named(ctx, namespace, &names, |object| ctx.cache.concerns(object, namespace, plane)).await?;
    hosts.retain(|host| !names.contains(host.name()));
    hosts.extend(live);
    hosts.sort_by(|one, other| one.name().cmp(other.name()));
    Ok(hosts)
}

/// Does one thing about the machines.
pub(super) async fn execute(ctx: &Context, object: &KarmadaDeployment, act: &Act) -> Result<(), Error> {
    match act {
        Act::ApplyMachineSet { name, object: set } => apply_set(ctx, object.namespace(), name, set).await,
        Act::DeleteMachineSet(set) => execute::delete(ctx, &**set, None).await,
        Act::DeleteMachine(machine) => execute::delete(ctx, &**machine, None).await,
        Act::ForceRemoveMachine(machine) => force_remove(ctx, machine, None).await,
        Act::CreateRun(run) => execute::create_ours(ctx, &**run).await,
        Act::CancelRun(run) => execute::ask_run(ctx, run, "cancel", json!({ "cancel": true })).await,
        Act::HoldRun { run, paused } => {
            let verb = if *paused { "pause" } else { "let go on" };
            execute::ask_run(ctx, run, verb, json!({ "paused": paused })).await
        }
        Act::DeleteRun(run) => execute::delete(ctx, &**run, None).await,
        Act::Adopt(adoption) => adopt(ctx, adoption).await,
        Act::MarkFenced(host) => {
            let patch = json!({ "spec": { "quarantine": { "fence": { "fenced": true } } } });
            execute::patch_if_unchanged(ctx, &**host, patch).await.map(drop)
        }
    }
}

/// The secret files of a run that brings a component to machines of the plane.
pub(crate) async fn part_files(ctx: &Context, object: &KarmadaDeployment, run: &PlaybookRun) -> Result<Data, Error> {
    let seats = Belongings::cached(ctx, object).await?.seats(object);
    let facts = HostFacts::of_machines(seats.clone());
    let secrets = material::read(ctx, object, &facts, now()).await?;
    let files = secret_files(object, &secrets.material, &seats, run);
    let missing =
        || std::io::Error::other("a certificate is not issued yet, or a Host carries no machine of the plane");
    let files = files.ok_or_else(missing).doing(|| format!("gather the files of run {}", run.name()))?;
    Ok(files.into_iter().map(|(name, content)| (name, ByteString(content))).collect())
}
