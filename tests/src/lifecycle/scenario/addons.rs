//! An Addon on a real cluster, where its Pods run.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use crds::{Addon, Cluster};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use lab::network::HOST_ADDRESS;
use serde_json::{Value, json};

use super::Seen;
use crate::api_server::free_port;
use crate::charts::{self, Charts};
use crate::eventually::{Look, eventually};
use crate::lifecycle::stage::{CLUSTER, Stage};
use crate::workload::IMAGE;

const NAME: &str = "agent";
/// The Addon with a chart, its release, its namespace, and a label of the clusters that get it.
const CHARTED: &str = "charted";
const ROLLED_OUT: Duration = Duration::from_secs(240);
/// It is compared once a minute.
const PUT_BACK: Duration = Duration::from_secs(120);

/// A Namespace and a DaemonSet: applied, another version, put back, removed.
pub async fn kept(stage: &mut Stage<'_>) -> Result<Seen> {
    let began = Instant::now();
    let namespace = &stage.scenario.name;
    let manifests = format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: {NAME}}}}}\n---\n\
         apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: {NAME}, namespace: {NAME}}}\n\
         spec:\n  selector: {{matchLabels: {{app: {NAME}}}}}\n  template:\n    metadata: {{labels: {{app: {NAME}}}}}\n    \
         spec:\n      terminationGracePeriodSeconds: 1\n      containers:\n      - name: {NAME}\n        image: {IMAGE}\n        \
         command: [sleep, '86400']\n        env: [{{name: VERSION, value: 'v{{{{ addon_version }}}}'}}]\n"
    );
    let source = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": NAME},
        "data": {"all.yaml": manifests},
    });
    stage.scenario.apply(&source).await?;
    let client = stage.client().await?;
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), NAME);
    for version in ["1", "2"] {
        wish(stage, version).await?;
        says(stage, NAME, &format!("1 cluster Ready version {version}"), ROLLED_OUT).await?;
        let status = sets.get(NAME).await?.status.unwrap_or_default();
        ensure!(status.number_ready == status.desired_number_scheduled && status.number_ready > 0, "{status:?}");
    }
    let rolled_out = began.elapsed();

    let by_hand =
        json!({"spec": {"template": {"spec": {"containers": [{"name": NAME, "command": ["sleep", "1000"]}]}}}});
    let params = PatchParams { field_manager: Some("kubectl-edit".into()), ..PatchParams::default() };
    sets.patch(NAME, &params, &Patch::Strategic(by_hand)).await?;
    eventually("what was changed by hand is put back", PUT_BACK, async || {
        let set = serde_json::to_value(sets.get(NAME).await?)?;
        let command = &set["spec"]["template"]["spec"]["containers"][0]["command"];
        Ok(if *command == json!(["sleep", "86400"]) { Look::Done(()) } else { Look::Waiting(command.to_string()) })
    })
    .await?;

    let addons = stage.scenario.api::<Addon>();
    addons.delete(NAME, &DeleteParams::default()).await?;
    eventually("the Addon is gone", ROLLED_OUT, async || {
        let message = addons.get_opt(NAME).await?.map(|addon| addon.status.and_then(|status| status.message));
        Ok(match message {
            None => Look::Done(()),
            Some(message) => Look::Waiting(message.unwrap_or_default()),
        })
    })
    .await?;
    let namespaces: Api<Namespace> = Api::all(client);
    ensure!(namespaces.get_opt(NAME).await?.is_none(), "its Namespace is still there");
    let charted = charted(stage).await?;
    let told = format!("two versions in {} s, put back, removed; {charted}", rolled_out.as_secs());
    Ok(Seen::since(began, told))
}

