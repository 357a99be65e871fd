//! Machines that hold etcd and nothing else come and go under three API servers.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crds::step::Role;
use kube::ResourceExt;
use serde_json::json;

use super::Seen;
use super::comeback::quarantined_without_node;
use super::control_plane::no_longer_than_an_election;
use super::losses::{FORGOTTEN_AFTER, remediate, replacement};
use crate::eventually::{Look, eventually};
use crate::lifecycle::guards;
use crate::lifecycle::stage::{CLUSTER, READY, Stage};
use crate::lifecycle::whole::{api_servers, etcd_members, healthy};
use crate::lifecycle::writer::Writer;

/// As many API servers have to learn of each new member, one after the other.
const API_SERVERS: usize = 3;

/// 1 -> 3 members.
pub async fn grow(stage: &mut Stage<'_>) -> Result<Seen> {
    let writer = Writer::to(stage.scenario, CLUSTER).await?;
    let began = Instant::now();
    stage.wish["spec"]["etcd"]["replicas"] = json!(3);
    stage.apply().await?;
    three_members(stage).await?;
    let took = began.elapsed();
    let written = writer.written();
    no_longer_than_an_election(&written)?;
    guards::hold(&stage.machines)?;
    Ok(Seen { took, text: format!("3 members under {API_SERVERS} API servers; {}", written.told()) })
}

/// One of three members is killed: by the cluster's remediation another machine takes its place. The remediation is
/// wished after the kill, and looks at once; one that stands looks every ten minutes.
pub async fn replace(stage: &mut Stage<'_>) -> Result<Seen> {
    if stage.members(Role::Etcd).await?.len() < 3 {
        grow(stage).await?;
    }
    let before = stage.members(Role::Etcd).await?;
    let lost = before.first().context("there is no etcd machine")?;
    let machine = stage.machine_of(lost)?;
    let writer = Writer::to(stage.scenario, CLUSTER).await?;
    let began = Instant::now();
    stage.kill(&machine)?;
    remediate(stage);
    stage.apply().await?;
    let new = replacement(stage, Role::Etcd, &before, lost).await?;
    let decided = began.elapsed();
    stage.scenario.say(&format!("{} takes its place", new.name_any()));
    stage.gone(lost, Duration::from_secs(FORGOTTEN_AFTER + 180)).await?;
    let forgotten = began.elapsed();
    three_members(stage).await?;
    let took = began.elapsed();
    let written = writer.written();
    no_longer_than_an_election(&written)?;
    quarantined_without_node(stage, &machine).await?;
    guards::hold(&stage.machines)?;
    Ok(Seen {
        took,
        text: format!(
            "deleted after {:.0} s, forgotten after {:.0} s; {}",
            decided.as_secs_f64(),
            forgotten.as_secs_f64(),
            written.told()
        ),
    })
}

/// Waits until the cluster rests on three members. No node tells of them.
async fn three_members(stage: &Stage<'_>) -> Result<()> {
    eventually("three members of etcd", READY, async || {
        Ok(match etcd_members(stage, Role::Etcd, 3).await {
            Ok(()) => Look::Done(()),
            Err(error) => Look::Waiting(format!("{error:#}")),
        })
    })
    .await?;
    stage.ready(API_SERVERS).await?;
    api_servers(stage, API_SERVERS).await?;
    healthy(stage.scenario, CLUSTER).await
}
