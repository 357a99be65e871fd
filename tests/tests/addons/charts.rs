//! A chart on one of the clusters: the real Helm against a real API server.

use anyhow::{Context, Result, ensure};
use e2e::api_server::free_port;
use e2e::charts::{Charts, NAME};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams};
use serde_json::{Value, json};

use super::kubelet::Kubelet;
use super::{World, api, config_maps};

const SECRET: &str = "a-value-that-no-log-has";
const OBJECT: &str = "agent-edge";

struct Chart<'a> {
    world: &'a World,
    charts: Charts,
    kubelet: Kubelet,
}

impl Chart<'_> {
    async fn wants(&self, version: &str, more: Value) -> Result<()> {
        let mut chart = json!({
            "repository": self.charts.url, "name": NAME, "version": version, "digest": self.charts.digests[version],
            "namespace": "charts", "timeoutSeconds": 10, "valuesFrom": [{"secretRef": {"name": "chart-values"}}],
            "overrides": [{"clusters": ["edge"], "values": {"word": "of edge"}}],
        });
        chart.as_object_mut().context("no chart")?.extend(more.as_object().cloned().unwrap_or_default());
        let spec = json!({"clusterRef": {"name": "edge"}, "source": {"chart": chart}});
        let object = json!({"apiVersion": "clusterwright.dev/v1alpha1", "kind": "Addon", "metadata": {"name": NAME}, "spec": spec});
        self.world.ours(&object, "addons").await
    }

    /// Waits until the ConfigMap of the release has this.
    async fn has(&self, name: &str, key: &str, wanted: Option<&str>) -> Result<()> {
        let maps = config_maps(&self.world.edge, "charts");
        self.world
            .until(&format!("charts/{name}.{key} to be {wanted:?}"), async || {
                let found = maps.get_opt(name).await?;
                let value = found.map(|found| found.data["data"][key].as_str().unwrap_or("").to_owned());
                Ok((value.as_deref() == wanted, format!("{value:?}\n{}", self.kubelet.output())))
            })
            .await
    }

    async fn says(&self, wanted: &str) -> Result<()> {
        let said = self.world.says(OBJECT, wanted).await;
        said.with_context(|| self.kubelet.output())
    }

    async fn release(&self) -> Result<Value> {
        let status = self.world.cluster_addons().get(OBJECT).await?.status.context("no status")?;
        Ok(serde_json::to_value(status.release.context("no release")?)?)
    }
}

/// It is installed with the cluster's values, and its log has no secret.
async fn installs(chart: &Chart<'_>) -> Result<()> {
    chart.wants("1.0.0", json!({})).await?;
    chart.says("release agent has revision 1 with chart agent 1.0.0: 1 object as wanted").await?;
    chart.has(NAME, "word", Some("of edge")).await?;
    chart.has("agent-hook", "revision", Some("1")).await?;
    chart.world.says(NAME, "1 cluster Ready version 1.0.0").await?;
    let release = chart.release().await?;
    ensure!(
        release["chartVersion"] == "1.0.0" && release["digest"] == chart.charts.digests["1.0.0"].as_str(),
        "{release}"
    );
    let output = chart.kubelet.output();
    ensure!(output.contains("has the secret [secret]") && !output.contains(SECRET), "{output}");
    let secrets = api(&chart.world.metadata.client(), "", "Secret", "secrets", super::NAMESPACE);
    let left = secrets.list(&ListParams::default().labels("clusterwright.dev/cluster-addon")).await?;
    ensure!(left.items.is_empty(), "what a Job was given is still there: {:?}", left.items);
    Ok(())
}

/// Another version, and other values.
async fn upgrades(chart: &Chart<'_>) -> Result<()> {
    chart.wants("1.1.0", json!({})).await?;
    chart.says("revision 2 with chart agent 1.1.0").await?;
    chart.has("agent-hook", "revision", Some("2")).await?;
    chart.wants("1.1.0", json!({"overrides": [{"clusterSelector": {"matchLabels": {"stage": "test"}}, "values": {"word": "another"}}]})).await?;
    chart.has(NAME, "word", Some("another")).await?;
    chart.says("revision 3 with chart agent 1.1.0").await?;
    Ok(())
}

/// A version whose hook fails is rolled back, and the former one serves.
async fn rolls_back(chart: &Chart<'_>) -> Result<()> {
    chart.wants("2.0.0", json!({})).await?;
    chart.says("chart agent 2.0.0 failed and was rolled back; revision 5 with chart 1.1.0 serves").await?;
    chart
        .world
        .says(NAME, "1 cluster failed: ClusterAddon agent-edge: chart agent 2.0.0 failed and was rolled back")
        .await?;
    chart.has(NAME, "version", Some("1.1.0")).await?;
    chart.wants("1.1.0", json!({})).await?;
    chart.says("with chart agent 1.1.0: 1 object as wanted").await?;
    chart.has(NAME, "word", Some("of edge")).await
}

/// What is removed by hand comes back.
async fn keeps(chart: &Chart<'_>) -> Result<()> {
    config_maps(&chart.world.edge, "charts").delete(NAME, &DeleteParams::default()).await?;
    chart.world.poke(OBJECT).await?;
    chart.has(NAME, "word", Some("of edge")).await?;
    chart.says("with chart agent 1.1.0: 1 object as wanted").await
}

/// With the Addon the release goes.
async fn leaves(chart: &Chart<'_>) -> Result<()> {
    chart.world.gone().await?;
    chart.has(NAME, "version", None).await?;
    let secrets: Api<DynamicObject> = api(&chart.world.edge.client(), "", "Secret", "secrets", "charts");
    let left = secrets.list(&ListParams::default().labels("owner=helm")).await?;
    ensure!(left.items.is_empty(), "revisions of the release are still there");
    Ok(())
}

pub async fn all(world: &World) -> Result<()> {
    let address = format!("127.0.0.1:{}", free_port()?).parse()?;
    let chart = Chart {
        world,
        charts: Charts::serve(address, &["1.0.0", "1.1.0", "2.0.0"])?,
        kubelet: Kubelet::start(world.metadata.client(), super::NAMESPACE).await?,
    };
    let values = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "chart-values"},
        "stringData": {"values.yaml": format!("{{word: of the Secret, secret: {SECRET}}}")},
    });
    world.put("", "Secret", "secrets", &values).await?;
    installs(&chart).await?;
    upgrades(&chart).await?;
    rolls_back(&chart).await?;
    keeps(&chart).await?;
    leaves(&chart).await
}
