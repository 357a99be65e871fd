//! The operator's probe of a plane: Karmada answers it, nothing of it is for a member, and where it is not answered
//! that is said.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::conditions;
use e2e::karmada::probe::{PROBE, binding, template};
use e2e::karmada::works::api_of;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::World;

/// Within this what does not work is said.
const SAID: Duration = Duration::from_secs(60);

/// Its ResourceBinding is of the template as it is, has no members, and no Work.
pub(super) async fn is_answered(world: &World, plane: &Client) -> Result<()> {
    world
        .until("answered", async |_| {
            let template = template(plane).await?.context("there is no template")?;
            let Some((resource, clusters)) = binding(plane).await? else { return Ok(false) };
            ensure!(clusters.is_null(), "the probe is for members: {clusters}");
            Ok(resource["resourceVersion"] == json!(template.resource_version())
                && resource["uid"] == json!(template.uid()))
        })
        .await?;
    let works = api_of(plane, "work.karmada.io", "v1alpha1", "Work").list(&ListParams::default()).await?;
    let of_probe = works.iter().find(|work| work.data.to_string().contains(PROBE));
    ensure!(of_probe.is_none(), "{:?}", of_probe.map(ResourceExt::name_any));
    Ok(())
}

/// All programs work, and none may write the ResourceBinding.
pub(super) async fn a_binding_that_is_refused_is_said(world: &World, plane: &Client) -> Result<()> {
    let policies = api_of(plane, "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy");
    let bindings = api_of(plane, "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding");
    let rules = json!([{
        "apiGroups": ["work.karmada.io"], "apiVersions": ["*"], "resources": ["resourcebindings"],
        "operations": ["CREATE", "UPDATE"],
    }]);
    let namespace = json!({"matchLabels": {"kubernetes.io/metadata.name": PROBE}});
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": PROBE},
        "spec": {
            "matchConstraints": {"resourceRules": rules, "namespaceSelector": namespace},
            "validations": [{"expression": "false", "message": "none is written"}],
        },
    });
    let of_policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": PROBE}, "spec": {"policyName": PROBE, "validationActions": ["Deny"]},
    });
    policies.create(&PostParams::default(), &serde_json::from_value(policy)?).await?;
    bindings.create(&PostParams::default(), &serde_json::from_value(of_policy)?).await?;
    let begun = Instant::now();
    world
        .until("not propagating", async |world| {
            let (reason, message) = components(world).await?;
            if reason == "PropagationStalled" {
                ensure!(message.contains("clusterwright-probe-configmap"), "{message}");
                return Ok(!world.is_ready().await?);
            }
            // Until the policy is heeded it is answered all the same.
            let template = template(plane).await?.context("there is no template")?;
            let (resource, _) = binding(plane).await?.context("there is no binding")?;
            if resource["resourceVersion"] == json!(template.resource_version()) {
                ask_again(world, plane).await?;
            }
            Ok(false)
        })
        .await?;
    ensure!(begun.elapsed() < SAID, "it was said after {:?}", begun.elapsed());
    bindings.delete(PROBE, &DeleteParams::default()).await?;
    policies.delete(PROBE, &DeleteParams::default()).await?;
    world.until("propagating again", World::is_ready).await
}

/// It does nothing, and does not end.
pub(super) async fn a_stopped_controller_manager_is_said(world: &World) -> Result<()> {
    let pids = world.node.pids();
    let of_it = pids.iter().find(|(component, _)| component == "karmada-controller-manager");
    let pid = Pid::from_raw(i32::try_from(of_it.context("it does not run")?.1)?);
    kill(pid, Signal::SIGSTOP)?;
    let begun = Instant::now();
    let said = world
        .until("said to be stopped", async |world| {
            let (_, message) = components(world).await?;
            Ok(message.contains("controller-manager") && !world.is_ready().await?)
        })
        .await;
    kill(pid, Signal::SIGCONT)?;
    said?;
    ensure!(begun.elapsed() < SAID, "it was said after {:?}", begun.elapsed());
    world.until("ready once it goes on", World::is_ready).await
}

/// Takes away what the template was asked, and has the operator look.
async fn ask_again(world: &World, plane: &Client) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(plane.clone(), PROBE);
    let patch: Value = json!({"data": {"askedAt": "anew"}});
    maps.patch(PROBE, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    world.patch(json!({"metadata": {"annotations": {"look": jiff::Timestamp::now().to_string()}}})).await
}

/// What is said of the components: the reason and the message.
async fn components(world: &World) -> Result<(String, String)> {
    let status = world.planes().get(world.name).await?.status.unwrap_or_default();
    let said = conditions::find(&status.conditions, "ComponentsReady").context("nothing is said")?;
    Ok((said.reason.clone(), said.message.clone()))
}
