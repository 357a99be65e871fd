//! What the policies in manifests/admission refuse: installed as an administrator does it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::{ClusterDeployment, KarmadaDeployment};
use e2e::api_server::ApiServer;
use kube::Resource;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{deployment, karmada_deployment, with};

/// The API server with the policies; they take hold a moment after they are there.
async fn guarded() -> Result<(ApiServer, Api<ClusterDeployment>)> {
    let server = ApiServer::shared().await?;
    let policies = lab::project::path("manifests/admission");
    server.kubectl(&["apply", "--server-side", "--force-conflicts", "-k", &policies.display().to_string()])?;
    let api = Api::namespaced(server.client(), "default");
    Ok((server, api))
}

async fn protected(api: &Api<ClusterDeployment>, name: &str) -> Result<ClusterDeployment> {
    let object = with(deployment(name), "spec.deletionProtection", json!(true));
    let object: ClusterDeployment = serde_json::from_value(object)?;
    Ok(api.create(&PostParams::default(), &object).await?)
}

/// What a deletion is refused with, once the policy has taken hold.
async fn refusal_in_force<K>(api: &Api<K>, name: &str) -> Result<String>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let said = refusal(api, name).await?;
        if !said.is_empty() {
            return Ok(said);
        }
        ensure!(Instant::now() < until, "the policy never took hold");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// What the API server says to the deletion, but nothing is deleted.
async fn refusal<K>(api: &Api<K>, name: &str) -> Result<String>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let params = DeleteParams { dry_run: true, ..DeleteParams::default() };
    match api.delete(name, &params).await {
        Ok(_) => Ok(String::new()),
        Err(kube::Error::Api(status)) => {
            ensure!(status.code == 403, "{status:?}");
            Ok(status.message.clone())
        }
        Err(error) => Err(error).context("failed to delete"),
    }
}

async fn annotate<K>(api: &Api<K>, name: &str, value: Value) -> Result<()>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let patch = json!({ "metadata": { "annotations": { "clusterwright.dev/delete-confirmed": value } } });
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protected_cluster_is_not_deleted_and_the_message_says_how_to_go_on_row_35() -> Result<()> {
    let (_server, api) = guarded().await?;
    protected(&api, "guarded").await?;
    let said = refusal_in_force(&api, "guarded").await?;
    let command = "kubectl -n default annotate --overwrite clusterdeployments.clusterwright.dev guarded clusterwright.dev/delete-confirmed=1";
    for words in ["DeletionProtected", "spec.deletionProtection", command] {
        ensure!(said.contains(words), "the message does not say `{words}`: {said}");
    }
    let all =
        api.delete_collection(&DeleteParams::default(), &ListParams::default().fields("metadata.name=guarded")).await;
    ensure!(all.is_err(), "all at once is no way around it");

    for other in ["0", "2", "yes", "11", ""] {
        annotate(&api, "guarded", json!(other)).await?;
        ensure!(!refusal(&api, "guarded").await?.is_empty(), "{other:?} confirms nothing");
    }
    annotate(&api, "guarded", json!("1")).await?;
    ensure!(refusal(&api, "guarded").await?.is_empty(), "it was confirmed");
    // What was confirmed is not what would be deleted now.
    let patch = json!({ "spec": { "paused": true } });
    api.patch("guarded", &PatchParams::default(), &Patch::Merge(patch)).await?;
    ensure!(refusal(&api, "guarded").await?.contains("is \"1\", which is not generation 2"));
    annotate(&api, "guarded", json!("2.force")).await?;
    ensure!(refusal(&api, "guarded").await?.is_empty(), "it was confirmed, and what cannot be cleaned is to be let go");

    let patch = json!({ "metadata": { "annotations": null }, "spec": { "deletionProtection": false } });
    api.patch("guarded", &PatchParams::default(), &Patch::Merge(patch)).await?;
    api.delete("guarded", &DeleteParams::default()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protected_plane_is_not_deleted_either() -> Result<()> {
    let (server, _) = guarded().await?;
    let api: Api<KarmadaDeployment> = Api::namespaced(server.client(), "default");
    let plane = with(karmada_deployment("guarded"), "spec.deletionProtection", json!(true));
    api.create(&PostParams::default(), &serde_json::from_value(plane)?).await?;
    let said = refusal_in_force(&api, "guarded").await?;
    let command = "kubectl -n default annotate --overwrite karmadadeployments.clusterwright.dev guarded clusterwright.dev/delete-confirmed=1";
    for words in ["spec.deletionProtection of KarmadaDeployment guarded is true", command] {
        ensure!(said.contains(words), "the message does not say `{words}`: {said}");
    }
    annotate(&api, "guarded", json!("1")).await?;
    ensure!(refusal(&api, "guarded").await?.is_empty(), "it was confirmed");
    api.delete("guarded", &DeleteParams::default()).await?;
    Ok(())
}

/// Status is written by several: what one says stands when another says something else.
#[tokio::test(flavor = "multi_thread")]
async fn conditions_of_other_controllers_survive_beside_ours() -> Result<()> {
    let server = ApiServer::shared().await?;
    let api: Api<ClusterDeployment> = Api::namespaced(server.client(), "default");
    let object: ClusterDeployment = serde_json::from_value(deployment("gated"))?;
    let read = api.create(&PostParams::default(), &object).await?;
    let condition = |type_: &str, status: &str| json!({ "type": type_, "status": status, "reason": "Said", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let apply = async |status: &str| {
        let patch = json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterDeployment", "metadata": { "name": "gated" },
            "status": { "conditions": [condition("example.com/DNSRecordReady", status)] },
        });
        api.patch_status("gated", &PatchParams::apply("dns").force(), &Patch::Apply(patch)).await
    };
    apply("False").await?;
    // The operator replaces the status that it read; who wrote in between makes it read again.
    let mut stale = read.clone();
    stale.status = Some(serde_json::from_value(json!({ "conditions": [condition("Ready", "False")] }))?);
    let refused = api.replace_status("gated", &PostParams::default(), &stale).await;
    ensure!(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 409), "{refused:?}");
    let mut fresh = api.get("gated").await?;
    let mut status = fresh.status.take().unwrap_or_default();
    status.conditions.insert(0, serde_json::from_value(condition("Ready", "False"))?);
    fresh.status = Some(status);
    api.replace_status("gated", &PostParams::default(), &fresh).await?;
    apply("True").await?;
    let found = api.get("gated").await?.status.unwrap_or_default().conditions;
    let said: Vec<_> = found.iter().map(|found| (found.type_.as_str(), found.status.as_str())).collect();
    ensure!(said == [("Ready", "False"), ("example.com/DNSRecordReady", "True")], "{said:?}");
    Ok(())
}
