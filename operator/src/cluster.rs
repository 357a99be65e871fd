//! Cluster: looks at a cluster through its API and says what it sees.

mod around;
mod writes;

use std::sync::Arc;

use crds::Reason;
use crds::{Cluster, ClusterDeployment, Machine, PlaybookRun};
use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, ResourceExt};
use plan::cluster::{Access, Contact, Observed, Seen, Step};
use rand::Rng;
use tokio::task::JoinSet;

use crate::context::Context;
use crate::controller::{self, Pass};
use crate::error::{Doing, Error, chain};
use crate::execute;
use crate::kubeconfig::{self, Checked};
use crate::remote::Key;
use crate::remote::probe::{Lost, probe};
use around::Around;

/// Changes of Machines and Nodes that come within this time do not look again: they use what was seen.
const FRESH: SignedDuration = SignedDuration::from_secs(8);

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let of_machine = |machine: Arc<Machine>| {
        let namespace = machine.namespace().unwrap_or_default();
        Some(ObjectRef::new(&machine.spec.cluster_name).within(&namespace))
    };
    // A run that ended may have made the API answer.
    let of_run = |run: Arc<PlaybookRun>| {
        let ended = run
            .status
            .as_ref()
            .and_then(|status| status.phase)
            .is_some_and(|phase| phase.is_final());
        let namespace = run.namespace().unwrap_or_default();
        let cluster = run.spec.cluster_name.as_ref().filter(|_| ended)?;
        Some(ObjectRef::new(cluster).within(&namespace))
    };
    let of_change = |change: crate::remote::Change| {
        ObjectRef::new(&change.cluster.name).within(&change.cluster.namespace)
    };
    // What it remembers of machines that were forgotten.
    let of_deployment = |deployment: Arc<ClusterDeployment>| {
        let namespace = deployment.namespace().unwrap_or_default();
        let remembers = deployment
            .status
            .as_ref()
            .is_some_and(|status| !status.forgotten.is_empty());
        remembers.then(|| ObjectRef::new(&deployment.name_any()).within(&namespace))
    };
    let controller = controller::of(ctx, &ctx.cache.clusters)
        .watches_shared_stream(ctx.cache.cluster_deployments.changes(), of_deployment)
        .watches_shared_stream(ctx.cache.machines.changes(), of_machine)
        .watches_shared_stream(ctx.cache.runs.changes(), of_run)
        .reconcile_on(ctx.remote.changes().map(of_change));
    tasks.spawn(controller::run(ctx.clone(), controller, pass));

    // An object that is gone gets no pass: its client and its watch end here.
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

async fn pass(ctx: Arc<Context>, cluster: Arc<Cluster>) -> Result<Pass, Error> {
    let key = key_of(&cluster);
    if cluster.metadata.deletion_timestamp.is_some() {
        ctx.remote.forget(&key);
        return Ok(Pass::settled());
    }
    let contact = observe(&ctx, &cluster, &key).await?;
    let decide = |around: &Around, contact: Contact| {
        plan::cluster::plan(&Observed {
            cluster: &cluster,
            contact,
            machines: &around.machines,
            deployment: around.deployment.as_deref(),
            hosts: &around.hosts,
            now: Time(Timestamp::now()),
            chance: rand::rng().random(),
        })
    };
    let mut plan = decide(&around::cached(&ctx, &key), contact.clone());
    let hold = ctx.cache.hold_of_cluster(&key.namespace, &key.name);
    if hold.is_some() {
        // What is seen through its API is told all the same.
        plan.steps.clear();
    }
    if plan.steps.iter().any(cannot_be_taken_back) {
        plan = decide(&around::live(&ctx, &key).await?, contact);
    }
    // The status first: what a Node refuses must not hide what was seen.
    let written = execute::patch_status(&ctx, &*cluster, cluster.status.as_ref(), &plan.status).await?;
    for step in &plan.steps {
        writes::execute(&ctx, &cluster, &key, step).await?;
    }
    Ok(Pass::of(&plan, written))
}

fn cannot_be_taken_back(step: &Step) -> bool {
    matches!(step, Step::DeleteOrphan(_))
}

async fn observe(ctx: &Context, cluster: &Cluster, key: &Key) -> Result<Contact, Error> {
    let checked = match kubeconfig_of(ctx, cluster, key).await? {
        Ok(checked) => checked,
        Err(refused) => {
            ctx.remote.forget(key);
            return Ok(refused);
        }
    };
    let access = Access {
        certificates: checked
            .certificates()
            .into_iter()
            .map(|(name, end)| (name, Time(end)))
            .collect(),
        server: checked.server.clone(),
    };
    let now = Timestamp::now();
    let fresh = ctx
        .remote
        .last_probe(key)
        .filter(|(at, _)| now.duration_since(*at) < FRESH);
    let seen = match fresh {
        Some((_, seen)) => Ok(seen),
        None => match ctx.remote.connect(key, &checked) {
            Ok(client) => look(ctx, key, &client, now).await,
            Err(error) => {
                ctx.remote.forget(key);
                return Ok(rejected(cluster, &chain(&error)));
            }
        },
    };
    Ok(match seen {
        Ok(seen) => Contact::Made {
            access,
            seen: Seen {
                nodes: ctx.remote.nodes(&key.namespace, &key.name),
                ..seen
            },
        },
        Err(Lost { reason, message }) => Contact::Lost {
            access,
            reason,
            message,
        },
    })
}

async fn look(ctx: &Context, key: &Key, client: &Client, now: Timestamp) -> Result<Seen, Lost> {
    match probe(client, &ctx.remote.leases(key), now).await {
        Ok((seen, leases)) => {
            ctx.remote.made(key, now, seen.clone(), leases);
            Ok(seen)
        }
        Err(lost) => {
            ctx.remote.lost(key);
            Err(lost)
        }
    }
}

fn rejected(cluster: &Cluster, why: &str) -> Contact {
    let secret = &cluster.spec.kubeconfig_ref.name;
    Contact::Refused {
        reason: Reason::KubeconfigRejected,
        message: format!("KubeconfigRejected: Secret {secret}: {why}"),
    }
}

/// The kubeconfig, checked; or why there is none.
async fn kubeconfig_of(
    ctx: &Context,
    cluster: &Cluster,
    key: &Key,
) -> Result<Result<Checked, Contact>, Error> {
    let name = &cluster.spec.kubeconfig_ref.name;
    let api: Api<Secret> = Api::namespaced(ctx.client.clone(), &key.namespace);
    let secret = api.get_opt(name).await.doing(|| format!("read Secret {name}"))?;
    let refused = |reason, message| Ok(Err(Contact::Refused { reason, message }));
    let Some(secret) = secret else {
        return refused(
            Reason::SecretNotFound,
            format!("waits for Secret {name}, which holds the kubeconfig"),
        );
    };
    let data = secret
        .data
        .as_ref()
        .and_then(|data| data.get(crds::names::KUBECONFIG_KEY));
    let Some(text) = data.and_then(|data| std::str::from_utf8(&data.0).ok()) else {
        return refused(
            Reason::SecretNotFound,
            format!("Secret {name} has no text under the key kubeconfig"),
        );
    };
    match kubeconfig::check(text) {
        Ok(checked) => Ok(Ok(checked)),
        Err(why) => Ok(Err(rejected(cluster, &why.to_string()))),
    }
}

fn key_of(cluster: &Cluster) -> Key {
    Key {
        namespace: cluster.namespace().unwrap_or_default(),
        name: cluster.name_any(),
    }
}
