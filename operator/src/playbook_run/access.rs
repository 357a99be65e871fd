//! What is named as the run and belongs to it: looked at before anything is made, made once, and taken back.

use std::fmt::Debug;

use crds::PlaybookRun;
use crds::Reason;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::{Api, Resource, ResourceExt};
use plan::inputs::InputsProblem;
use plan::playbook_run::Permission;
use serde::de::DeserializeOwned;

use super::observe::owned_by;
use super::secrets::ours;
use crate::context::Context;
use crate::error::{Doing, Error};
use crate::execute::{self, Writable};

/// Makes the ServiceAccount, the Role and the RoleBinding; one that belongs to another is never adopted.
pub(super) async fn permit(ctx: &Context, permission: &Permission) -> Result<(), Error> {
    make(ctx, &permission.service_account).await?;
    make(ctx, &permission.role).await?;
    make(ctx, &permission.role_binding).await
}

async fn make<K: Writable>(ctx: &Context, object: &K) -> Result<(), Error> {
    let made = execute::create_once(ctx, object).await?;
    ours(made, &K::kind(&()), &object.name_any())
}

/// Takes back what the executor may do: the right first.
pub(super) async fn withdraw(ctx: &Context, run: &PlaybookRun) -> Result<(), Error> {
    drop_ours::<RoleBinding>(ctx, run).await?;
    drop_ours::<Role>(ctx, run).await?;
    drop_ours::<ServiceAccount>(ctx, run).await
}

/// Deletes what is named as the run, if it is the run's.
pub(super) async fn drop_ours<K: Writable>(ctx: &Context, run: &PlaybookRun) -> Result<(), Error> {
    let named = named_as::<K>(ctx, run).await?;
    match named.filter(|object| owned_by(object, run.uid().as_deref())) {
        Some(object) => execute::delete(ctx, &object, None).await,
        None => Ok(()),
    }
}

/// What is named as the run.
pub(super) async fn named_as<K>(ctx: &Context, run: &PlaybookRun) -> Result<Option<K>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let name = run.name_any();
    let api: Api<K> = Api::namespaced(ctx.client.clone(), &run.namespace().unwrap_or_default());
    api.get_opt(&name)
        .await
        .doing(|| format!("read {} {name}", K::kind(&())))
}

/// What is named as the run and belongs to another: the run must not use it, and cannot make its own.
pub(super) async fn taken(ctx: &Context, run: &PlaybookRun) -> Result<Option<InputsProblem>, Error> {
    let taken = [
        is_anothers::<Secret>(ctx, run).await?,
        is_anothers::<ConfigMap>(ctx, run).await?,
        is_anothers::<ServiceAccount>(ctx, run).await?,
        is_anothers::<Role>(ctx, run).await?,
        is_anothers::<RoleBinding>(ctx, run).await?,
    ];
    Ok(taken.into_iter().flatten().next())
}

async fn is_anothers<K: Writable>(ctx: &Context, run: &PlaybookRun) -> Result<Option<InputsProblem>, Error> {
    let named = named_as::<K>(ctx, run).await?;
    let anothers = named.is_some_and(|object| !owned_by(&object, run.uid().as_deref()));
    Ok(anothers.then(|| name_taken(&K::kind(&()), &run.name_any())))
}

/// The problem of a run whose name another object of a kind has.
pub(super) fn name_taken(kind: &str, name: &str) -> InputsProblem {
    let message = format!(
        "a {kind} {name} is there that belongs to another: delete it, or make this run under another name"
    );
    InputsProblem::waits(Reason::NameTaken, message)
}
