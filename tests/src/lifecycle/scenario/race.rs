//! Two clusters of two machines each, and a pool of three.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use crds::names::{condition, worker_set};
use crds::{ClusterDeployment, Host, MachineSet, conditions};
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::Seen;
use crate::eventually::{Look, eventually};
use crate::lifecycle::guards;
use crate::lifecycle::stage::{READY, Stage, WORKERS};
use crate::objects;
use crate::workload;

const NAMES: [&str; 2] = ["one", "two"];

/// One owner for each Host at every look; who lacks one says so, and gets the first that comes free.
pub async fn two_for_three(stage: &mut Stage<'_>) -> Result<Seen> {
    let scenario = stage.scenario;
    let second = second_octet(&stage.wish)?;
    let began = Instant::now();
    for (number, name) in NAMES.iter().enumerate() {
        let pod_cidr = format!("10.{}.0.0/16", second + 10 * (number + 1));
        let mut wish = objects::cluster(&scenario.name, name, &pod_cidr, &[], &[]);
        wish["spec"]["controlPlane"] = json!({"replicas": 1});
        wish["spec"]["workers"] = json!([{"name": WORKERS, "replicas": 1}]);
        scenario.apply(&wish).await?;
    }
    let winner = eventually("one of the two clusters Ready", READY, async || {
        owners(stage).await?;
        for name in NAMES {
            if is_ready(stage, name).await? {
                return Ok(Look::Done(name));
            }
        }
        Ok(Look::Waiting(said(stage).await?))
    })
    .await?;
    let won = began.elapsed();
    let loser = if winner == NAMES[0] { NAMES[1] } else { NAMES[0] };
    let lacks = lacks(stage, loser).await?;
    scenario.say(&format!("{winner} is Ready; {loser}: {lacks}"));
    let claims = owners(stage).await?;
    ensure!(claims.len() == 3, "three Hosts are claimed: {claims:?}");
    ensure!(!is_ready(stage, loser).await?, "{loser} is Ready without a machine");

    let freed = Instant::now();
    scenario.delete_cluster(winner, Duration::from_secs(240)).await?;
    scenario.ready(loser, READY).await?;
    let client = scenario.cluster_client(loser).await?;
    workload::nodes_ready(&client, 2, Duration::from_secs(60)).await?;
    owners(stage).await?;
    guards::hold(&stage.machines)?;
    let text = format!(
        "one Ready after {:.0} s, the other says \"{lacks}\" and is Ready {:.0} s after the first is deleted",
        won.as_secs_f64(),
        freed.elapsed().as_secs_f64()
    );
    Ok(Seen::since(began, text))
}

fn second_octet(wish: &Value) -> Result<usize> {
    let cidr = wish["spec"]["networking"]["podCIDR"].as_str().unwrap_or_default();
    let octet = cidr.split('.').nth(1).context("no Pod network")?;
    Ok(octet.parse()?)
}

/// Who holds each Host that is held; nobody holds two.
async fn owners(stage: &Stage<'_>) -> Result<BTreeMap<String, String>> {
    let hosts = stage.scenario.api::<Host>().list(&ListParams::default()).await?;
    let mut owners = BTreeMap::new();
    for host in hosts {
        if let Some(claim) = &host.spec.claim_ref
            && let Some(other) = owners.insert(claim.uid.clone(), host.name_any())
        {
            bail!("Machine {} holds {other} and {}", claim.name, host.name_any());
        }
    }
    Ok(owners)
}

async fn is_ready(stage: &Stage<'_>, name: &str) -> Result<bool> {
    let found = stage.scenario.api::<ClusterDeployment>().get(name).await?;
    let status = found.status.unwrap_or_default();
    Ok(status.observed_generation == found.metadata.generation
        && conditions::is_true(&status.conditions, condition::READY))
}

async fn said(stage: &Stage<'_>) -> Result<String> {
    let all = stage.scenario.api::<ClusterDeployment>().list(&ListParams::default()).await?;
    let messages = all.into_iter().map(|found| found.status.and_then(|status| status.message).unwrap_or_default());
    Ok(messages.collect::<Vec<_>>().join("; "))
}

/// What the workers' set says of the pool.
async fn lacks(stage: &Stage<'_>, cluster: &str) -> Result<String> {
    let sets = stage.scenario.api::<MachineSet>();
    let name = worker_set(cluster, WORKERS);
    eventually(&format!("MachineSet {name} without a Host"), Duration::from_secs(60), async || {
        let status = sets.get(&name).await?.status.unwrap_or_default();
        let found = conditions::find(&status.conditions, condition::HOSTS_AVAILABLE);
        let text = found.map(|found| (found.status.clone(), found.message.clone()));
        Ok(match text {
            Some((status, message)) if status == "False" && message.contains("0 free match") => Look::Done(message),
            other => Look::Waiting(format!("{other:?}")),
        })
    })
    .await
}
