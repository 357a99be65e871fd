//! The login of the artifact source, which a run's Secret has under names of its own.

use crds::cluster_deployment::Artifacts;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use plan::inputs::artifacts;

use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::pki::material::Data;

/// Its files; none where the source needs no login.
pub(super) async fn artifacts_login(ctx: &Context, namespace: &str, source: Option<&Artifacts>) -> Result<Data, Error> {
    let Some(reference) = source.and_then(|source| source.credentials_ref.as_ref()) else {
        return Ok(Data::new());
    };
    let api: Api<Secret> = Api::namespaced(ctx.client.clone(), namespace);
    let name = &reference.name;
    let secret = api.get(name).await.doing(|| format!("read Secret {name}"))?;
    let login = artifacts::login_of(artifacts::CREDENTIALS, name, Some(&secret))
        .map_err(|problem| std::io::Error::other(problem.message))
        .doing(|| format!("log in with Secret {name}"))?;
    let mut values = secret.data.unwrap_or_default();
    let keys = login.keys().iter();
    Ok(keys.filter_map(|key| Some((format!("artifacts.{key}"), values.remove(*key)?))).collect())
}
