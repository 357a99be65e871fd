//! The run's Secret: the credentials of its Hosts, and the keys that its steps have a use for.

mod artifacts_login;
mod plane;

use std::collections::BTreeSet;

use crds::inputs::{CredentialKind, HostInputs, RunInputs, secret_key};
use crds::step::Intent;
use crds::{ClusterDeployment, FormerRef, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt};
use plan::inputs::SecretsNeeded;
use plan::job::metadata;
use plan::rotation::Subject;

use artifacts_login::artifacts_login;

use super::ownership::named_as;
use super::{backup, etcd_client, registries, restore};
use crate::bootstrap_token::{self, BootstrapToken};
use crate::cluster_deployment::pki_owner;
use crate::context::Context;
use crate::error::{Error, ResultExt, chain};
use crate::execute;
use crate::former::Former;
use crate::live;
use crate::pki::material::Data;
use crate::pki::{self, Pki, PkiOwner, etcd::Member};

/// Writes the run's Secret unless it is there already: a token is not made twice for one run.
pub(super) async fn freeze(
    ctx: &Context,
    run: &PlaybookRun,
    model: &RunInputs,
    needs: &SecretsNeeded,
) -> Result<(), Error> {
    let (namespace, name) = (run.namespace().unwrap_or_default(), run.name_any());
    let api: Api<Secret> = Api::namespaced(ctx.client.clone(), &namespace);
    if live::get::<Secret>(ctx, &namespace, &name).await?.is_some() {
        return Ok(());
    }
    let mut data = credentials(&api, model).await?;
    let former = match run.spec.former().filter(|_| *needs != SecretsNeeded::default()) {
        Some(former) => Former::live(ctx, &namespace, former).await?,
        None => None,
    };
    match &former {
        Some(Former::Cluster(deployment)) => {
            data.extend(keys(ctx, run.spec.intent, deployment, needs).await?);
        }
        Some(Former::Plane(plane)) => data.extend(plane::files(ctx, plane, run, needs).await?),
        None => {}
    }
    if let Some(former) = former.as_ref().filter(|_| needs.staging) {
        data.extend(restore::files(ctx, run, former).await?);
    }
    if needs.backup && former.is_some() == run.spec.cluster_name.is_some() {
        data.extend(backup::files(ctx, run, former.as_ref().and_then(Former::deployment)).await?);
    }
    let secret = Secret {
        metadata: metadata(run, &name),
        type_: Some("Opaque".into()),
        data: Some(data),
        immutable: Some(true),
        ..Secret::default()
    };
    execute::create_ours(ctx, &secret).await
}

/// Whether tokens to join are made in the cluster: `kubeadm init` writes that of an install, and machines that are
/// upgraded have joined.
pub(super) fn mints_tokens(intent: Intent) -> bool {
    ![Intent::Install, Intent::Upgrade].contains(&intent)
}

async fn credentials(api: &Api<Secret>, model: &RunInputs) -> Result<Data, Error> {
    let mut wanted: BTreeSet<(&str, bool)> = BTreeSet::new();
    for host in model.hosts.values() {
        let mut next = Some(host);
        while let Some(host) = next {
            wanted.insert((&host.credential, host.credential_kind == CredentialKind::SshKey));
            next = host.bastion.as_deref().map(|bastion: &HostInputs| bastion);
        }
    }
    let mut data = Data::new();
    for (name, is_key) in wanted {
        let secret = api.get(name).await.doing(|| format!("read Secret {name}"))?;
        let values = secret.data.unwrap_or_default();
        let (key, kind) = match is_key {
            true => ("ssh-privatekey", CredentialKind::SshKey),
            false => ("password", CredentialKind::Password),
        };
        if let Some(value) = values.get(key) {
            data.insert(secret_key(kind, name), value.clone());
        }
        if let Some(value) = values.get("become-password") {
            data.insert(format!("become-password.{name}"), value.clone());
        }
    }
    Ok(data)
}

