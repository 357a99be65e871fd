//! The cluster that is the plane's member: its kubelet runs what a policy gives it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::karmada_deployment::{KarmadaMemberPhase, KarmadaMemberStatus};
use crds::{ClusterDeployment, KarmadaDeployment};
use e2e::eventually::{Look, eventually};
use e2e::karmada::progress::until;
use e2e::karmada::works::objects;
use e2e::scenario::Scenario;
use e2e::workload::IMAGE;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::time::sleep;

use crate::{NAME, SEEN, Story, host};

/// What it runs as a Push member, and as a Pull member.
pub const OF_PUSH: &str = "web-push";
pub const OF_PULL: &str = "web-pull";
/// As long as nothing may change that should not.
const QUIET: Duration = Duration::from_secs(10);

/// The cluster, as its administrator has it.
pub struct MemberCluster {
    pub client: Client,
}

impl MemberCluster {
    pub async fn open(scenario: &Scenario) -> Result<Self> {
        Ok(Self { client: host::open(scenario, "member").await? })
    }

    /// The UIDs of a Deployment of this name and of its Pods, all of which run and are ready.
    pub async fn runs(&self, name: &str) -> Result<BTreeSet<String>> {
        eventually(&format!("{name} runs in the member"), SEEN, async || {
            let deployments: Api<Deployment> = Api::default_namespaced(self.client.clone());
            let deployment = deployments.get(name).await?;
            let ready = deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default();
            let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
            let pods = pods.list(&ListParams::default().labels(&format!("app={name}"))).await?;
            if ready != 2 || pods.items.len() != 2 {
                return Ok(Look::Waiting(format!("{ready} of {} Pods are ready", pods.items.len())));
            }
            let uids = pods.iter().map(ResourceExt::uid).chain([deployment.uid()]);
            Ok(Look::Done(uids.flatten().collect()))
        })
        .await
    }

    /// Whether the agent runs as a Pod that is ready.
    async fn has_an_agent(&self) -> Result<()> {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), "karmada-system");
        let agent = deployments.get("karmada-agent").await?;
        let ready = agent.status.and_then(|status| status.ready_replicas);
        ensure!(ready == Some(1), "{ready:?} Pods of karmada-agent are ready");
        Ok(())
    }
}

