//! Workers that lose their power for good.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::Machine;
use crds::names::annotation;
use crds::step::Role;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::Api;
use serde_json::json;

use super::{Seen, comeback};
use crate::eventually::{Look, eventually};
use crate::lifecycle::guards;
use crate::lifecycle::stage::{READY, Stage, host_of, newcomer};

/// How long a node is not Ready before its machine is replaced.
pub const UNHEALTHY_AFTER: u64 = 30;
/// After how long a machine that cannot be reached is forgotten.
pub const FORGOTTEN_AFTER: u64 = 60;

/// A spare machine takes the place of a killed worker, by the cluster's remediation.
pub async fn replace_worker(stage: &mut Stage<'_>) -> Result<Seen> {
    if stage.members(Role::Worker).await?.len() < 2 {
        stage.workers(2).await?;
        stage.ready(3).await?;
    }
    remediate(stage);
    stage.apply().await?;
    stage.ready(1 + stage.workers_wished()).await?;
    let before = stage.members(Role::Worker).await?;
    let lost = before.first().context("there is no worker")?;
    let machine = stage.machine_of(lost)?;
    let rest = stage.in_use().await?;
    let rest: Vec<_> = rest.into_iter().filter(|other| other.name() != machine.name()).collect();
    let guards_before = guards::lengths(&rest);

    let began = Instant::now();
    stage.kill(&machine)?;
    let new = replacement(stage, Role::Worker, &before, lost).await?;
    let decided = began.elapsed();
    stage.scenario.say(&format!("{} takes its place", new.name_any()));
    let ready = eventually("the replacement's node Ready", READY, async || {
        let host = stage.scenario.api::<Machine>().get(&new.name_any()).await?;
        let host = host_of(&host).context("it has no Host yet")?.to_owned();
        let node: Node = Api::all(stage.client().await?).get(&host).await?;
        Ok(match crate::workload::is_ready(&node) {
            true => Look::Done(()),
            false => Look::Waiting(format!("{host} is not Ready")),
        })
    });
    ready.await?;
    let replaced = began.elapsed();
    stage.gone(lost, Duration::from_secs(FORGOTTEN_AFTER + 120)).await?;
    stage.ready(1 + before.len()).await?;
    let text = format!(
        "deleted after {:.0} s, its replacement Ready {:.0} s later",
        decided.as_secs_f64(),
        (replaced - decided).as_secs_f64()
    );
    let seen = Seen { took: replaced, text };
    guards::untouched(&rest, &guards_before)?;
    comeback::quarantined_until_clean(stage, &machine).await?;
    stop_remediating(stage).await?;
    Ok(seen)
}

/// A dead machine is forgotten when a person says so; its set makes another.
pub async fn force_remove(stage: &mut Stage<'_>) -> Result<Seen> {
    let before = stage.members(Role::Worker).await?;
    let lost = before.first().context("there is no worker")?;
    let machine = stage.machine_of(lost)?;
    stage.kill(&machine)?;
    stage.delete(lost).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let api = stage.scenario.api::<Machine>();
    let waiting = api.get(&lost.name_any()).await.context("it was forgotten without a word")?;
    stage.scenario.say(&format!(
        "without a word: {}",
        waiting.status.clone().and_then(|status| status.message).unwrap_or_default()
    ));
    let generation = waiting.metadata.generation.unwrap_or_default().to_string();
    let began = Instant::now();
    stage.annotate(&waiting, annotation::FORCE_REMOVE, &generation).await?;
    stage.gone(&waiting, Duration::from_secs(120)).await?;
    let forgotten = began.elapsed();
    let nodes: Api<Node> = Api::all(stage.client().await?);
    ensure!(nodes.get_opt(machine.name()).await?.is_none(), "the Node of {} is still there", machine.name());
    stage.ready(1 + before.len()).await?;
    comeback::quarantined_until_clean(stage, &machine).await?;
    let text =
        format!("forgotten {:.0} s after the word, replaced, quarantined until it was clean", forgotten.as_secs_f64());
    Ok(Seen::since(began, text))
}

/// Sick machines are replaced soon, and forgotten soon.
pub fn remediate(stage: &mut Stage<'_>) {
    let spec = &mut stage.wish["spec"];
    spec["remediation"] = json!({
        "unhealthyAfterSeconds": UNHEALTHY_AFTER, "actions": ["Replace"], "waitSeconds": 30, "maxUnhealthy": "50%",
        "cooldownSeconds": 0,
    });
    spec["machineRemoval"] = json!({"drainTimeoutSeconds": 60, "forceRemoveAfterSeconds": FORGOTTEN_AFTER});
}

async fn stop_remediating(stage: &mut Stage<'_>) -> Result<()> {
    if let Some(spec) = stage.wish["spec"].as_object_mut() {
        spec.remove("remediation");
        spec.remove("machineRemoval");
    }
    stage.apply().await
}

/// Waits until the lost Machine is being deleted and another one is there.
pub async fn replacement(stage: &Stage<'_>, role: Role, before: &[Machine], lost: &Machine) -> Result<Machine> {
    let deadline = Duration::from_secs(UNHEALTHY_AFTER + 180);
    eventually("a Machine in the place of the lost one", deadline, async || {
        let now = stage.members(role).await?;
        let stays =
            now.iter().any(|machine| machine.uid() == lost.uid() && machine.metadata.deletion_timestamp.is_none());
        if stays {
            let status = stage.deployment().await?.status.unwrap_or_default();
            return Ok(Look::Waiting(format!("{} stays: {:?} {:?}", lost.name_any(), status.message, status.repairs)));
        }
        Ok(Look::Done(newcomer(&now, before)?.clone()))
    })
    .await
}
