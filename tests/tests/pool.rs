//! The spare pool on a real API server: clusters that race for its Hosts. No machine is needed for that: what probes
//! would have found is written by hand.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::{ClusterDeployment, Host, Machine, MachineSet, conditions};
use e2e::api_server::ApiServer;
use e2e::operator_process::Operator;
use e2e::spare_host;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt};
use nix::sys::signal::Signal;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;

const NAMESPACE: &str = "race";
const DEADLINE: Duration = Duration::from_secs(120);

fn object<K: DeserializeOwned>(value: Value) -> Result<K> {
    serde_json::from_value(value).context("no such object")
}

/// One control plane and one worker.
async fn cluster(client: &Client, name: &str, number: u8) -> Result<()> {
    let deployments: Api<ClusterDeployment> = Api::namespaced(client.clone(), NAMESPACE);
    let deployment = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterDeployment", "metadata": {"name": name},
        "spec": {
            "kubernetesVersion": "1.35.4", "controlPlane": {"replicas": 1},
            "workers": [{"name": "general", "replicas": 1}],
            "networking": {"podCIDR": format!("10.{}.0.0/16", 100 + number), "serviceCIDR": format!("10.{}.0.0/16", 110 + number)},
            "artifacts": {"url": "http://192.0.2.1:8080"},
        },
    });
    deployments.create(&PostParams::default(), &object(deployment)?).await?;
    Ok(())
}

/// Names of the Machines that have claimed a Host, by Host.
async fn claims(client: &Client) -> Result<BTreeMap<String, (String, String, i64)>> {
    let hosts: Api<Host> = Api::namespaced(client.clone(), NAMESPACE);
    let listed = hosts.list(&ListParams::default()).await?;
    let claim = |host: &Host| {
        let claim = host.spec.claim_ref.clone()?;
        Some((host.name_any(), (claim.name, claim.uid, host.spec.claim_epoch)))
    };
    Ok(listed.iter().filter_map(claim).collect())
}

/// What the sets of workers say of the pool.
async fn lacks(client: &Client) -> Result<Vec<String>> {
    let sets: Api<MachineSet> = Api::namespaced(client.clone(), NAMESPACE);
    let listed = sets.list(&ListParams::default()).await?;
    let says = |set: &MachineSet| {
        let conditions = set.status.as_ref()?.conditions.clone();
        let hosts = conditions::find(&conditions, "HostsAvailable")?.clone();
        (hosts.status == "False").then(|| format!("{}: {}", set.name_any(), hosts.message))
    };
    Ok(listed.iter().filter_map(says).collect())
}

/// Two clusters want two machines each, and there are three; the operator that leads is killed once the first Host is
/// claimed (the row "leader killed"). Each Host has one owner and was claimed once, each Machine has one Host, and the
/// one that lacks says what.
#[tokio::test(flavor = "multi_thread")]
async fn two_clusters_race_for_a_pool_of_three_and_the_leader_is_killed_row_10() -> Result<()> {
    let server = ApiServer::shared().await?;
    let client = server.client();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &object(namespace)?).await?;
    for number in 1..=3 {
        spare_host::create(&client, NAMESPACE, number, &format!("10.99.0.{number}"), &[].into()).await?;
    }
    let first = Operator::start(&server, "operator-a", NAMESPACE)?;
    first.answers("/readyz", "ok: leads").await?;
    let second = Operator::start(&server, "operator-b", NAMESPACE)?;
    second.answers("/readyz", "ok: standing by").await?;
    for (name, number) in [("a", 1), ("b", 2)] {
        cluster(&client, name, number).await?;
    }
    let until = Instant::now() + DEADLINE;
    while claims(&client).await?.is_empty() {
        ensure!(Instant::now() < until, "no claim:\n{}", first.log());
        sleep(Duration::from_millis(5)).await;
    }
    first.signal(Signal::SIGKILL)?;
    println!("killed the leader after {} claims", claims(&client).await?.len());
    while claims(&client).await?.len() < 3 || lacks(&client).await?.len() != 1 {
        let (claims, lacks) = (claims(&client).await?, lacks(&client).await?);
        ensure!(Instant::now() < until, "{claims:?} {lacks:?}\n{}", second.log());
        sleep(Duration::from_millis(200)).await;
    }
    // Nothing more happens.
    let settled = claims(&client).await?;
    sleep(Duration::from_secs(3)).await;
    ensure!(claims(&client).await? == settled, "claims moved: {settled:?}");
    let machines: Api<Machine> = Api::namespaced(client.clone(), NAMESPACE);
    let machines = machines.list(&ListParams::default()).await?;
    ensure!(machines.items.len() == 4, "{} Machines", machines.items.len());
    for (host, (name, uid, epoch)) in &settled {
        ensure!(*epoch == 1, "{host} was claimed {epoch} times");
        let owner = machines.iter().find(|machine| machine.uid().as_ref() == Some(uid));
        let owner = owner.with_context(|| format!("{host} is claimed by {name}, which is not there"))?;
        let named = owner.spec.host_ref.as_ref().map(|host| host.name.as_str());
        ensure!(named == Some(host), "{name} holds {host} and names {named:?}");
    }
    let control_planes = settled.values().filter(|(name, ..)| name.contains("-control-plane-"));
    ensure!(control_planes.count() == 2, "control planes come first: {settled:?}");
    let lacks = lacks(&client).await?;
    println!("{lacks:?}");
    ensure!(lacks[0].ends_with("-general: needs 1, 0 free match"), "{lacks:?}");
    Ok(())
}