impl Story<'_> {
    /// What a policy gave it stays when the policy goes, and when the member leaves. The host is refused as a member.
    pub async fn runs_pods_of_a_push_member(&mut self) -> Result<()> {
        let member =
            |name: &str, cluster: &str| json!({"name": name, "syncMode": "push", "clusterRef": {"name": cluster}});
        self.wish["spec"]["members"] = json!([member("push", "member"), member("itself", "host")]);
        self.apply().await?;
        self.joined("push").await?;
        let host = self.member_status("itself").await?.context("nothing is said of the host as a member")?;
        let is_refused = host.phase == KarmadaMemberPhase::Blocked && host.reason == "MemberIsHost";
        ensure!(is_refused, "the host as a member is {host:?}");
        self.wish["spec"]["members"] = json!([member("push", "member")]);
        self.apply().await?;
        self.ready().await?;
        self.propagate(OF_PUSH, "push").await?;
        let running = self.member.runs(OF_PUSH).await?;
        self.sees_them_ready(OF_PUSH).await?;
        self.scenario.say("Pods of a policy run in the Push member, and the plane sees them");

        let plane = self.scenario.cluster_client(NAME).await?;
        let policies = objects(&plane, "policy.karmada.io", "v1alpha1", "PropagationPolicy");
        policies.delete(OF_PUSH, &DeleteParams::default()).await?;
        sleep(QUIET).await;
        ensure!(self.member.runs(OF_PUSH).await? == running, "without the policy other Pods run than {running:?}");
        self.wish["spec"]["members"] = json!([]);
        self.apply().await?;
        self.left("push").await?;
        sleep(QUIET).await;
        ensure!(self.member.runs(OF_PUSH).await? == running, "without the plane other Pods run than {running:?}");
        self.scenario.say("they run without the policy, and without the plane");
        Ok(())
    }

    /// The same cluster, with an agent, by itself: it was built here, has come up, and is given the label.
    pub async fn runs_pods_of_a_pull_member(&mut self) -> Result<()> {
        let labels = json!({"plane": NAME});
        self.wish["spec"]["autoJoin"] = json!({"selector": {"matchLabels": labels}, "rules": [{"syncMode": "pull"}]});
        self.apply().await?;
        let clusters = self.scenario.api::<ClusterDeployment>();
        let labelled = Patch::Merge(json!({"metadata": {"labels": labels}}));
        clusters.patch("member", &PatchParams::default(), &labelled).await?;
        self.joined("member").await?;
        self.ready().await?;
        self.member.has_an_agent().await?;
        self.changes_reach_the_pull_member(OF_PULL).await?;
        self.scenario.say("Pods of a policy run in the Pull member, and the plane sees them");
        Ok(())
    }

    /// What is propagated now runs there.
    pub async fn changes_reach_the_pull_member(&self, name: &str) -> Result<()> {
        self.propagate(name, "member").await?;
        self.member.runs(name).await?;
        self.sees_them_ready(name).await
    }

    /// A Deployment of two Pods, for one member.
    async fn propagate(&self, name: &str, member: &str) -> Result<()> {
        let plane = self.scenario.cluster_client(NAME).await?;
        let container = json!({"name": "web", "image": IMAGE, "command": ["httpd", "-f", "-p", "8080", "-h", "/tmp"]});
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {
                "replicas": 2, "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
            },
        });
        let policy = json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": name},
            "spec": {
                "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}],
                "placement": {"clusterAffinity": {"clusterNames": [member]}},
            },
        });
        for (group, version, kind, object) in
            [("apps", "v1", "Deployment", deployment), ("policy.karmada.io", "v1alpha1", "PropagationPolicy", policy)]
        {
            let api = objects(&plane, group, version, kind);
            api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        }
        Ok(())
    }

    /// The Deployment in the plane has the status of the one in the member.
    pub async fn sees_them_ready(&self, name: &str) -> Result<()> {
        let plane = self.scenario.cluster_client(NAME).await?;
        let deployments = objects(&plane, "apps", "v1", "Deployment");
        eventually(&format!("the plane sees that {name} is ready"), SEEN, async || {
            let status = deployments.get(name).await?.data["status"].clone();
            Ok(if status["readyReplicas"] == 2 { Look::Done(()) } else { Look::Waiting(status.to_string()) })
        })
        .await
    }

    async fn member_status(&self, name: &str) -> Result<Option<KarmadaMemberStatus>> {
        Ok(found(&self.scenario.api::<KarmadaDeployment>().get(NAME).await?, name))
    }

    async fn joined(&self, name: &str) -> Result<()> {
        until(self.scenario, NAME, &format!("has {name} as a member"), SEEN, async |plane| {
            let member = found(&plane, name);
            let has_joined = member.as_ref().is_some_and(|member| member.phase == KarmadaMemberPhase::Joined);
            Ok(if has_joined { Look::Done(()) } else { Look::Waiting(format!("{member:?}")) })
        })
        .await
    }

    async fn left(&self, name: &str) -> Result<()> {
        until(self.scenario, NAME, &format!("has {name} as a member no more"), SEEN, async |plane| {
            Ok(match found(&plane, name) {
                None => Look::Done(()),
                Some(member) => Look::Waiting(format!("{member:?}")),
            })
        })
        .await
    }
}

/// What the status says of a member.
fn found(plane: &KarmadaDeployment, name: &str) -> Option<KarmadaMemberStatus> {
    let status = plane.status.as_ref()?;
    status.members.iter().find(|member| member.name == name).cloned()
}
