//! Requests for capacity on a real API server: many at once, against a pool that is too small, by the program that
//! docs/operations/capacity.md shows. No machine is needed for that: what probes would have found is written by hand,
//! and nothing becomes Ready.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Output;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::machine_request::RequestAnswer;
use crds::{ClusterDeployment, Conditions, Host, HostPool, MachineRequest};
use e2e::api_server::ApiServer;
use e2e::operator_process::Operator;
use e2e::spare_host;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::sleep;

const NAMESPACE: &str = "capacity";
const HOSTS: u8 = 30;
const REQUESTS: usize = 50;
/// The requests' own deadline, and how long all of it may take.
const DEADLINE_SECONDS: u64 = 45;
const DEADLINE: Duration = Duration::from_secs(180);

fn object<K: DeserializeOwned>(value: Value) -> Result<K> {
    serde_json::from_value(value).context("no such object")
}

/// A namespace with the spare Hosts, and a cluster whose control plane is none of them.
async fn pool(client: &Client) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &object(namespace)?).await?;
    for number in 1..=HOSTS {
        spare_host::create(client, NAMESPACE, number, &format!("10.98.0.{number}"), &[("size", "large")].into())
            .await?;
    }
    let deployments: Api<ClusterDeployment> = Api::namespaced(client.clone(), NAMESPACE);
    let deployment = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterDeployment", "metadata": {"name": "demo"},
        "spec": {
            "kubernetesVersion": "1.35.4", "controlPlane": {"replicas": 1, "hosts": ["elsewhere"]},
            "workers": [{"name": "general", "replicas": 0}], "artifacts": {"url": "http://192.0.2.1:8080"},
        },
    });
    deployments.create(&PostParams::default(), &object(deployment)?).await?;
    Ok(())
}

/// The program in the page.
fn program() -> Result<String> {
    let page = std::fs::read_to_string(lab::project::path("docs/operations/capacity.md"))?;
    let (_, code) = page.split_once("```python\n").context("the page has no program")?;
    let (code, _) = code.split_once("```").context("the program has no end")?;
    ensure!(code.lines().count() <= 40, "{} lines are no short program", code.lines().count());
    Ok(code.to_owned())
}

/// Runs the program of the page.
async fn request(server: &ApiServer, code: &str, name: &str) -> Result<Output> {
    let (url, authority, token) = server.for_programs();
    let mut python = Command::new("python3");
    python.args(["-c", code, name, "1"]).kill_on_drop(true);
    python.env("API_SERVER", url).env("CA_FILE", authority).env("TOKEN_FILE", token).env("NAMESPACE", NAMESPACE);
    python.env("CLUSTER", "demo").env("SET", "general").env("DEADLINE_SECONDS", DEADLINE_SECONDS.to_string());
    python.output().await.context("failed to run the program")
}

/// The Machine that has claimed each Host: UID, and how often the Host was claimed.
async fn claims(client: &Client) -> Result<BTreeMap<String, (String, i64)>> {
    let hosts: Api<Host> = Api::namespaced(client.clone(), NAMESPACE);
    let listed = hosts.list(&ListParams::default()).await?;
    let claim = |host: &Host| Some((host.name_any(), (host.spec.claim_ref.clone()?.uid, host.spec.claim_epoch)));
    Ok(listed.iter().filter_map(claim).collect())
}

/// All requests at once, and how each program ended.
async fn request_all(client: &Client) -> Result<Vec<Output>> {
    let code = program()?;
    let (mut programs, mut outputs) = (JoinSet::new(), Vec::new());
    for number in 0..REQUESTS {
        let (server, code) = (ApiServer::shared().await?, code.clone());
        programs.spawn(async move { request(&server, &code, &format!("order-{number}")).await });
    }
    let until = Instant::now() + DEADLINE;
    let mut most = 0;
    while outputs.len() < REQUESTS {
        ensure!(Instant::now() < until, "{} of {REQUESTS} were answered", outputs.len());
        tokio::select! {
            Some(output) = programs.join_next() => outputs.push(output??),
            () = sleep(Duration::from_millis(500)) => {
                let claims = claims(client).await?;
                most = claims.len().max(most);
                let owners: BTreeSet<&String> = claims.values().map(|(uid, _)| uid).collect();
                ensure!(owners.len() == claims.len(), "a Machine has two Hosts: {claims:?}");
                ensure!(claims.values().all(|(_, epoch)| *epoch == 1), "a Host was claimed twice: {claims:?}");
            }
        }
    }
    ensure!(most == usize::from(HOSTS), "{most} Hosts were claimed at once");
    Ok(outputs)
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_requests_at_once_share_thirty_hosts_and_each_is_answered() -> Result<()> {
    let server = ApiServer::shared().await?;
    let client = server.client();
    pool(&client).await?;
    let operator = Operator::start(&server, "operator-d", NAMESPACE)?;
    operator.answers("/readyz", "ok: leads").await?;
    let outputs = request_all(&client).await.with_context(|| operator.log())?;
    for output in &outputs {
        let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.code() == Some(1) && said.starts_with("Failed"), "{said}{complained}");
    }
    let requests: Api<MachineRequest> = Api::namespaced(client.clone(), NAMESPACE);
    let (mut hosts, mut without) = (BTreeSet::new(), 0);
    for request in requests.list(&ListParams::default()).await? {
        let status = request.status.clone().unwrap_or_default();
        ensure!(status.answer == Some(RequestAnswer::Failed) && request.is_true("Failed"), "{status:?}");
        let [machine] = status.machines.as_slice() else { anyhow::bail!("{status:?}") };
        match &machine.host {
            Some(host) => ensure!(hosts.insert(host.clone()), "{host} was given to two"),
            None => {
                ensure!(machine.reason == "NoHost", "{machine:?}");
                without += 1;
            }
        }
    }
    ensure!((hosts.len(), without) == (usize::from(HOSTS), REQUESTS - usize::from(HOSTS)), "{hosts:?} {without}");
    let pools: Api<HostPool> = Api::namespaced(client.clone(), NAMESPACE);
    let pools = pools.list(&ListParams::default()).await?;
    let counted: Vec<i32> = pools.iter().filter_map(|pool| Some(pool.status.as_ref()?.hosts)).collect();
    ensure!(counted == [i32::from(HOSTS)], "one pool for the one selector that is asked for: {counted:?}");
    Ok(())
}
