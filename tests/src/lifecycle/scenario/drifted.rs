//! What somebody changes on a machine by hand is found, and changed back where that is wanted.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::names::condition;
use crds::step::Role;
use crds::{Conditions, Machine, ObjectExt};
use serde_json::json;

use super::Seen;
use crate::eventually::{Look, eventually};
use crate::lifecycle::guards;
use crate::lifecycle::stage::{CLUSTER, Stage};

const COMPARED: Duration = Duration::from_secs(180);
/// A run, and a comparison a minute after it.
const REPAIRED: Duration = Duration::from_secs(400);
/// For the next boot: a value that is changed now is put back by what keeps the Pod network, within seconds.
const PARAMETERS: &str = "/etc/sysctl.d/90-clusterwright.conf";
const UNIT: &str = "clusterwright-network-probe";

/// A file with kernel parameters, and a unit, of a worker.
pub async fn repaired(stage: &mut Stage<'_>) -> Result<Seen> {
    let workers = stage.members(Role::Worker).await?;
    let worker = workers.first().context("there is no worker")?;
    let machine = stage.machine_of(worker)?;
    let began = Instant::now();
    let by_hand = format!("sed -i /max_user_watches/d {PARAMETERS} && systemctl disable --now {UNIT}");
    stage.scenario.ssh(&machine, &by_hand).await?;
    let run = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "PlaybookRun",
        "metadata": {"namespace": stage.scenario.name, "name": "compare"},
        "spec": {
            "clusterName": CLUSTER, "intent": "Compare", "steps": ["prepare", "network"], "hosts": [machine.name()],
        },
    });
    stage.scenario.apply(&run).await?;
    let told = drifted(stage, worker, COMPARED, "Drifted").await?;
    stage.scenario.say(&told);
    ensure!(told.contains(PARAMETERS), "the file is not named: {told}");
    ensure!(told.contains("network"), "the unit's step is not named: {told}");

    stage.wish["spec"]["drift"] = json!({"repair": "Automatic"});
    stage.apply().await?;
    drifted(stage, worker, REPAIRED, "AsWanted").await?;
    let look = format!("grep -c max_user_watches {PARAMETERS}; systemctl is-active {UNIT}");
    let now = stage.scenario.ssh(&machine, &look).await?;
    ensure!(now.split_whitespace().eq(["1", "active"]), "the machine has {now}");
    stage.wish["spec"]["drift"] = json!({});
    stage.apply().await?;
    guards::hold(&stage.machines)?;
    Ok(Seen::since(began, "a file and a unit were named, and changed back"))
}

/// Waits until `Drifted` of a Machine has this reason, and gives its message.
async fn drifted(stage: &Stage<'_>, worker: &Machine, deadline: Duration, reason: &str) -> Result<String> {
    let api = stage.scenario.api::<Machine>();
    eventually(&format!("Drifted of {} is {reason}", worker.name()), deadline, async || {
        let found = api.get(worker.name()).await?;
        let said = found.condition(condition::DRIFTED);
        let told = said.map(|said| format!("{}: {}", said.reason, said.message)).unwrap_or_default();
        Ok(if said.is_some_and(|said| said.reason == reason) { Look::Done(told) } else { Look::Waiting(told) })
    })
    .await
}
