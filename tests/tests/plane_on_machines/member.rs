//! A cluster that the plane's machines reach is its member: it has what a policy gives it, the scheduler goes by its
//! estimators, and it stays a member while the authority of the plane is another one.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::Conditions;
use crds::karmada_deployment::KarmadaMemberPhase;
use crds::names::{annotation, condition};
use e2e::api_server::ApiServer;
use e2e::eventually::{Look, eventually};
use e2e::karmada::node::CONTROLLERS;
use e2e::karmada::progress::until;
use e2e::karmada::room::{answers, divide, free_node, with_disk};
use e2e::karmada::works::{objects, policy, settings};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::Kubeconfig;
use serde_json::json;

use crate::{READY, ROTATED, Story};

const MEMBER: &str = "m1";
/// What its estimators find room for.
const DIVIDED: &str = "divided";

/// A real API server with the controllers that make Pods, which nobody runs.
pub struct Member(ApiServer);

impl Member {
    /// The UIDs of what the plane has made here, and of the Pods.
    pub async fn has(&self) -> Result<BTreeSet<String>> {
        let client = self.0.client();
        eventually("the member has what policies give it", READY, async || {
            let map = objects(&client, "", "v1", "ConfigMap").get_opt("settings").await?;
            let deployment = objects(&client, "apps", "v1", "Deployment").get_opt(DIVIDED).await?;
            let of_it = ListParams::default().labels(&format!("app={DIVIDED}"));
            let pods = objects(&client, "", "v1", "Pod").list(&of_it).await?.items;
            let (Some(map), Some(deployment), 4) = (map, deployment, pods.len()) else {
                return Ok(Look::Waiting(format!("{} Pods", pods.len())));
            };
            let all = pods.into_iter().chain([map, deployment]);
            Ok(Look::Done(all.filter_map(|object| object.metadata.uid).collect()))
        })
        .await
    }

    /// Waits until a value that is written into the plane is here.
    pub async fn gets(&self, story: &Story<'_>, value: &str) -> Result<()> {
        let plane = story.scenario.cluster_client(story.name).await?;
        let change = Patch::Merge(json!({"data": {"a": value}}));
        objects(&plane, "", "v1", "ConfigMap").patch("settings", &PatchParams::default(), &change).await?;
        let there = objects(&self.0.client(), "", "v1", "ConfigMap");
        eventually(&format!("{value} reaches the member"), READY, async || {
            let data = there.get("settings").await?.data["data"].clone();
            Ok(if data["a"] == value { Look::Done(()) } else { Look::Waiting(data.to_string()) })
        })
        .await
    }
}