async fn keys(
    ctx: &Context,
    intent: Intent,
    deployment: &ClusterDeployment,
    needs: &SecretsNeeded,
) -> Result<Data, Error> {
    let now = Timestamp::now();
    let mut data = Data::new();
    let needs_pki = needs.control_plane || needs.apiserver_client || !needs.kubelets.is_empty();
    let needs_certificates = needs_pki || !needs.etcd_hosts.is_empty() || needs.etcd_client;
    if needs.encryption {
        data.extend(pki::get(ctx, &pki_owner(deployment)).await?.encryption_files());
    }
    if needs_certificates {
        let owner = pki_owner(deployment);
        let pki = pki::get(ctx, &owner).await?;
        data.extend(of_cluster(ctx, (deployment, &owner), &pki, needs, now).await?);
    }
    if needs.artifacts_login {
        data.extend(
            artifacts_login(ctx, &deployment.namespace().unwrap_or_default(), deployment.spec.artifacts.as_ref())
                .await?,
        );
    }
    data.extend(registries::files(ctx, deployment, &needs.registry_logins).await?);
    for host in &needs.join_hosts {
        let token =
            if !mints_tokens(intent) { BootstrapToken::random() } else { token(ctx, deployment, host, now).await? };
        data.insert(format!("join.{host}.token"), ByteString(token.text().into_bytes()));
    }
    Ok(data)
}

/// The cluster's authorities, keys and certificates, as far as the run's machines have a use for them.
async fn of_cluster(
    ctx: &Context,
    (deployment, owner): (&ClusterDeployment, &PkiOwner),
    pki: &Pki,
    needs: &SecretsNeeded,
    now: Timestamp,
) -> Result<Data, Error> {
    let mut data = Data::new();
    if needs.control_plane {
        data.extend(pki.control_plane_files());
    }
    let of_kubelets = || format!("make certificates of kubelets of {}", owner.title());
    let authority = pki.authority(Subject::Ca).doing(of_kubelets)?;
    data.extend(pki::kubelet::files(authority.signer(), &needs.kubelets, now).doing(of_kubelets)?);
    if !needs.kubelets.is_empty() {
        data.extend(pki.authority_files());
    }
    if let Some(next) = authority.next().filter(|_| needs.control_plane && !needs.kubelets.is_empty()) {
        data.extend(pki::kubelet::next_client(next, now).doing(of_kubelets)?);
    }
    if needs.etcd_client {
        // What is in etcd already is told by the cluster's authority from what others have there.
        data.extend(pki.authority_files());
        // In the place of etcd's own authority, which such a cluster has no use for.
        data.extend(etcd_client::files(ctx, deployment).await?);
    } else {
        let certificates = pki::etcd::ensure(ctx, owner, pki, &Member::all(&needs.etcd_members), now).await?;
        if needs.apiserver_client {
            data.extend(certificates.apiserver_files());
        }
        if !needs.etcd_hosts.is_empty() {
            data.extend(pki.etcd_files());
            data.extend(certificates.files_of(needs.etcd_hosts.iter().map(String::as_str)));
        }
    }
    Ok(data)
}

/// Takes back the tokens of a run that is over, where its cluster answers; elsewhere they end by themselves.
pub(super) async fn revoke_tokens(ctx: &Context, run: &PlaybookRun) -> Result<(), Error> {
    let namespace = run.namespace().unwrap_or_default();
    let cluster = run.spec.former().and_then(FormerRef::deployment);
    let Some(client) = cluster.and_then(|cluster| ctx.remote.client(&namespace, cluster)) else {
        return Ok(());
    };
    let data = named_as::<Secret>(ctx, run).await?.and_then(|secret| secret.data);
    for (name, token) in data.unwrap_or_default() {
        if !(name.starts_with("join.") && name.ends_with(".token")) {
            continue;
        }
        if let Err(error) = bootstrap_token::revoke(&client, &String::from_utf8_lossy(&token.0)).await {
            let cluster = cluster.unwrap_or_default();
            tracing::warn!(cluster, error = chain(&error), "a bootstrap token is left until its time is over");
        }
    }
    Ok(())
}

/// A token of a cluster whose API answers.
async fn token(
    ctx: &Context,
    deployment: &ClusterDeployment,
    host: &str,
    now: Timestamp,
) -> Result<BootstrapToken, Error> {
    let (namespace, name) = (deployment.namespace().unwrap_or_default(), deployment.name_any());
    match ctx.remote.client(&namespace, &name) {
        Some(client) => bootstrap_token::mint(&client, host, now).await,
        None => Err(std::io::Error::other("there is no contact with its API"))
            .doing(|| format!("make a token to join cluster {name}")),
    }
}
