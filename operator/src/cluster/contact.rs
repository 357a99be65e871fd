//! Contact with a cluster: by its kubeconfig, through its API.

use crds::{Cluster, Reason};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use plan::addon::Problem;
use plan::cluster::{Access, Contact, Seen};

use crate::context::Context;
use crate::error::{Error, chain};
use crate::kubeconfig::check::Checked;
use crate::kubeconfig::from_secret;
use crate::remote::Key;
use crate::remote::etcd_size::{PERIOD_MINUTES, etcd_size};
use crate::remote::probe::{Lost, probe};

/// Changes of Machines and Nodes that come within this time do not look again: they use what was seen.
const FRESH: SignedDuration = SignedDuration::from_secs(8);

/// Looks at the cluster, unless it was looked at a moment ago.
pub(super) async fn make(ctx: &Context, cluster: &Cluster, key: &Key) -> Result<Contact, Error> {
    let contact = contact(ctx, cluster, key).await?;
    ctx.remote.looked(key);
    Ok(contact)
}

async fn contact(ctx: &Context, cluster: &Cluster, key: &Key) -> Result<Contact, Error> {
    let checked = match kubeconfig_of(ctx, cluster, key).await? {
        Ok(checked) => checked,
        Err(refused) => {
            ctx.remote.forget(key);
            return Ok(refused);
        }
    };
    let access = Access {
        certificates: checked.certificates().into_iter().map(|(name, end)| (name, Time(end))).collect(),
        server: checked.server.clone(),
    };
    let now = Timestamp::now();
    let fresh = ctx.remote.last_probe(key).filter(|(at, _)| now.duration_since(*at) < FRESH);
    let seen = match fresh {
        Some((_, seen)) => Ok(seen),
        None => match ctx.remote.connect(key, &checked) {
            Ok(client) => look(ctx, key, &client, now).await,
            Err(error) => {
                ctx.remote.forget(key);
                let secret = &cluster.spec.kubeconfig_ref.name;
                return Ok(rejected(&format!("Secret {secret}: {}", chain(&error))));
            }
        },
    };
    Ok(match seen {
        Ok(seen) => Contact::Made { access, seen: Seen { nodes: ctx.remote.nodes(&key.namespace, &key.name), ..seen } },
        Err(Lost { reason, message }) => Contact::Lost { access, reason, message },
    })
}

async fn look(ctx: &Context, key: &Key, client: &Client, now: Timestamp) -> Result<Seen, Lost> {
    match probe(client, &ctx.remote.leases(key), now).await {
        Ok((seen, leases)) => {
            let seen = Seen { etcd_size: size(ctx, key, client, now).await, ..seen };
            ctx.remote.made(key, now, seen.clone(), leases);
            ctx.remote.listed(key).await;
            Ok(seen)
        }
        Err(lost) => {
            ctx.remote.lost(key);
            Err(lost)
        }
    }
}

/// Size of the cluster's etcd; it is asked for now and then.
async fn size(ctx: &Context, key: &Key, client: &Client, now: Timestamp) -> Option<i64> {
    let period = SignedDuration::from_mins(PERIOD_MINUTES);
    if let Some((_, size)) = ctx.remote.etcd_size(key).filter(|(at, _)| now.duration_since(*at) < period) {
        return size;
    }
    let size = etcd_size(client).await;
    ctx.remote.sized(key, now, size);
    size
}

fn rejected(why: &str) -> Contact {
    Contact::Refused { reason: Reason::KubeconfigRejected, message: format!("KubeconfigRejected: {why}") }
}

/// The kubeconfig, checked; or why there is none.
async fn kubeconfig_of(ctx: &Context, cluster: &Cluster, key: &Key) -> Result<Result<Checked, Contact>, Error> {
    let found = from_secret(ctx, &key.namespace, &cluster.spec.kubeconfig_ref.name).await?;
    Ok(found.map_err(|Problem { reason, message }| match reason {
        Reason::KubeconfigRejected => rejected(&message),
        _ => Contact::Refused { reason, message },
    }))
}
