//! An Addon on a real cluster, where its Pods run.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use crds::Addon;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::Seen;
use crate::eventually::{Look, eventually};
use crate::lifecycle::stage::{CLUSTER, Stage};
use crate::workload::IMAGE;

const NAME: &str = "agent";
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
        says(stage, &format!("1 cluster Ready version {version}"), ROLLED_OUT).await?;
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
    Ok(Seen::since(began, format!("two versions in {} s, put back, removed", rolled_out.as_secs())))
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

async fn says(stage: &Stage<'_>, wanted: &str, deadline: Duration) -> Result<()> {
    let addons = stage.scenario.api::<Addon>();
    eventually(&format!("the Addon says {wanted:?}"), deadline, async || {
        let message = addons.get(NAME).await?.status.and_then(|status| status.message).unwrap_or_default();
        Ok(if message == wanted { Look::Done(()) } else { Look::Waiting(message) })
    })
    .await
}
