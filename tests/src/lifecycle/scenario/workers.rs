//! Workers come, and machines that left come back.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::host::HostPhase;
use crds::step::Role;
use kube::ResourceExt;

use super::Seen;
use crate::lifecycle::guards;
use crate::lifecycle::stage::{POOL, Stage, host_of, newcomer};

/// Two workers more; nothing else is touched.
pub async fn expand(stage: &mut Stage<'_>) -> Result<Seen> {
    let old = stage.in_use().await?;
    let before = guards::lengths(&old);
    let began = Instant::now();
    stage.workers(stage.workers_wished() + 2).await?;
    stage.ready(1 + stage.workers_wished()).await?;
    let seen = Seen::since(began, format!("+2 Ready; the guards of {} others say nothing", old.len()));
    guards::untouched(&old, &before)?;
    guards::hold(&stage.machines)?;
    Ok(seen)
}

/// A machine leaves, is clean, and is the one that is taken next.
pub async fn reuse(stage: &mut Stage<'_>) -> Result<Seen> {
    let before = stage.members(Role::Worker).await?;
    let leaver = before.last().context("there is no worker")?;
    let host = host_of(leaver).context("the worker has no Host")?.to_owned();
    stage.annotate(leaver, crds::names::annotation::DELETE_FIRST, "").await?;
    let began = Instant::now();
    stage.workers(before.len() - 1).await?;
    stage.gone(leaver, Duration::from_secs(180)).await?;
    stage.host_is(&host, HostPhase::Available, POOL).await?;
    let (left, cleaned) = (stage.members(Role::Worker).await?, began.elapsed());
    let others: Vec<String> =
        stage.machines.iter().map(|machine| machine.name().to_owned()).filter(|name| *name != host).collect();
    for other in &others {
        stage.schedulable(other, false).await?;
    }
    let again = Instant::now();
    stage.workers(before.len()).await?;
    stage.ready(1 + before.len()).await?;
    let took = again.elapsed();
    for other in &others {
        stage.schedulable(other, true).await?;
    }
    let now = stage.members(Role::Worker).await?;
    let new = newcomer(&now, &left)?;
    ensure!(host_of(new) == Some(host.as_str()), "{} took {:?}, not {host}", new.name_any(), host_of(new));
    guards::hold(&stage.machines)?;
    let text = format!(
        "clean in the pool after {:.0} s, a Ready node again after {:.0} s more",
        cleaned.as_secs_f64(),
        took.as_secs_f64()
    );
    Ok(Seen::since(began, text))
}
