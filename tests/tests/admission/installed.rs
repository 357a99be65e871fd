//! What is there once the definitions are installed: defaults, the scale of a set, short names, the samples.

use anyhow::{Result, ensure};
use e2e::api_server::ApiServer;
use serde_json::{Value, json};

use super::{admitted, created, deployment, host, machine_set, run};

#[tokio::test(flavor = "multi_thread")]
async fn defaults_are_filled_in() -> Result<()> {
    let server = ApiServer::shared().await?;
    let spec = admitted(&server, deployment("demo")).await?["spec"].take();
    for (path, value) in [
        ("/etcd/topology", json!("Stacked")),
        ("/networking/podCIDR", json!("10.244.0.0/16")),
        ("/networking/serviceCIDR", json!("10.96.0.0/16")),
        ("/networking/dnsDomain", json!("cluster.local")),
        ("/networking/plugin/name", json!("bridge")),
        ("/containerRuntime/name", json!("containerd")),
        ("/workers/0/maxUnavailable", json!("10%")),
        ("/paused", json!(false)),
        ("/deletionPolicy", json!("Reset")),
    ] {
        ensure!(spec.pointer(path) == Some(&value), "{path}: {:?}", spec.pointer(path));
    }
    let spec = admitted(&server, host("m1")).await?["spec"].take();
    for (path, value) in [
        ("/ssh/port", json!(22)),
        ("/ssh/user", json!("root")),
        ("/ssh/become", json!(false)),
        ("/ssh/hostKeyPolicy", json!("Strict")),
        ("/unschedulable", json!(false)),
        ("/claimEpoch", json!(0)),
    ] {
        ensure!(spec.pointer(path) == Some(&value), "{path}: {:?}", spec.pointer(path));
    }
    let spec = admitted(&server, run("r")).await?["spec"].take();
    ensure!(spec["timeoutSeconds"] == json!(3600) && spec["cancel"] == json!(false), "{spec}");
    let spec = admitted(&server, machine_set("s")).await?["spec"].take();
    ensure!(spec["mode"] == json!("Automatic") && spec["deletion"]["order"] == json!("Newest"), "{spec}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_are_scaled_through_the_subresource_and_names_are_short() -> Result<()> {
    let server = ApiServer::shared().await?;
    created(&server, machine_set("scaled")).await?;
    let scale = server.get("machinesets", "scaled/scale").await?;
    ensure!(scale.body["kind"] == "Scale" && scale.body["spec"]["replicas"] == 2, "{}", scale.body);
    let request = http::Request::get("/apis/clusterwright.dev/v1alpha1").body(Vec::new())?;
    let listed: Value = server.client().request(request).await?;
    let kinds = listed["resources"].as_array().cloned().unwrap_or_default();
    for definition in crds::manifests::all() {
        let plural = &definition.spec.names.plural;
        let kind = kinds.iter().find(|kind| kind["name"] == json!(plural));
        let kind = kind.cloned().unwrap_or_default();
        ensure!(kind["categories"] == json!(["clusterwright"]), "{plural}: {kind}");
    }
    let short = |plural: &str| {
        let kind = kinds.iter().find(|kind| kind["name"] == plural);
        kind.map(|kind| kind["shortNames"][0].clone()).unwrap_or_default()
    };
    ensure!(short("clusterdeployments") == "cd" && short("machines") == "ma");
    Ok(())
}

/// Every object among the samples, as an administrator would apply it.
#[tokio::test(flavor = "multi_thread")]
async fn the_samples_are_admitted() -> Result<()> {
    let server = ApiServer::shared().await?;
    let directory = lab::project::path("manifests/samples");
    let mut seen = 0;
    for file in std::fs::read_dir(directory)? {
        let text = std::fs::read_to_string(file?.path())?;
        for document in text.split("\n---") {
            let mut object: Value = serde_yaml::from_str(document)?;
            if object["apiVersion"] != "clusterwright.dev/v1alpha1" {
                continue;
            }
            object["metadata"]["namespace"] = json!("default");
            admitted(&server, object).await?;
            seen += 1;
        }
    }
    ensure!(seen >= 5, "{seen} samples seen");
    Ok(())
}

/// Pod Security speaks up about a Deployment whose Pods it would refuse: kubectl would pass that on as a complaint.
#[tokio::test(flavor = "multi_thread")]
async fn everything_is_installed_with_one_command_and_no_right_is_a_wildcard() -> Result<()> {
    let server = ApiServer::shared().await?;
    let manifests = lab::project::path("manifests").display().to_string();
    let apply = ["apply", "--server-side", "--force-conflicts", "-k", &manifests];
    server.kubectl(&apply)?;
    let again = server.kubectl(&apply)?;
    ensure!(again.contains("deployment.apps/clusterwright-operator"), "{again}");
    let roles: Value = serde_json::from_str(&server.kubectl(&["get", "clusterroles", "-o", "json"])?)?;
    let roles = roles["items"].as_array().cloned().unwrap_or_default();
    let ours = |role: &&Value| role["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("clusterwright-"));
    let ours: Vec<&Value> = roles.iter().filter(ours).collect();
    ensure!(ours.len() == 4, "{} roles", ours.len());
    for role in ours {
        ensure!(!role["rules"].to_string().contains('*'), "{role}");
    }
    // Without the operator, its objects stay.
    created(&server, host("stays")).await?;
    server.kubectl(&["delete", "deployment", "clusterwright-operator", "-n", "clusterwright-system"])?;
    ensure!(server.get("hosts", "stays").await?.code == 200, "the Host is gone");
    Ok(())
}