impl Story<'_> {
    /// It joins, and an estimator of it runs on each machine.
    pub async fn has_a_member(&mut self) -> Result<Member> {
        let member = Member(ApiServer::bare().await?);
        member.0.run_controllers(CONTROLLERS)?;
        free_node(&member.0.client(), "n1", with_disk()).await?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": self.scenario.name, "name": MEMBER},
            "stringData": {"kubeconfig": member.0.checked_kubeconfig()?},
        });
        self.scenario.apply(&secret).await?;
        self.wish["spec"]["estimator"] = json!({});
        self.wish["spec"]["unjoinPolicy"] = json!("Preserve");
        self.wish["spec"]["members"] = json!([{"name": MEMBER, "syncMode": "push", "kubeConfigSecretName": MEMBER}]);
        self.scenario.apply(&self.wish).await?;
        until(self.scenario, self.name, "has a member", READY, async |plane| {
            let members = plane.status.map(|status| status.members).unwrap_or_default();
            let has_joined = members.iter().any(|member| member.phase == KarmadaMemberPhase::Joined);
            Ok(if has_joined { Look::Done(()) } else { Look::Waiting(format!("{members:?}")) })
        })
        .await?;
        self.ready(3).await?;
        self.its_estimators_work().await?;
        let plane = self.scenario.cluster_client(self.name).await?;
        objects(&plane, "", "v1", "ConfigMap").create(&PostParams::default(), &settings()?).await?;
        let policies = objects(&plane, "policy.karmada.io", "v1alpha1", "PropagationPolicy");
        let placed = policy("settings", json!({"clusterAffinity": {"clusterNames": [MEMBER]}}))?;
        policies.create(&PostParams::default(), &placed).await?;
        divide(&plane, DIVIDED, &[MEMBER]).await?;
        member.has().await?;
        self.an_estimator_was_asked().await?;
        self.scenario.say("the member has what policies give it, where its estimators found room");
        Ok(member)
    }

    /// All that it has stays.
    pub async fn has_no_member(&mut self, member: &Member) -> Result<()> {
        let had = member.has().await?;
        self.wish["spec"]["members"] = json!([]);
        self.scenario.apply(&self.wish).await?;
        until(self.scenario, self.name, "has no member", READY, async |plane| {
            let members = plane.status.map(|status| status.members).unwrap_or_default();
            Ok(if members.is_empty() { Look::Done(()) } else { Look::Waiting(format!("{members:?}")) })
        })
        .await?;
        self.ready(3).await?;
        ensure!(member.has().await? == had, "the member had {had:?}");
        let plane = self.scenario.cluster_client(self.name).await?;
        for (group, version, kind, name) in [
            ("policy.karmada.io", "v1alpha1", "PropagationPolicy", "settings"),
            ("policy.karmada.io", "v1alpha1", "PropagationPolicy", DIVIDED),
            ("", "v1", "ConfigMap", "settings"),
            ("apps", "v1", "Deployment", DIVIDED),
        ] {
            objects(&plane, group, version, kind).delete(name, &DeleteParams::default()).await?;
        }
        self.scenario.say("the member has left, with all that it had");
        Ok(())
    }

    /// The plane's authority is another one, from machine to machine.
    pub async fn rotates_its_authority(&self, member: &Member) -> Result<()> {
        let (had, former) = (member.has().await?, self.authority().await?);
        let begun = Instant::now();
        self.annotate(annotation::ROTATE, "ca.1").await?;
        let value = self.asks_for_approval(ROTATED).await?;
        self.annotate(annotation::APPROVE, &value).await?;
        until(self.scenario, self.name, "has the next authority alone", ROTATED, async |plane| {
            let said = plane.condition(condition::AUTHORITIES_ROTATED);
            let is_over = said.is_some_and(|said| said.status == "True" && said.reason == "Rotated");
            Ok(if is_over { Look::Done(()) } else { Look::Waiting(format!("{said:?}")) })
        })
        .await?;
        self.ready(3).await?;
        self.scenario.say(&format!("another authority after {:.1} s", begun.elapsed().as_secs_f32()));
        let present = self.authority().await?;
        ensure!(present.matches("BEGIN CERTIFICATE").count() == 1 && present != former, "the authority is {present}");
        member.gets(self, "rotated").await?;
        ensure!(member.has().await? == had, "the member had {had:?}");
        self.its_estimators_work().await
    }

    /// What clients of the plane trust.
    async fn authority(&self) -> Result<String> {
        let config = Kubeconfig::from_yaml(&self.scenario.kubeconfig(self.name).await?)?;
        let trusted = config.clusters.into_iter().find_map(|it| it.cluster?.certificate_authority_data);
        Ok(String::from_utf8(STANDARD.decode(trusted.context("it trusts nobody")?)?)?)
    }

    /// On each machine of the plane.
    async fn its_estimators_work(&self) -> Result<()> {
        eventually("an estimator on each machine", READY, async || {
            let mut without = Vec::new();
            for machine in self.members().await? {
                let parts = machine.status.clone().map(|status| status.parts).unwrap_or_default();
                let estimators = parts.iter().find(|part| part.name == "estimators");
                if !estimators.is_some_and(|part| part.healthy && part.members.is_empty()) {
                    without.push(format!("{:?}: {estimators:?}", machine.metadata.name));
                }
            }
            Ok(if without.is_empty() { Look::Done(()) } else { Look::Waiting(without.join(", ")) })
        })
        .await
    }

    /// Its own metrics count that: the one beside the scheduler that leads.
    async fn an_estimator_was_asked(&self) -> Result<()> {
        let metrics = format!(
            "at=$(systemctl cat clusterwright-karmada-estimator-{MEMBER} | grep -oE 'metrics-bind-address=[0-9.:]+'); \
             python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())' \
             \"http://${{at#*=}}/metrics\""
        );
        let mut counted = 0;
        for machine in self.its_machines().await? {
            counted += answers(&self.scenario.ssh(machine, &metrics).await?).len();
        }
        ensure!(counted > 0, "no estimator was asked");
        Ok(())
    }
}
