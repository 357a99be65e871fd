//! How API servers speak to an external etcd: what the Secret of `etcd.secretRef` holds, as it is now.

use crds::ClusterDeployment;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use plan::inputs::{InputsProblem, etcd_client_digest, etcd_client_files};

use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::live;
use crate::pki::material::Data;

/// A digest of its certificates, or what is wrong with it; none: etcd is not external.
pub(crate) async fn digest(
    ctx: &Context,
    deployment: &ClusterDeployment,
) -> Result<Option<Result<String, InputsProblem>>, Error> {
    let read = read(ctx, deployment).await?;
    Ok(read.map(|files| files.map(|files| etcd_client_digest(&files))))
}

/// The files of a run on control planes; none where etcd is not external.
pub(super) async fn files(ctx: &Context, deployment: &ClusterDeployment) -> Result<Data, Error> {
    let Some(read) = read(ctx, deployment).await? else {
        return Ok(Data::new());
    };
    // It was looked at before the run began: only a change since then can be in the way.
    read.map_err(|problem| std::io::Error::other(problem.message))
        .doing(|| format!("read the client certificate of the etcd of cluster {}", deployment.name_any()))
}

async fn read(ctx: &Context, deployment: &ClusterDeployment) -> Result<Option<Result<Data, InputsProblem>>, Error> {
    let Some(reference) = &deployment.spec.etcd.secret_ref else {
        return Ok(None);
    };
    let namespace = deployment.namespace().unwrap_or_default();
    let secret = live::get::<Secret>(ctx, &namespace, &reference.name).await?;
    Ok(Some(etcd_client_files(&reference.name, secret.as_ref())))
}
