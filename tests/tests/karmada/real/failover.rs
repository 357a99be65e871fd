//! A member that is tainted loses its workloads to another one, by Karmada's own failover.

use anyhow::Result;
use e2e::karmada::works::objects;
use kube::api::PostParams;
use serde_json::json;

use super::World;
use super::members::{Member, join, wanted, web};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Karmada's programs: make karmada"]
async fn what_runs_in_a_member_that_is_tainted_runs_in_another_one() -> Result<()> {
    let world = World::start().await?;
    let evicts =
        json!({"enable-no-execute-taint-eviction": "true", "no-execute-taint-eviction-purge-mode": "Directly"});
    world
        .patch(json!({"spec": {"featureGates": {"Failover": true}, "controllerManager": {"extraArgs": evicts}}}))
        .await?;
    world.until("ready", World::is_ready).await?;
    let members =
        [Member::start(&world, "m1", world.net + 1).await?, Member::start(&world, "m2", world.net + 2).await?];
    join(&world, &members, &["push", "push"]).await?;
    let plane = world.plane().await?;
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": "one"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
            "placement": {
                "clusterAffinity": {"clusterNames": ["m1", "m2"]},
                "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
            },
        },
    });
    let policies = objects(&plane, "policy.karmada.io", "v1alpha1", "PropagationPolicy");
    policies.create(&PostParams::default(), &serde_json::from_value(policy)?).await?;
    let deployments = objects(&plane, "apps", "v1", "Deployment");
    deployments.create(&PostParams::default(), &web()?).await?;
    world.until("running in one", async |_| Ok(runs(&members[0]).await? != runs(&members[1]).await?)).await?;
    let (from, to) = if runs(&members[0]).await? { (0, 1) } else { (1, 0) };
    let mut both = wanted(&[("m1", "push"), ("m2", "push")]);
    both[from]["taints"] = json!([{"key": "maintenance", "effect": "NoExecute"}]);
    world.patch(json!({"spec": {"members": both}})).await?;
    world
        .until("running in the other one", async |_| Ok(runs(&members[to]).await? && !runs(&members[from]).await?))
        .await
}

async fn runs(member: &Member) -> Result<bool> {
    Ok(member.api("apps", "Deployment").get_opt("web").await?.is_some())
}
