//! Reads from the API itself, for what cannot be undone. An object that cannot be decoded is left out where nothing is
//! decided by it, and an error where something is.

use std::collections::BTreeSet;
use std::sync::Arc;

use crds::FormerRef;
use crds::names::label;
use crds::step::Intent;
use futures::{StreamExt, TryStreamExt, stream};
use kube::Api;
use kube::ResourceExt;
use kube::api::ListParams;
use plan::undecodable::Undecodable;

use crate::cache::Kind;
use crate::context::Context;
use crate::decoding::Decoded;
use crate::error::{Error, ResultExt};
use crate::execute::Writable;

/// As many objects are read one by one; of more the whole namespace is listed.
const EACH_BY_ITSELF: usize = 100;
/// Reads that go on at the same time.
const AT_ONCE: usize = 8;

/// The object of this name; `None` when there is none.
pub async fn get<K: Writable>(ctx: &Context, namespace: &str, name: &str) -> Result<Option<K>, Error> {
    let api: Api<K> = Api::namespaced(ctx.client.clone(), namespace);
    let found = api.get_opt(name).await;
    found.doing(|| format!("read {} {name}", K::kind(&())))
}

/// The objects of a kind in a namespace whose label has this value.
pub async fn labelled<K: Writable>(ctx: &Context, namespace: &str, key: &str, value: &str) -> Result<Vec<K>, Error> {
    let api: Api<K> = Api::namespaced(ctx.client.clone(), namespace);
    let listed = api.list(&ListParams::default().labels(&format!("{key}={value}"))).await;
    Ok(listed.doing(|| format!("list the {}s with the label {key}={value}", K::kind(&())))?.items)
}

/// The objects of a kind in a namespace, as far as something is decided by them.
pub async fn list<K: Kind>(
    ctx: &Context,
    namespace: &str,
    params: &ListParams,
    matters: impl Fn(&Undecodable) -> bool,
) -> Result<Vec<Arc<K>>, Error> {
    let api: Api<Decoded<K>> = Api::namespaced(ctx.client.clone(), namespace);
    let action = || match &params.field_selector {
        Some(selector) => format!("list the {}s with {selector}", K::kind(&())),
        None => format!("list the {}s", K::kind(&())),
    };
    let listed = api.list(params).await.doing(action)?;
    let mut objects = Vec::with_capacity(listed.items.len());
    for decoded in listed {
        match decoded {
            Decoded::Object(object) => objects.push(Arc::new(object)),
            Decoded::Undecodable { why, .. } if matters(&why) => {
                return Err(Error::Failed { action: action(), source: why.message().into() });
            }
            Decoded::Undecodable { .. } => {}
        }
    }
    Ok(objects)
}

/// The same for what is decided for one cluster.
pub async fn list_for_cluster<K: Kind>(
    ctx: &Context,
    namespace: &str,
    cluster: &str,
    params: &ListParams,
) -> Result<Vec<Arc<K>>, Error> {
    let matters = |object: &Undecodable| ctx.cache.concerns(object, namespace, cluster);
    list(ctx, namespace, params, matters).await
}

/// The objects of a kind that are of what an object forms.
async fn formed_by<K: Kind>(
    ctx: &Context,
    namespace: &str,
    former: FormerRef<'_>,
    named: impl Fn(&K) -> Option<FormerRef<'_>>,
) -> Result<Vec<Arc<K>>, Error> {
    let params = ListParams::default().fields(&format!("spec.clusterName={}", former.name));
    let mut objects = list_for_cluster::<K>(ctx, namespace, former.name, &params).await?;
    objects.retain(|object| named(object) == Some(former));
    Ok(objects)
}

/// The runs that take backups of what is of no ClusterDeployment.
pub async fn backup_runs(ctx: &Context, namespace: &str) -> Result<Vec<Arc<crds::PlaybookRun>>, Error> {
    let params = ListParams::default().labels(&format!("{}={}", label::INTENT, Intent::Backup.spec().slug));
    let all = list::<crds::PlaybookRun>(ctx, namespace, &params, |_| true).await?;
    let is_one = |run: &Arc<crds::PlaybookRun>| run.spec.former().and_then(FormerRef::deployment).is_none();
    Ok(all.into_iter().filter(is_one).collect())
}

/// The Machines of what an object forms.
pub async fn machines_of(
    ctx: &Context,
    namespace: &str,
    former: FormerRef<'_>,
) -> Result<Vec<Arc<crds::Machine>>, Error> {
    formed_by(ctx, namespace, former, |machine: &crds::Machine| Some(machine.spec.former())).await
}

/// The MachineSets of what an object forms.
pub async fn machine_sets_of(
    ctx: &Context,
    namespace: &str,
    former: FormerRef<'_>,
) -> Result<Vec<Arc<crds::MachineSet>>, Error> {
    formed_by(ctx, namespace, former, |set: &crds::MachineSet| Some(set.spec.former())).await
}

/// The PlaybookRuns of what an object forms.
pub async fn runs_of(
    ctx: &Context,
    namespace: &str,
    former: FormerRef<'_>,
) -> Result<Vec<Arc<crds::PlaybookRun>>, Error> {
    formed_by(ctx, namespace, former, |run: &crds::PlaybookRun| run.spec.former()).await
}

/// The Machines of a ClusterDeployment.
pub async fn machines(ctx: &Context, namespace: &str, cluster: &str) -> Result<Vec<Arc<crds::Machine>>, Error> {
    machines_of(ctx, namespace, FormerRef::cluster(cluster)).await
}

/// The MachineSets of a ClusterDeployment.
pub async fn machine_sets(ctx: &Context, namespace: &str, cluster: &str) -> Result<Vec<Arc<crds::MachineSet>>, Error> {
    machine_sets_of(ctx, namespace, FormerRef::cluster(cluster)).await
}

/// The PlaybookRuns of a ClusterDeployment.
pub async fn runs(ctx: &Context, namespace: &str, cluster: &str) -> Result<Vec<Arc<crds::PlaybookRun>>, Error> {
    runs_of(ctx, namespace, FormerRef::cluster(cluster)).await
}

/// All Hosts of a namespace that matter to a cluster, of whatever kind.
pub async fn hosts(ctx: &Context, namespace: &str, cluster: &str) -> Result<Vec<Arc<crds::Host>>, Error> {
    list_for_cluster(ctx, namespace, cluster, &ListParams::default()).await
}

/// Those of these names that are there, in the order of their names: each by itself where they are few, so that what is
/// read grows with what is asked for and not with the namespace.
pub async fn named<K: Kind + Writable>(
    ctx: &Context,
    namespace: &str,
    names: &BTreeSet<String>,
    matters: impl Fn(&Undecodable) -> bool,
) -> Result<Vec<Arc<K>>, Error> {
    if names.len() > EACH_BY_ITSELF {
        let mut listed = list::<K>(ctx, namespace, &ListParams::default(), matters).await?;
        listed.retain(|object| names.contains(&object.name_any()));
        return Ok(listed);
    }
    let read = names.clone().into_iter().map(|name| async move { get::<K>(ctx, namespace, &name).await });
    let found: Vec<Option<K>> = stream::iter(read).buffered(AT_ONCE).try_collect().await?;
    Ok(found.into_iter().flatten().map(Arc::new).collect())
}
