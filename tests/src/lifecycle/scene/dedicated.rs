//! Machines that hold etcd and nothing else come and go under three API servers.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crds::Machine;
use crds::names::annotation;
use crds::step::Role;
use kube::ResourceExt;
use serde_json::json;

use super::Seen;
use super::control_plane::no_longer_than_an_election;
use super::losses::quarantined_until_clean;
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
    Ok(Seen {
        took,
        text: format!("3 members under {API_SERVERS} API servers; {}", written.told()),
    })
}

/// One of three members is killed and forgotten by a person's word: another machine takes its place.
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
    stage.delete(lost).await?;
    let api = stage.scenario.api::<Machine>();
    let leaving = api.get(&lost.name_any()).await?;
    let generation = leaving.metadata.generation.unwrap_or_default().to_string();
    stage
        .annotate(&leaving, annotation::FORCE_REMOVE, &generation)
        .await?;
    stage.gone(&leaving, Duration::from_secs(240)).await?;
    let forgotten = began.elapsed();
    three_members(stage).await?;
    let took = began.elapsed();
    let written = writer.written();
    no_longer_than_an_election(&written)?;
    quarantined_until_clean(stage, &machine).await?;
    guards::hold(&stage.machines)?;
    Ok(Seen {
        took,
        text: format!(
            "forgotten {:.0} s after the kill; {}",
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