/// A chart with a hook: installed, another version, a bad one, removed by hand, selected no more.
async fn charted(stage: &mut Stage<'_>) -> Result<String> {
    let began = Instant::now();
    let address = format!("{HOST_ADDRESS}:{}", free_port()?).parse()?;
    let charts = Charts::serve(address, &["1.0.0", "1.1.0", "2.0.0"])?;
    let sets: Api<DaemonSet> = Api::namespaced(stage.client().await?, CHARTED);
    for version in ["1.0.0", "1.1.0"] {
        wish_chart(stage, &charts, version).await?;
        says(stage, CHARTED, &format!("1 cluster Ready version {version}"), ROLLED_OUT).await?;
        ensure!(version_of(&sets).await? == format!("v{version}"), "its DaemonSet has another version");
    }
    let installed = began.elapsed();

    wish_chart(stage, &charts, "2.0.0").await?;
    let failed = "chart agent 2.0.0 failed and was rolled back; revision 4 with chart 1.1.0 serves";
    says(stage, CHARTED, failed, ROLLED_OUT).await?;
    ensure!(version_of(&sets).await? == "v1.1.0", "what was rolled back does not serve");
    wish_chart(stage, &charts, "1.1.0").await?;
    says(stage, CHARTED, "1 cluster Ready version 1.1.0", ROLLED_OUT).await?;

    sets.delete(CHARTED, &DeleteParams::default()).await?;
    eventually("what was removed by hand is put back", PUT_BACK, async || {
        Ok(if sets.get_opt(CHARTED).await?.is_some() { Look::Done(()) } else { Look::Waiting("it is gone".into()) })
    })
    .await?;
    says(stage, CHARTED, "1 cluster Ready version 1.1.0", ROLLED_OUT).await?;

    let clusters = stage.scenario.api::<Cluster>();
    label(&clusters, Value::Null).await?;
    eventually("the release is uninstalled where it is selected no more", ROLLED_OUT, async || {
        Ok(if sets.get_opt(CHARTED).await?.is_none() { Look::Done(()) } else { Look::Waiting("it is there".into()) })
    })
    .await?;
    says(stage, CHARTED, "no Cluster has the labels that spec.clusterSelector asks for", ROLLED_OUT).await?;
    stage.scenario.api::<Addon>().delete(CHARTED, &DeleteParams::default()).await?;
    Ok(format!("two versions of a chart in {} s, a bad one rolled back, put back, uninstalled", installed.as_secs()))
}

/// `v1.0.0`, as the containers of the release have it.
async fn version_of(sets: &Api<DaemonSet>) -> Result<String> {
    let set = serde_json::to_value(sets.get(CHARTED).await?)?;
    Ok(set["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"].as_str().unwrap_or_default().to_owned())
}

async fn label(clusters: &Api<Cluster>, value: Value) -> Result<()> {
    let patch = json!({"metadata": {"labels": {CHARTED: value}}});
    clusters.patch(CLUSTER, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

async fn wish_chart(stage: &Stage<'_>, charts: &Charts, version: &str) -> Result<()> {
    label(&stage.scenario.api::<Cluster>(), json!("yes")).await?;
    let addon = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Addon",
        "metadata": {"namespace": stage.scenario.name, "name": CHARTED},
        "spec": {
            "clusterSelector": {"matchLabels": {CHARTED: "yes"}}, "resyncSeconds": 60,
            "source": {"chart": {
                "repository": charts.url, "name": charts::NAME, "version": version, "digest": charts.digests[version],
                "namespace": CHARTED, "timeoutSeconds": 60, "values": {"image": IMAGE},
            }},
        },
    });
    stage.scenario.apply(&addon).await?;
    Ok(())
}

async fn wish(stage: &Stage<'_>, version: &str) -> Result<()> {
    let addon = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Addon",
        "metadata": {"namespace": stage.scenario.name, "name": NAME},
        "spec": {
            "clusterRef": {"name": CLUSTER}, "version": version, "resyncSeconds": 60,
            "source": {"manifests": {"template": true, "from": [{"configMapRef": {"name": NAME}}]}},
        },
    });
    stage.scenario.apply(&addon).await?;
    Ok(())
}

async fn says(stage: &Stage<'_>, name: &str, wanted: &str, deadline: Duration) -> Result<()> {
    let addons = stage.scenario.api::<Addon>();
    eventually(&format!("Addon {name} says {wanted:?}"), deadline, async || {
        let message = addons.get(name).await?.status.and_then(|status| status.message).unwrap_or_default();
        Ok(if message.contains(wanted) { Look::Done(()) } else { Look::Waiting(message) })
    })
    .await
}
