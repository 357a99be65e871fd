//! What happens in a plane before and after it is backed up.

use anyhow::{Context, Result, ensure};
use e2e::karmada::works::objects;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use super::super::World;
use super::super::members::{Member, a_change_reaches};

fn config_map(name: &str) -> Result<DynamicObject> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}});
    Ok(serde_json::from_value(object)?)
}

/// Makes a ConfigMap in the plane, and waits until all members have it.
pub(super) async fn give(world: &World, members: &[Member], name: &str) -> Result<()> {
    let plane = world.plane().await?;
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": name},
        "spec": {
            "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": name}],
            "placement": {"clusterAffinity": {"clusterNames": ["m1", "m2", "m3", "m4"]}},
        },
    });
    let policies = objects(&plane, "policy.karmada.io", "v1alpha1", "PropagationPolicy");
    if policies.get_opt(name).await?.is_none() {
        policies.create(&PostParams::default(), &serde_json::from_value(policy)?).await?;
    }
    objects(&plane, "", "v1", "ConfigMap").create(&PostParams::default(), &config_map(name)?).await?;
    world.until(&format!("{name} is there"), async |_| Ok(having(members, name).await? == members.len())).await
}

/// Deletes a ConfigMap in the plane, and waits until no member has it.
pub(super) async fn take(world: &World, members: &[Member], name: &str) -> Result<()> {
    objects(&world.plane().await?, "", "v1", "ConfigMap").delete(name, &DeleteParams::default()).await?;
    world.until(&format!("{name} is gone"), async |_| Ok(having(members, name).await? == 0)).await
}

/// How many members have a ConfigMap.
async fn having(members: &[Member], name: &str) -> Result<usize> {
    let mut count = 0;
    for member in members {
        count += usize::from(member.api("", "ConfigMap").get_opt(name).await?.is_some());
    }
    Ok(count)
}

/// The Work by which the first member has the ConfigMap `going`.
async fn work_of_going(world: &World) -> Result<(Api<DynamicObject>, DynamicObject)> {
    let plane = world.plane().await?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("work.karmada.io", "v1alpha1", "Work"));
    let works: Api<DynamicObject> = Api::namespaced_with(plane, "karmada-es-m1", &resource);
    let listed = works.list(&ListParams::default()).await?.items;
    let is_it = |work: &DynamicObject| work.data["spec"]["workload"]["manifests"][0]["metadata"]["name"] == "going";
    let work = listed.into_iter().find(is_it).context("no Work is of it")?;
    Ok((works, work))
}

/// `going` is deleted, and its Work for the first member stays for as long as somebody holds it.
pub(super) async fn deletion_is_held(world: &World, members: &[Member]) -> Result<()> {
    let (works, work) = work_of_going(world).await?;
    let mut finalizers = work.finalizers().to_vec();
    finalizers.push("test.clusterwright.dev/held".to_owned());
    hold(&works, &work.name_any(), &json!(finalizers)).await?;
    take(world, members, "going").await?;
    let (_, work) = work_of_going(world).await?;
    ensure!(work.metadata.deletion_timestamp.is_some(), "its Work is not being deleted");
    Ok(())
}

async fn hold(works: &Api<DynamicObject>, name: &str, finalizers: &Value) -> Result<()> {
    let patch = json!({"metadata": {"finalizers": finalizers}});
    works.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

/// One is changed, one deleted, one made; and what was being deleted is there again.
pub(super) async fn changes_since(world: &World, members: &[Member]) -> Result<()> {
    a_change_reaches(world, members, "since the backup").await?;
    take(world, members, "removed").await?;
    give(world, members, "added").await?;
    let (works, work) = work_of_going(world).await?;
    hold(&works, &work.name_any(), &Value::Null).await?;
    give(world, members, "going").await
}
