//! The kubeconfig of a member that is read on a Host: what is seen of it, and how what a run has read is kept, beside
//! the KarmadaDeployment. What comes from a machine is checked before it is kept, and what is in it is in no message.

use std::collections::BTreeMap;

use crds::names::{KUBECONFIG_KEY, annotation, label, member_kubeconfig_secret, read_kubeconfigs_secret};
use crds::{Host, KarmadaDeployment, ObjectExt, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use plan::attempts::attempt_of;
use plan::karmada_deployment::members::{Brought, HostAccess, ReachedBy, ReadFrom, Target, has_read};

use super::super::pki_owner::pki_owner;
use super::asked::Asked;
use crate::context::Context;
use crate::error::{Error, ResultExt, chain};
use crate::kubeconfig::check::Rejected;
use crate::kubeconfig::on_machine::{FromMachine, from_machine};
use crate::owned::{drop_owned, owned_by};
use crate::{execute, live};

/// The longest kubeconfig that is kept, in bytes.
const LONGEST: usize = 256 << 10;

/// What there is of it; `None`: the member is not reached by a Host, and never was. `is_refused`: its API has just
/// refused what is kept.
pub(super) async fn read(
    ctx: &Context,
    asked: &Asked<'_>,
    target: &Target,
    is_refused: bool,
) -> Result<Option<HostAccess>, Error> {
    let Some(name) = host_of(asked.object, target) else { return Ok(None) };
    let (object, namespace) = (asked.object, asked.object.namespace());
    let host = ctx.cache.hosts.get(namespace, &name);
    let is_ours = |run: &PlaybookRun| {
        let labels = run.metadata.labels.as_ref();
        let is_of_member = labels.and_then(|labels| labels.get(label::KARMADA_MEMBER)) == Some(&target.name);
        is_of_member && owned_by(run, Some(object.uid()))
    };
    let mut runs: Vec<PlaybookRun> =
        ctx.cache.runs.list(namespace, is_ours).iter().map(|run| (**run).clone()).collect();
    runs.sort_by_key(attempt_of);
    let mut access = HostAccess { runs, is_refused, host: host.as_deref().cloned(), ..HostAccess::default() };
    let owner = pki_owner(object);
    if let Some(secret) = owner.find(ctx, &member_kubeconfig_secret(object.name(), &target.name)).await? {
        match owner.check(&secret) {
            Ok(()) => access.kept = Some(ReadFrom::from_annotation(secret.annotation(annotation::READ_FROM))),
            Err(error) => access.foreign = Some(format!("{}; delete it, or name the member otherwise", chain(&error))),
        }
    }
    let newest = access.runs.last().filter(|run| has_read(run));
    // One whose kubeconfig is kept is only to be forgotten.
    let newest = newest.filter(|run| access.kept.as_ref().is_none_or(|kept| kept.run != run.name()));
    if let (Some(run), Some(host)) = (newest, &host) {
        access.brought = match brought(ctx, run, host).await? {
            None => Brought::Nothing,
            Some(Ok(_)) => Brought::Usable,
            Some(Err(why)) => Brought::Rejected(why.to_string()),
        };
    }
    Ok(Some(access))
}

/// The Host on which it is read, or was.
fn host_of(object: &KarmadaDeployment, target: &Target) -> Option<String> {
    if let ReachedBy::Host(name) = &target.reached_by {
        return Some(name.clone());
    }
    let members = &object.status.as_ref()?.members;
    let known = members.iter().find(|member| member.name == target.name)?;
    known.host_ref.as_ref().map(|host| host.name.clone())
}

/// What a run has read on this Host; none: nothing is there.
async fn brought(
    ctx: &Context,
    run: &PlaybookRun,
    host: &Host,
) -> Result<Option<Result<FromMachine, Rejected>>, Error> {
    let secret = live::get::<Secret>(ctx, run.namespace(), &read_kubeconfigs_secret(run.name())).await?;
    let data = secret.filter(|secret| owned_by(secret, Some(run.uid()))).and_then(|secret| secret.data);
    let content = data.and_then(|mut data| data.remove(host.name()));
    Ok(content.map(|content| taken(&content.0, &host.spec.address)))
}

fn taken(content: &[u8], address: &str) -> Result<FromMachine, Rejected> {
    if content.len() > LONGEST {
        return Err(Rejected(format!("it has {} bytes, and {LONGEST} are read", content.len())));
    }
    let text = std::str::from_utf8(content).map_err(|_| Rejected("it is no text".to_owned()))?;
    from_machine(text, address)
}

/// What a run has read, and when it is kept.
pub(super) struct Read<'a> {
    pub run: &'a str,
    pub host: &'a str,
    pub at: Timestamp,
}

/// Keeps what a run has read. What has gone, or is refused by now, is seen at the next look.
pub(super) async fn keep(
    ctx: &Context,
    object: &KarmadaDeployment,
    member: &str,
    read: &Read<'_>,
) -> Result<(), Error> {
    let (namespace, owner) = (object.namespace(), pki_owner(object));
    let run = live::get::<PlaybookRun>(ctx, namespace, read.run).await?.filter(|run| owned_by(run, Some(object.uid())));
    let (Some(run), Some(host)) = (run, ctx.cache.hosts.get(namespace, read.host)) else { return Ok(()) };
    let Some(Ok(FromMachine { text, server })) = brought(ctx, &run, &host).await? else { return Ok(()) };
    let doing = || format!("keep the kubeconfig of Host {}", read.host);
    let name = member_kubeconfig_secret(object.name(), member);
    if let Some(there) = owner.find(ctx, &name).await? {
        owner.check(&there).doing(doing)?;
    }
    let from = ReadFrom { host: host.uid().to_owned(), run: read.run.to_owned(), at: Some(Time(read.at)), server };
    let from = serde_json::to_string(&from).doing(doing)?;
    let mut secret = owner.secret(&name, [(KUBECONFIG_KEY.to_owned(), ByteString(text.into_bytes()))].into());
    secret.metadata.labels.get_or_insert_default().insert(label::KARMADA_MEMBER.to_owned(), member.to_owned());
    secret.metadata.annotations = Some(BTreeMap::from([(annotation::READ_FROM.to_owned(), from)]));
    execute::apply(ctx, &secret).await.map(drop)
}

/// Deletes a run, and first what it has read.
pub(super) async fn forget(ctx: &Context, run: &PlaybookRun) -> Result<(), Error> {
    drop_owned::<Secret>(ctx, run.namespace(), &read_kubeconfigs_secret(run.name()), Some(run.uid())).await?;
    execute::delete(ctx, run, None).await
}

/// Deletes what is kept, if it is ours.
pub(super) async fn delete(ctx: &Context, object: &KarmadaDeployment, member: &str) -> Result<(), Error> {
    let name = member_kubeconfig_secret(object.name(), member);
    drop_owned::<Secret>(ctx, object.namespace(), &name, Some(object.uid())).await
}
