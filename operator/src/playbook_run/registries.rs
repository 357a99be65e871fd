//! What the references of `containerRuntime.registryMirrors` lead to, as it is now.

use crds::ClusterDeployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use plan::inputs::{InputsProblem, Registries, RegistrySeen, login_key, registry_ca, registry_login};

use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::live;
use crate::pki::material::Data;

/// Authorities, and digests of logins; or what is wrong with an object.
pub(crate) async fn seen(
    ctx: &Context,
    deployment: &ClusterDeployment,
) -> Result<Result<Registries, InputsProblem>, Error> {
    let namespace = deployment.namespace().unwrap_or_default();
    let mut registries = Registries::new();
    for mirror in &deployment.spec.container_runtime.registry_mirrors {
        let mut seen = RegistrySeen::default();
        if let Some(reference) = &mirror.ca_ref {
            let map = live::get::<ConfigMap>(ctx, &namespace, &reference.name).await?;
            match registry_ca(&mirror.prefix, &reference.name, map.as_ref()) {
                Ok(ca) => seen.ca = Some(ca),
                Err(problem) => return Ok(Err(problem)),
            }
        }
        if let Some(reference) = &mirror.credentials_ref {
            let secret = live::get::<Secret>(ctx, &namespace, &reference.name).await?;
            match registry_login(&mirror.prefix, &reference.name, secret.as_ref()) {
                Ok(login) => seen.login = Some(login.digest),
                Err(problem) => return Ok(Err(problem)),
            }
        }
        if seen != RegistrySeen::default() {
            registries.insert(mirror.prefix.clone(), seen);
        }
    }
    Ok(Ok(registries))
}

/// The files of a run whose machines log in to the mirrors of these registries.
pub(super) async fn files(ctx: &Context, deployment: &ClusterDeployment, prefixes: &[String]) -> Result<Data, Error> {
    let namespace = deployment.namespace().unwrap_or_default();
    let mirrors = &deployment.spec.container_runtime.registry_mirrors;
    let mut data = Data::new();
    for mirror in mirrors.iter().filter(|mirror| prefixes.contains(&mirror.prefix)) {
        let Some(reference) = &mirror.credentials_ref else { continue };
        let secret = live::get::<Secret>(ctx, &namespace, &reference.name).await?;
        // It was looked at before the run began: only a change since then can be in the way.
        let login = registry_login(&mirror.prefix, &reference.name, secret.as_ref())
            .map_err(|problem| std::io::Error::other(problem.message))
            .doing(|| format!("log in to the mirrors of {}", mirror.prefix))?;
        data.insert(login_key(&mirror.prefix), login.authorization);
    }
    Ok(data)
}
