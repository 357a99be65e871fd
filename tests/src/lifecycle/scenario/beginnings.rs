//! A cluster begins with a backup: another one's, elsewhere; or its own, when all its machines are lost.

use std::time::{Duration, Instant};

use age::secrecy::ExposeSecret;
use age::x25519::Identity;
use anyhow::{Context, Result, ensure};
use crds::ClusterDeployment;
use crds::cluster_deployment::RestoredFrom;
use crds::etcd_backup::BackupContent;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenReview, TokenReviewSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::task::block_in_place;

use super::Seen;
use super::restores::Backups;
use crate::client::apply;
use crate::eventually::{Look, eventually};
use crate::lifecycle::stage::{CLUSTER, READY, Stage};
use crate::object_storage::ObjectStorage;
use crate::scenario::{Scenario, within};
use crate::{backups, objects, workload};

/// The namespace, and the cluster, that the old one moves to.
const ELSEWHERE: &str = "lifecycle-elsewhere";
const MOVED: &str = "moved";
/// Until the keys are fetched.
const FETCHED: Duration = Duration::from_secs(240);
/// Until a cluster whose machines are dead is one again: it is lost after a minute, and then installed.
const REBUILT: Duration = Duration::from_secs(900);
const LOST_AFTER: u64 = 60;
/// What the cluster runs, and keeps.
const WORKLOAD: &str = "kept";

/// A cluster of another name, in another namespace and on other machines, has the workloads and the Secrets of one that
/// is deleted, and believes its tokens.
pub async fn migrate(stage: &mut Stage<'_>) -> Result<Seen> {
    let storage = Backups::prepare(stage, "migrate").await?;
    let old = Old::prepare(stage, &storage).await?;
    stage.scenario.delete_cluster(CLUSTER, READY).await?;
    let pod_cidr = stage.wish["spec"]["networking"]["podCIDR"].as_str().context("it has a podCIDR")?.to_owned();
    let began = Instant::now();
    within(ELSEWHERE, async |scenario| {
        let machines = scenario.machines(&["a", "b"]).await?;
        let [first, second] = machines.as_slice() else { anyhow::bail!("there are {} machines", machines.len()) };
        give(scenario, &storage.bucket, storage.name, &storage.identity).await?;
        let mut wish = objects::cluster(&scenario.name, MOVED, &pod_cidr, &[first.name()], &[second.name()]);
        wish["spec"]["restoreFrom"] = json!({
            "source": {"stored": {"storageRef": {"name": storage.name}, "location": old.content.location}},
            "identityRef": {"name": "age"},
        });
        scenario.apply(&wish).await?;
        approve(scenario, MOVED).await?;
        let deployment = scenario.ready(MOVED, READY).await?;
        let client = scenario.cluster_client(MOVED).await?;
        old.is_there(scenario, &client, 2).await?;
        ensure!(restored(&deployment)?.restored_at.is_some(), "its status does not say that it was restored");
        scenario.delete_cluster(MOVED, READY).await
    })
    .await?;
    Ok(Seen::since(began, "workload, Secret and tokens are there, on other machines only, and so it was deleted"))
}

/// All machines lose their power; spares become the cluster, with what its newest backup holds.
pub async fn restore_latest(stage: &mut Stage<'_>) -> Result<Seen> {
    let storage = Backups::prepare(stage, "latest").await?;
    give_identity(stage.scenario, &storage.identity).await?;
    stage.wish["spec"]["recovery"] =
        json!({"strategy": "RestoreLatest", "lostAfterSeconds": LOST_AFTER, "identityRef": {"name": "age"}});
    stage.apply().await?;
    let count = stage.in_use().await?.len();
    let lost = stage.in_use().await?;
    let old = Old::prepare(stage, &storage).await?;
    for machine in &lost {
        stage.kill(machine)?;
    }
    let began = Instant::now();
    eventually("the cluster is built anew", REBUILT, async || {
        let status = stage.deployment().await?.status.unwrap_or_default();
        let restored = status.restored_from.and_then(|restored| restored.restored_at);
        Ok(match restored {
            Some(_) => Look::Done(()),
            None => Look::Waiting(status.message.unwrap_or_default()),
        })
    })
    .await?;
    stage.ready(count).await?;
    let now = stage.in_use().await?;
    ensure!(
        now.iter().all(|machine| lost.iter().all(|dead| dead.name() != machine.name())),
        "a lost machine is in use"
    );
    old.is_there(stage.scenario, &stage.client().await?, count).await?;
    ensure!(
        restored(&stage.deployment().await?)?.location == old.content.location,
        "it was restored from another backup"
    );
    Ok(Seen::since(began, format!("{count} spares are the cluster, with its workload, Secret and tokens")))
}

fn restored(deployment: &ClusterDeployment) -> Result<&RestoredFrom> {
    deployment.status.as_ref().and_then(|status| status.restored_from.as_ref()).context("nothing was restored")
}

