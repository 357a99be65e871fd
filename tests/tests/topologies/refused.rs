//! A setting that no API server takes: the first control plane that is given it has its former configuration back, and
//! the others are left as they are.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use crds::names::condition;
use crds::{ClusterDeployment, Conditions};
use e2e::eventually::{Look, eventually};
use e2e::lifecycle::whole::healthy;
use e2e::lifecycle::writer::Writer;
use e2e::scenario::Scenario;
use kube::api::{Patch, PatchParams};
use lab::machines::Machine;
use serde_json::{Value, json};

/// An API server is given it, gives up, and is started with its former flags.
const REFUSED: Duration = Duration::from_secs(300);
const TAKEN_BACK: Duration = Duration::from_secs(300);
/// What a client may wait: one API server of three is away.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
const GATE: &str = "NoSuchGate";
/// The process, since when it runs, and its flags.
const API_SERVER: &str = "ps -C kube-apiserver -o pid=,lstart=,args=";

/// On a cluster of this name with these control planes.
pub async fn is_put_back_and_goes_no_further(scenario: &Scenario, cluster: &str, machines: &[Machine]) -> Result<()> {
    let before = processes(scenario, machines).await?;
    let writer = Writer::to(scenario, cluster).await?;
    let deployments = scenario.api::<ClusterDeployment>();
    let edit = |gates: Value| Patch::Merge(json!({"spec": {"configuration": {"apiServer": {"featureGates": gates}}}}));
    deployments.patch(cluster, &PatchParams::default(), &edit(json!({GATE: true}))).await?;
    let told = eventually("the setting is refused", REFUSED, async || {
        let found = deployments.get(cluster).await?;
        ensure!(found.is_true(condition::READY), "it is not Ready: {:?}", found.status.and_then(|it| it.message));
        let said = found.condition(condition::UP_TO_DATE).context("nothing is said of it")?;
        Ok(match said.reason.as_str() {
            "ConfigurationFailed" => Look::Done(said.message.clone()),
            _ => Look::Waiting(format!("{}: {}", said.reason, said.message)),
        })
    })
    .await?;
    scenario.say(&told);
    ensure!(told.contains(GATE), "what the API server said of it is not told: {told}");
    let after = processes(scenario, machines).await?;
    let started: Vec<&Machine> =
        machines.iter().zip(before.iter().zip(&after)).filter(|(_, (old, new))| old != new).map(|(it, _)| it).collect();
    let [tried] = started.as_slice() else { bail!("one API server is started anew: {before:?} -> {after:?}") };
    ensure!(told.contains(tried.name()), "{} was tried, and is not named: {told}", tried.name());
    ensure!(after.iter().all(|flags| !flags.contains(GATE)), "an API server has it: {after:?}");
    healthy(scenario, cluster).await?;
    let written = writer.written();
    drop(writer);
    scenario.say(&format!("refused by {}, and put back; {}", tried.name(), written.told()));
    ensure!(written.gap < LONGEST_WAIT, "a client waited {:?}", written.gap);

    deployments.patch(cluster, &PatchParams::default(), &edit(json!(null))).await?;
    eventually("the cluster is up to date without it", TAKEN_BACK, async || {
        let found = deployments.get(cluster).await?;
        let said = found.condition(condition::UP_TO_DATE).context("nothing is said of it")?;
        let is_so = said.status == "True" && said.observed_generation == found.metadata.generation;
        Ok(if is_so { Look::Done(()) } else { Look::Waiting(format!("{}: {}", said.reason, said.message)) })
    })
    .await
}

async fn processes(scenario: &Scenario, machines: &[Machine]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for machine in machines {
        found.push(scenario.ssh(machine, API_SERVER).await?);
    }
    Ok(found)
}
