//! Claims: a Host that a Machine has claimed is not deleted from under it.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use e2e::api_server::{Answer, ApiServer};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{host, with};

const POLICIES: &str = "manifests/admission/host.yaml";

struct Hosts {
    api: Api<crds::Host>,
}

impl Hosts {
    fn new(server: &ApiServer, namespace: &str) -> Self {
        Self { api: Api::namespaced(server.client(), namespace) }
    }

    async fn create(&self, object: Value) -> Result<()> {
        let mut object = object;
        object["metadata"]["namespace"] = Value::Null;
        self.api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(())
    }

    /// What the API server says to a deletion; nothing is deleted when it is only tried.
    async fn delete(&self, name: &str, dry_run: bool) -> Result<Answer> {
        let params = DeleteParams { dry_run, ..DeleteParams::default() };
        match self.api.delete(name, &params).await {
            Ok(_) => Ok(Answer { code: 200, body: Value::Null }),
            Err(kube::Error::Api(status)) => Ok(Answer { code: status.code, body: serde_json::to_value(&status)? }),
            Err(error) => Err(error.into()),
        }
    }
}

fn claimed(name: &str) -> Value {
    let claim = json!({ "kind": "Machine", "name": "demo-general-x7k2m9", "uid": "u" });
    let object = with(host(name), "spec.claimRef", claim);
    with(object, "metadata.finalizers", json!(["clusterwright.dev/claimed"]))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claimed_host_is_not_deleted_and_the_message_says_how_to_go_on() -> Result<()> {
    let server = ApiServer::shared().await?;
    let policies = lab::project::path(POLICIES).display().to_string();
    server.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &policies])?;
    let hosts = Hosts::new(&server, "default");
    hosts.create(claimed("kept")).await?;
    hosts.create(host("spare")).await?;
    let until = Instant::now() + Duration::from_secs(30);
    let refused = loop {
        let answer = hosts.delete("kept", true).await?;
        if answer.code != 200 {
            break answer;
        }
        ensure!(Instant::now() < until, "a claimed Host can be deleted");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let message = refused.message();
    ensure!(refused.code == 403, "{}: {message}", refused.code);
    for words in [
        "HostClaimed: Host kept is claimed by Machine demo-general-x7k2m9",
        "kubectl -n default delete machines.clusterwright.dev demo-general-x7k2m9",
        "kubectl -n default annotate --overwrite hosts.clusterwright.dev kept clusterwright.dev/release=1",
    ] {
        ensure!(message.contains(words), "the message does not say `{words}`: {message}");
    }
    ensure!(hosts.delete("spare", false).await?.code == 200, "a spare Host cannot be deleted");
    // Given back, it may go.
    let given_back = Patch::Merge(json!({ "spec": { "claimRef": null }, "metadata": { "finalizers": null } }));
    hosts.api.patch("kept", &PatchParams::default(), &given_back).await?;
    let answer = hosts.delete("kept", false).await?;
    ensure!(answer.code == 200, "{}", answer.message());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_is_deleted_takes_its_claimed_hosts_with_it() -> Result<()> {
    let server = ApiServer::shared().await?;
    let policies = lab::project::path(POLICIES).display().to_string();
    server.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &policies])?;
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(server.client());
    let namespace = serde_json::from_value(json!({ "metadata": { "name": "goes" } }))?;
    namespaces.create(&PostParams::default(), &namespace).await?;
    let hosts = Hosts::new(&server, "goes");
    hosts.create(claimed("held")).await?;
    let until = Instant::now() + Duration::from_secs(30);
    while hosts.delete("held", true).await?.code == 200 {
        ensure!(Instant::now() < until, "a claimed Host can be deleted");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    namespaces.delete("goes", &DeleteParams::default()).await?;
    // The API server may look at what it knew of the namespace for a moment.
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let answer = hosts.delete("held", true).await?;
        if answer.code == 200 {
            return Ok(());
        }
        ensure!(Instant::now() < until, "{}", answer.message());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