/// What the old cluster ran when it was backed up.
struct Old {
    content: BackupContent,
    /// Of a ServiceAccount.
    token: String,
}

impl Old {
    async fn prepare(stage: &Stage<'_>, storage: &Backups) -> Result<Self> {
        let client = stage.client().await?;
        let meta = || json!({"name": WORKLOAD, "namespace": "default"});
        let labels = json!({"app": WORKLOAD});
        let container = json!({"name": WORKLOAD, "image": workload::IMAGE, "command": ["sleep", "1000000"]});
        for object in [
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta(), "stringData": {"word": "sesame"}}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta()}),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(), "spec": {
                "replicas": 2, "selector": {"matchLabels": labels}, "template": {
                    "metadata": {"labels": labels},
                    "spec": {"serviceAccountName": WORKLOAD, "terminationGracePeriodSeconds": 0, "containers": [container]},
                },
            }}),
        ] {
            apply(&client, &object).await?;
        }
        runs(&client).await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
        let request = accounts.create_token_request(WORKLOAD, &PostParams::default(), &TokenRequest::default()).await?;
        let token = request.status.context("there is no token")?.token;
        let content = backups::take(stage.scenario, storage.name, CLUSTER, storage.name, &storage.identity).await?;
        Ok(Self { content, token })
    }

    /// It runs there, on exactly so many Nodes, all of which are Ready.
    async fn is_there(&self, scenario: &Scenario, client: &Client, nodes: usize) -> Result<()> {
        let nodes = workload::node_names(&workload::nodes_ready(client, nodes, READY).await?);
        scenario.say(&format!("the Nodes are {}", nodes.join(", ")));
        runs(client).await?;
        let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
        let word = secrets.get(WORKLOAD).await?.data.and_then(|mut data| data.remove("word"));
        ensure!(word.is_some_and(|word| word.0 == b"sesame"), "the Secret cannot be decrypted, or is another");
        let reviews: Api<TokenReview> = Api::all(client.clone());
        let spec = TokenReviewSpec { token: Some(self.token.clone()), ..TokenReviewSpec::default() };
        let review = reviews.create(&PostParams::default(), &TokenReview { spec, ..TokenReview::default() }).await?;
        let status = review.status.unwrap_or_default();
        ensure!(
            status.authenticated == Some(true),
            "the token of a ServiceAccount is not believed: {:?}",
            status.error
        );
        Ok(())
    }
}

/// Waits until both Pods of the workload are Ready.
async fn runs(client: &Client) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    eventually("the workload runs", READY, async || {
        let status = deployments.get(WORKLOAD).await?.status.unwrap_or_default();
        Ok(match status.ready_replicas {
            Some(2) if status.replicas == Some(2) => Look::Done(()),
            _ => Look::Waiting(format!("{:?} of {:?} Pods are Ready", status.ready_replicas, status.replicas)),
        })
    })
    .await
}

/// The storage and the identity, in another namespace.
async fn give(scenario: &Scenario, bucket: &ObjectStorage, name: &str, identity: &Identity) -> Result<()> {
    for object in bucket.objects(&scenario.name, name) {
        scenario.apply(&object).await?;
    }
    give_identity(scenario, identity).await
}

async fn give_identity(scenario: &Scenario, identity: &Identity) -> Result<()> {
    let key = identity.to_string();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": scenario.name, "name": "age"},
        "stringData": {"identity": format!("{}\n", key.expose_secret())},
    });
    scenario.apply(&secret).await?;
    Ok(())
}

/// Waits until a ClusterDeployment asks whether it may begin with the backup, and runs the command that it says.
async fn approve(scenario: &Scenario, cluster: &str) -> Result<()> {
    let api = scenario.api::<ClusterDeployment>();
    let mut last = String::new();
    let asked = eventually("it asks for an approval", FETCHED, async || {
        let message = api.get(cluster).await?.status.and_then(|status| status.message).unwrap_or_default();
        if message != last {
            scenario.say(&format!("{cluster}: {message}"));
            last.clone_from(&message);
        }
        Ok(if message.contains("To do it: kubectl ") { Look::Done(message) } else { Look::Waiting(message) })
    })
    .await?;
    let hosts = scenario.api::<crds::Host>().list(&Default::default()).await?;
    let claimed: Vec<_> =
        hosts.iter().filter(|host| host.spec.claim_ref.is_some()).map(ResourceExt::name_any).collect();
    ensure!(claimed.is_empty(), "claimed before it was approved: {claimed:?}");
    let (_, command) = asked.split_once("To do it: kubectl ").context("there is no command")?;
    let (command, _) = command.split_once(';').unwrap_or((command, ""));
    let words: Vec<&str> = command.split(' ').collect();
    let said = block_in_place(|| scenario.lab().metadata().kubectl(&words))?;
    scenario.say(said.trim());
    Ok(())
}
