//! Estimators of members: what is made for one on a real host and in a real member, and what its account may do there.
//! The program itself is not here; that its Deployment is ready is written by hand.

use anyhow::{Context, Result, ensure};
use crds::Conditions;
use crds::names::condition;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Secret, Service};
use kube::Client;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::karmada::client_with;
use crate::members::{made_for, shown};
use crate::{NAMESPACE, World};

/// What an estimator is in its member, beside the namespace.
const IN_MEMBER: [&str; 4] = [
    "ClusterRole karmada-scheduler-estimator",
    "ClusterRoleBinding karmada-scheduler-estimator",
    "Secret NAMESPACE/karmada-scheduler-estimator",
    "ServiceAccount NAMESPACE/karmada-scheduler-estimator",
];

/// Switches them on: both members have one, and the scheduler has the flags by which it asks them.
pub async fn are_made(world: &World, members: [(&str, &str, Client); 2]) -> Result<()> {
    world.patch(json!({"spec": {"estimator": {}}})).await?;
    for (name, namespace, client) in members {
        world
            .until(&format!("the estimator of {name} is ready"), async |world| {
                let is_made = deployment(world, name).await?.is_some();
                let member = shown(world, name).await?.with_context(|| format!("nothing is said of {name}"))?;
                Ok(is_made && member.reason == "AllReady")
            })
            .await?;
        let made = made_for(&client, name).await?;
        for object in IN_MEMBER.map(|object| object.replace("NAMESPACE", namespace)) {
            ensure!(made.contains(&object), "no {object} in {name}: {made:?}");
        }
        reads_nodes_and_no_secrets(world, name).await?;
        let services: Api<Service> = Api::namespaced(world.client.clone(), NAMESPACE);
        services.get(&format!("k1-estimator-{name}")).await?;
    }
    let scheduler = deployment_named(world, "k1-scheduler").await?.context("there is no scheduler")?;
    let command = serde_json::to_value(&scheduler)?["spec"]["template"]["spec"]["containers"][0]["command"].to_string();
    for flag in [
        "--enable-scheduler-estimator=true".to_owned(),
        format!("--scheduler-estimator-service-namespace={NAMESPACE}"),
        "--scheduler-estimator-service-prefix=k1-estimator".to_owned(),
    ] {
        ensure!(command.contains(&flag), "no {flag}: {command}");
    }
    // Other members are not well, on purpose.
    world
        .until("as it is wanted, with estimators", async |world| {
            let plane = world.planes().get("k1").await?;
            Ok(plane.is_true(condition::COMPONENTS_READY) && plane.is_true(condition::UP_TO_DATE))
        })
        .await?;
    Ok(())
}

/// As the estimator reaches its member.
async fn reads_nodes_and_no_secrets(world: &World, name: &str) -> Result<()> {
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), NAMESPACE);
    let data = secrets.get(&format!("k1-estimator-{name}")).await?.data.unwrap_or_default();
    let file = |key: &str| {
        let content = data.get(key).with_context(|| format!("no {key}: {:?}", data.keys()))?;
        anyhow::Ok(String::from_utf8(content.0.clone())?)
    };
    let kubeconfig: Value = serde_json::from_str(&file("kubeconfig")?)?;
    let server = &kubeconfig["clusters"][0]["cluster"]["server"];
    let client = client_with(server, &file("member.ca.crt")?, &file("member.token")?).await?;
    Api::<Node>::all(client.clone()).list(&ListParams::default()).await.context("it cannot list Nodes")?;
    let forbidden = |error: kube::Error| matches!(error, kube::Error::Api(status) if status.code == 403);
    let listed = Api::<Secret>::all(client).list(&ListParams::default()).await;
    ensure!(listed.is_err_and(forbidden), "the estimator of {name} reads Secrets");
    Ok(())
}

/// Nothing of it is on the host, or beside the plane.
pub async fn has_gone(world: &World, name: &str) -> Result<()> {
    let made = made_for(&world.client, name).await?;
    ensure!(made.is_empty(), "on the host: {made:?}");
    ensure!(deployment(world, name).await?.is_none(), "the estimator of {name} is there");
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "fleet");
    let certificate = secrets.get_opt(&format!("k1-certificate-estimator-{name}")).await?;
    ensure!(certificate.is_none(), "its certificate is there");
    Ok(())
}

async fn deployment(world: &World, member: &str) -> Result<Option<Deployment>> {
    deployment_named(world, &format!("k1-estimator-{member}")).await
}

async fn deployment_named(world: &World, name: &str) -> Result<Option<Deployment>> {
    Ok(Api::<Deployment>::namespaced(world.client.clone(), NAMESPACE).get_opt(name).await?)
}
