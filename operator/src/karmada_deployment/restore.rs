//! The backup that a plane begins with, or is set back to: what is observed of it, of the plane that was backed up, and
//! of what members have of what the restored one would propagate. Nothing is written for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::cluster_addon::AppliedObject;
use crds::karmada_deployment::{KarmadaRestoreStep, KarmadaRestoredFrom};
use crds::names::label;
use crds::{EtcdRestore, KarmadaDeployment, ObjectExt};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use plan::karmada_deployment::names::PLANE_NAMESPACE;
use plan::karmada_deployment::restore::{carried, handed_over, kinds, source};
use plan::karmada_deployment::{FormerPlane, MemberLook, RestoreSeen};
use plan::key_transfer::RestoringSeen;
use serde_json::Value;

use super::members::Members;
use super::pki_owner::pki_owner;
use crate::cache::refs;
use crate::context::Context;
use crate::error::{Error, chain};
use crate::kubeconfig::check::Checked;
use crate::objects::{Failure, Found, Kind, Objects, within};
use crate::remote::client_of;
use crate::{key_transfer, live};

/// Members that are read at once.
const AT_ONCE: usize = 8;
/// By which Karmada marks what it has put into a member.
const MANAGED: &str = "karmada.io/managed=true";
const WORK: Kind<'static> = ("work.karmada.io", "v1alpha1", "Work");

/// What is known of the backup and its keys; nothing of a plane that begins without one, or stands. `restores`: the
/// EtcdRestores of the plane.
pub(super) async fn keys(
    ctx: &Context,
    object: &KarmadaDeployment,
    restores: &[&EtcdRestore],
) -> Result<RestoringSeen, Error> {
    let is_over = record(object).is_some_and(|record| record.step.is_none());
    let from = source(object, restores).filter(|_| !is_over && !object.is_deleting());
    let is_in_place = record(object).is_some_and(|record| record.restore_ref.is_some());
    match from {
        Some(from) if is_in_place => key_transfer::seen_in_place(ctx, &pki_owner(object), &from).await,
        Some(from) => key_transfer::seen(ctx, &pki_owner(object), &from).await,
        None => Ok(RestoringSeen::default()),
    }
}

/// The EtcdRestores of the plane, as the cache shows them.
pub(super) fn restores(ctx: &Context, object: &KarmadaDeployment) -> Vec<Arc<EtcdRestore>> {
    ctx.cache.etcd_restores.list(object.namespace(), |restore| restore.spec.is_for_plane(object.name()))
}

/// The same, as they are: the one that the plane would take over is read anew.
pub(super) async fn live_restores(
    ctx: &Context,
    object: &KarmadaDeployment,
    mut restores: Vec<Arc<EtcdRestore>>,
) -> Result<Vec<Arc<EtcdRestore>>, Error> {
    let handed = handed_over(object, &refs(&restores)).map(|(restore, _)| restore.name().to_owned());
    let Some(name) = handed else { return Ok(restores) };
    let found = live::get::<EtcdRestore>(ctx, object.namespace(), &name).await?;
    restores.retain(|restore| restore.name() != name);
    restores.extend(found.map(Arc::new));
    Ok(restores)
}

/// Whether etcd's data is being made, which needs what was fetched with the keys.
pub(super) fn makes_data(object: &KarmadaDeployment) -> bool {
    record(object).is_some_and(|record| record.step == Some(KarmadaRestoreStep::Data))
}

/// All that is known. The former plane and members are asked only while that is compared.
pub(super) async fn look(
    ctx: &Context,
    object: &KarmadaDeployment,
    keys: RestoringSeen,
    (in_plane, administrator): (Option<&Objects>, Option<&Checked>),
    members: &Members,
) -> RestoreSeen {
    let mut seen = RestoreSeen { keys, ..RestoreSeen::default() };
    let compared = record(object).filter(|record| record.step == Some(KarmadaRestoreStep::Compare));
    let (Some(record), Some(objects)) = (compared.filter(|_| !object.is_deleting()), in_plane) else { return seen };
    if let (Some(endpoint), Some(administrator)) = (&record.endpoint, administrator) {
        seen.former = former(ctx, object, endpoint, administrator).await;
    }
    // Without the kind nothing is propagated.
    seen.works = objects.list(WORK, None, "").await.ok();
    if let Some(works) = &seen.works {
        seen.members = look_at_members(works, members).await;
    }
    seen
}

fn record(object: &KarmadaDeployment) -> Option<&KarmadaRestoredFrom> {
    object.status.as_ref()?.restored_from.as_ref()
}

/// Whether the plane that was backed up answers at its endpoint. By its keys it is not told from this one; by whom the
/// operator made its namespace for, it is.
async fn former(ctx: &Context, object: &KarmadaDeployment, endpoint: &str, administrator: &Checked) -> FormerPlane {
    let client = match client_of(&administrator.with_server(endpoint), "the former plane", &ctx.gate) {
        Ok(client) => client,
        Err(error) => return FormerPlane::Silent(chain(&error)),
    };
    let api: Api<Namespace> = Api::all(client);
    match within(api.get_opt(PLANE_NAMESPACE)).await {
        Err(Failure::Lost(why)) => FormerPlane::Silent(why),
        Ok(Some(namespace)) if is_made_for(&namespace, object) => {
            FormerPlane::Silent("this plane answers there".to_owned())
        }
        Ok(_) | Err(_) => FormerPlane::Answers,
    }
}

fn is_made_for(namespace: &Namespace, object: &KarmadaDeployment) -> bool {
    let labels = namespace.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(label::KARMADA_UID)).is_some_and(|uid| uid == object.uid())
}

async fn look_at_members(works: &[Value], members: &Members) -> BTreeMap<String, MemberLook> {
    let looks = members.reached().map(|(name, objects)| async move {
        let look = match objects {
            Ok(objects) => look_at(works, &name, objects).await.map_err(|failure| failure.to_string()),
            Err(why) => Err(why),
        };
        (name, look)
    });
    stream::iter(looks.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).collect().await
}

/// What Karmada has put there, and what is there of what it would put there.
async fn look_at(works: &[Value], member: &str, objects: &Objects) -> Result<Vec<Value>, Failure> {
    let mut found = Vec::new();
    for (group, version, kind) in kinds(works) {
        found.extend(objects.list((&group, &version, &kind), None, MANAGED).await?);
    }
    for object in carried(works, member) {
        if found.iter().any(|live| is_it(live, &object)) {
            continue;
        }
        if let Found::Object(mut live) = objects.get(&object).await? {
            live["apiVersion"] = object.api_version().into();
            live["kind"] = object.kind.clone().into();
            found.push(*live);
        }
    }
    Ok(found)
}

fn is_it(live: &Value, object: &AppliedObject) -> bool {
    let group = live["apiVersion"].as_str().and_then(|version| version.split_once('/')).map_or("", |(group, _)| group);
    let metadata = &live["metadata"];
    group == object.group
        && live["kind"] == *object.kind
        && metadata["name"] == *object.name
        && metadata["namespace"].as_str() == object.namespace.as_deref()
}
