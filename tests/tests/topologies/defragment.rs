//! The databases of three members were large and are empty again: they are made small by an annotation, while a client
//! writes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::names::{annotation, condition};
use crds::{ClusterDeployment, Conditions, ObjectExt};
use e2e::eventually::{Look, eventually};
use e2e::lifecycle::whole::healthy;
use e2e::lifecycle::writer::Writer;
use e2e::scenario::Scenario;
use kube::api::{Patch, PatchParams};
use lab::machines::Machine;
use serde_json::{Value, json};

/// A run is made, and three members have their turns.
const DEFRAGMENTED: Duration = Duration::from_secs(240);
/// What a client may wait, a change of the leader included.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Values of 700 KB that are written and deleted.
const VALUES: usize = 200;
const MIB: u64 = 1 << 20;
const ETCDCTL: &str = "etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/etcd/pki/ca.crt \
     --cert=/etc/etcd/pki/healthcheck-client.crt --key=/etc/etcd/pki/healthcheck-client.key";

/// Asked for by hand, on a cluster of this name and these machines.
pub async fn makes_databases_small_while_a_client_writes(
    scenario: &Scenario,
    cluster: &str,
    machines: &[Machine],
) -> Result<()> {
    fill_and_empty(scenario, &machines[0]).await?;
    let before = sizes(scenario, machines).await?;
    ensure!(before.iter().all(|size| *size > 100 * MIB), "the databases are to be large: {before:?}");
    let writer = Writer::to(scenario, cluster).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;

    let deployments = scenario.api::<ClusterDeployment>();
    let generation = deployments.get(cluster).await?.generation().to_string();
    let asks = json!({"metadata": {"annotations": {annotation::DEFRAGMENT: generation}}});
    deployments.patch(cluster, &PatchParams::default(), &Patch::Merge(asks)).await?;
    eventually("etcd is defragmented", DEFRAGMENTED, async || {
        let found = deployments.get(cluster).await?;
        let said = found.condition(condition::ETCD_DEFRAGMENTED);
        Ok(match said {
            Some(said) if said.reason == "Defragmented" => Look::Done(()),
            Some(said) if said.reason == "DefragmentationFailed" => anyhow::bail!("{}", said.message),
            Some(said) => Look::Waiting(said.message.clone()),
            None => Look::Waiting("nothing is said of it".into()),
        })
    })
    .await?;
    let written = writer.written();
    drop(writer);
    let after = sizes(scenario, machines).await?;
    scenario.say(&format!("defragmented: {before:?} -> {after:?} bytes; {}", written.told()));
    ensure!(after.iter().zip(&before).all(|(after, before)| after * 2 < *before), "{before:?} -> {after:?}");
    ensure!(written.gap < LONGEST_WAIT, "a client waited {:?}", written.gap);
    healthy(scenario, cluster).await?;
    is_seen(scenario, cluster, &after).await
}

async fn fill_and_empty(scenario: &Scenario, machine: &Machine) -> Result<()> {
    let fill = format!(
        "head -c 700000 /dev/zero | tr '\\0' x > /tmp/value && \
         for n in $(seq {VALUES}); do {ETCDCTL} put /clusterwright-e2e/$n < /tmp/value > /dev/null || exit 1; done; \
         rm /tmp/value; {ETCDCTL} del /clusterwright-e2e/ --prefix"
    );
    let deleted = scenario.ssh(machine, &fill).await?;
    ensure!(deleted.trim() == VALUES.to_string(), "deleted: {deleted}");
    let status: Value = serde_json::from_str(&scenario.ssh(machine, &status_of()).await?)?;
    let revision = status[0]["Status"]["header"]["revision"].as_i64().context("no revision")?;
    let compact = format!("{ETCDCTL} --command-timeout=60s compact {revision} --physical");
    scenario.ssh(machine, &compact).await.map(|_| ())
}

fn status_of() -> String {
    format!("{ETCDCTL} endpoint status --write-out=json")
}

async fn sizes(scenario: &Scenario, machines: &[Machine]) -> Result<Vec<u64>> {
    let mut sizes = Vec::new();
    for machine in machines {
        let status: Value = serde_json::from_str(&scenario.ssh(machine, &status_of()).await?)?;
        sizes.push(status[0]["Status"]["dbSize"].as_u64().context("no size")?);
    }
    Ok(sizes)
}

/// The cluster's status shows the members as they are afterwards, once it has looked again.
async fn is_seen(scenario: &Scenario, cluster: &str, sizes: &[u64]) -> Result<()> {
    let largest = i64::try_from(sizes.iter().copied().max().unwrap_or_default())?;
    let near = i64::try_from(32 * MIB)?;
    eventually("the status shows the members", Duration::from_secs(120), async || {
        let status = scenario.api::<ClusterDeployment>().get(cluster).await?.status.unwrap_or_default();
        let members = status.etcd.map(|etcd| etcd.members).unwrap_or_default();
        let shown: Vec<i64> = members.iter().filter_map(|member| member.size_bytes).collect();
        let is_so = shown.len() == sizes.len() && shown.iter().all(|size| *size < largest + near);
        Ok(if is_so { Look::Done(()) } else { Look::Waiting(format!("{shown:?}")) })
    })
    .await
}
