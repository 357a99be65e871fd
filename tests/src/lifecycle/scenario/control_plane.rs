//! Control planes come and go under a client that writes all the time.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::names::annotation;
use crds::step::Role;
use kube::ResourceExt;
use serde_json::json;

use super::Seen;
use super::comeback::quarantined_without_node;
use super::losses::{FORGOTTEN_AFTER, remediate, replacement};
use crate::eventually::{Look, eventually};
use crate::lifecycle::guards;
use crate::lifecycle::stage::{CLUSTER, READY, Stage};
use crate::lifecycle::whole::whole;
use crate::lifecycle::writer::{Writer, Written};

/// An election, on two cores that do all the rest too.
const ELECTION: Duration = Duration::from_secs(10);
/// 1 -> 3, one after the other.
pub async fn grow(stage: &mut Stage<'_>) -> Result<Seen> {
    let writer = Writer::to(stage.scenario, CLUSTER).await?;
    let began = Instant::now();
    planes(stage, 3).await?;
    stage.ready(3 + stage.workers_wished()).await?;
    let took = began.elapsed();
    let written = writer.written();
    whole(stage, 3).await?;
    no_longer_than_an_election(&written)?;
    guards::hold(&stage.machines)?;
    Ok(Seen { took, text: format!("3 members; {} meanwhile", written.told()) })
}

/// The machine that ran `kubeadm init` is killed.
pub async fn replace_first(stage: &mut Stage<'_>) -> Result<Seen> {
    if stage.members(Role::ControlPlane).await?.len() < 3 {
        planes(stage, 3).await?;
    }
    remediate(stage);
    stage.apply().await?;
    stage.ready(3 + stage.workers_wished()).await?;
    let before = stage.members(Role::ControlPlane).await?;
    let lost = before.first().context("there is no control plane")?;
    let machine = stage.machine_of(lost)?;
    let writer = Writer::to(stage.scenario, CLUSTER).await?;
    let began = Instant::now();
    stage.kill(&machine)?;
    let new = replacement(stage, Role::ControlPlane, &before, lost).await?;
    let decided = began.elapsed();
    stage.scenario.say(&format!("{} takes its place", new.name_any()));
    stage.gone(lost, Duration::from_secs(FORGOTTEN_AFTER + 240)).await?;
    stage.ready(3 + stage.workers_wished()).await?;
    let took = began.elapsed();
    let written = writer.written();
    whole(stage, 3).await?;
    no_longer_than_an_election(&written)?;
    if let Some(spec) = stage.wish["spec"].as_object_mut() {
        spec.remove("remediation");
    }
    stage.apply().await?;
    quarantined_without_node(stage, &machine).await?;
    guards::hold(&stage.machines)?;
    Ok(Seen { took, text: format!("deleted after {:.0} s; {}", decided.as_secs_f64(), written.told()) })
}

/// 3 -> 5, and two of the five leave again: of three a majority stays, so nobody is asked.
pub async fn five_and_back(stage: &mut Stage<'_>) -> Result<Seen> {
    if stage.members(Role::ControlPlane).await?.len() < 3 {
        planes(stage, 3).await?;
    }
    stage.ready(3 + stage.workers_wished()).await?;
    let free = stage.machines.len() - 3 - stage.workers_wished();
    let writer = Writer::to(stage.scenario, CLUSTER).await?;
    let began = Instant::now();
    planes(stage, 5).await?;
    stage.ready(5 + stage.workers_wished()).await?;
    let grown = began.elapsed();
    whole(stage, 5).await?;
    planes(stage, 3).await?;
    stage.ready(3 + stage.workers_wished()).await?;
    left(stage, 3).await?;
    let took = began.elapsed();
    let written = writer.written();
    whole(stage, 3).await?;
    stage.available(free).await?;
    no_longer_than_an_election(&written)?;
    guards::hold(&stage.machines)?;
    Ok(Seen {
        took,
        text: format!(
            "5 members after {:.0} s; {}; both machines are clean in the pool",
            grown.as_secs_f64(),
            written.told()
        ),
    })
}

/// 3 -> 1, which waits for a person.
pub async fn shrink(stage: &mut Stage<'_>) -> Result<Seen> {
    if stage.members(Role::ControlPlane).await?.len() < 3 {
        planes(stage, 3).await?;
    }
    stage.ready(3 + stage.workers_wished()).await?;
    let free = stage.machines.len() - 3 - stage.workers_wished();
    let writer = Writer::to(stage.scenario, CLUSTER).await?;
    planes(stage, 1).await?;
    let said = eventually("it asks for an approval", Duration::from_secs(60), async || {
        let status = stage.deployment().await?.status.unwrap_or_default();
        let texts = status.conditions.iter().map(|c| format!("{}: {}", c.reason, c.message));
        let texts: Vec<String> = texts.chain(status.message.clone()).collect();
        let asks = |text: &&String| text.contains("QuorumRisk") && text.contains("approve");
        Ok(match texts.iter().find(asks) {
            Some(text) => Look::Done(text.clone()),
            None => Look::Waiting(texts.join("; ")),
        })
    })
    .await?;
    stage.scenario.say(&said);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let planes = stage.members(Role::ControlPlane).await?;
    let leave = planes.iter().filter(|machine| machine.metadata.deletion_timestamp.is_some());
    ensure!(leave.count() == 0, "a control plane leaves without an approval");
    let began = Instant::now();
    let asked = said.rsplit_once(&format!("{}=", annotation::APPROVE));
    let value = asked.and_then(|(_, value)| value.split_whitespace().next());
    let value = value.with_context(|| format!("no command to approve it: {said}"))?;
    stage.say(annotation::APPROVE, value).await?;
    stage.ready(1 + stage.workers_wished()).await?;
    left(stage, 1).await?;
    let took = began.elapsed();
    let written = writer.written();
    whole(stage, 1).await?;
    stage.available(free + 2).await?;
    no_longer_than_an_election(&written)?;
    guards::hold(&stage.machines)?;
    Ok(Seen { took, text: format!("waited for the approval; {}; both machines are clean in the pool", written.told()) })
}

/// Waits until so many are left: one that has left may still be cleaned.
async fn left(stage: &Stage<'_>, count: usize) -> Result<()> {
    eventually(&format!("{count} control planes left"), READY, async || {
        let left = stage.members(Role::ControlPlane).await?.len();
        Ok(match left == count {
            true => Look::Done(()),
            false => Look::Waiting(format!("{left} are there")),
        })
    })
    .await
}

/// What a client may wait for whatever happens to members.
pub fn no_longer_than_an_election(written: &Written) -> Result<()> {
    let gap = written.gap;
    ensure!(gap <= ELECTION, "the client waited {:.1} s", gap.as_secs_f64());
    Ok(())
}

async fn planes(stage: &mut Stage<'_>, count: usize) -> Result<()> {
    stage.wish["spec"]["controlPlane"]["replicas"] = json!(count);
    stage.apply().await
}
