//! What is named as the run: whether it belongs to it.

use crds::PlaybookRun;
use crds::Reason;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt;
use plan::inputs::InputsProblem;

use crate::context::Context;
use crate::error::Error;
use crate::execute::Writable;
use crate::live;
use crate::owned::{drop_owned, owned_by};

/// Deletes what is named as the run, if it is the run's.
pub(super) async fn drop_ours<K: Writable>(ctx: &Context, run: &PlaybookRun) -> Result<(), Error> {
    drop_owned::<K>(ctx, &run.namespace().unwrap_or_default(), &run.name_any(), run.uid().as_deref()).await
}

/// What is named as the run.
pub(super) async fn named_as<K: Writable>(ctx: &Context, run: &PlaybookRun) -> Result<Option<K>, Error> {
    live::get(ctx, &run.namespace().unwrap_or_default(), &run.name_any()).await
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
    let message =
        format!("a {kind} {name} is there that belongs to another: delete it, or make this run under another name");
    InputsProblem::waits(Reason::NameTaken, message)
}
