//! The volumes and the variables of a Pod, as a kubelet would fill them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{
    ConfigMap, Pod, ProjectedVolumeSource, Secret, SecretVolumeSource, ServiceAccount, Volume as Declared,
};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};

/// A volume where it is mounted.
pub struct Volume {
    pub path: String,
    /// Its files by their paths in it; none: a directory that the Pod may write.
    pub files: Option<BTreeMap<String, Vec<u8>>>,
    pub mode: u32,
}

/// All that a Pod mounts.
pub async fn volumes(client: &Client, pod: &Pod) -> Result<Vec<Volume>> {
    let spec = pod.spec.clone().unwrap_or_default();
    let mut volumes = Vec::new();
    for mount in spec.containers.iter().flat_map(|container| container.volume_mounts.iter().flatten()) {
        let declared = spec.volumes.iter().flatten().find(|volume| volume.name == mount.name);
        let declared = declared.with_context(|| format!("no volume is named {}", mount.name))?;
        let (files, mode) = content(client, pod, declared).await?;
        volumes.push(Volume { path: mount.mount_path.clone(), files, mode: u32::try_from(mode.unwrap_or(0o644))? });
    }
    Ok(volumes)
}

/// The variables that its command refers to: names of the Pod itself, and keys of Secrets.
pub async fn variables(client: &Client, pod: &Pod) -> Result<BTreeMap<String, String>> {
    let mut variables = BTreeMap::new();
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    for variable in containers.flat_map(|container| container.env.iter().flatten()) {
        let Some(from) = &variable.value_from else { continue };
        let value = match &from.secret_key_ref {
            None => pod.name_any(),
            Some(key) => {
                let secret = Api::<Secret>::namespaced(client.clone(), &namespace(pod)).get(&key.name).await?;
                let value = secret.data.as_ref().and_then(|data| data.get(&key.key));
                String::from_utf8(value.with_context(|| format!("Secret {} has no {}", key.name, key.key))?.0.clone())?
            }
        };
        variables.insert(variable.name.clone(), value);
    }
    Ok(variables)
}

type Content = (Option<BTreeMap<String, Vec<u8>>>, Option<i32>);

async fn content(client: &Client, pod: &Pod, volume: &Declared) -> Result<Content> {
    if let Some(secret) = &volume.secret {
        return Ok((Some(of_secret(client, pod, secret).await?), secret.default_mode));
    }
    if let Some(projected) = &volume.projected {
        // A token is for the Pod's group, too.
        return Ok((Some(projection(client, pod, projected).await?), Some(0o640)));
    }
    let is_directory = volume.empty_dir.is_some() || volume.persistent_volume_claim.is_some();
    ensure!(is_directory, "the volume {} is of another kind", volume.name);
    Ok((None, None))
}

fn namespace(pod: &Pod) -> String {
    pod.namespace().unwrap_or_default()
}

async fn of_secret(client: &Client, pod: &Pod, source: &SecretVolumeSource) -> Result<BTreeMap<String, Vec<u8>>> {
    let name = source.secret_name.as_deref().unwrap_or_default();
    let secret = Api::<Secret>::namespaced(client.clone(), &namespace(pod)).get(name).await?;
    let data = secret.data.unwrap_or_default();
    let Some(items) = &source.items else { return Ok(data.into_iter().map(|(key, value)| (key, value.0)).collect()) };
    let mut files = BTreeMap::new();
    for item in items {
        let content = data.get(&item.key).with_context(|| format!("Secret {name} has no {}", item.key))?;
        files.insert(item.path.clone(), content.0.clone());
    }
    Ok(files)
}

/// The token of its ServiceAccount, and what goes with it.
async fn projection(client: &Client, pod: &Pod, source: &ProjectedVolumeSource) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for source in source.sources.iter().flatten() {
        if let Some(token) = &source.service_account_token {
            let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &namespace(pod));
            let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref()).unwrap_or("default");
            let request = TokenRequest { spec: TokenRequestSpec::default(), ..TokenRequest::default() };
            let made = accounts.create_token_request(account, &PostParams::default(), &request).await?;
            files.insert(token.path.clone(), made.status.context("no token was made")?.token.into_bytes());
        }
        if let Some(map) = &source.config_map {
            let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace(pod));
            let data = maps.get(&map.name).await?.data.unwrap_or_default();
            files.extend(data.into_iter().map(|(key, text)| (key, text.into_bytes())));
        }
        for item in source.downward_api.iter().flat_map(|api| api.items.iter().flatten()) {
            files.insert(item.path.clone(), namespace(pod).into_bytes());
        }
    }
    Ok(files)
}
