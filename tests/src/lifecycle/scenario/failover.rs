//! The machine that holds the endpoint's address is killed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::machines::Machine;

use super::Seen;
use crate::lifecycle::stage::{CLUSTER, Stage};
use crate::lifecycle::whole::whole;
use crate::lifecycle::writer::Writer;

/// As long may the API be away when the machine that held its address is killed.
const TAKEOVER: Duration = Duration::from_secs(10);

/// The machine that holds the endpoint's address is killed.
pub async fn failover(stage: &mut Stage<'_>) -> Result<Seen> {
    let address =
        stage.wish["spec"]["controlPlane"]["endpoint"]["host"].as_str().context("there is no address")?.to_owned();
    let holder = holder(stage, &address).await?.context("nobody holds the address")?;
    whole(stage, 3).await?;
    let writer = Writer::to(stage.scenario, CLUSTER).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let calm = writer.written();
    ensure!(calm.count > 0, "nothing can be written to begin with");
    stage.kill(&holder)?;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let written = writer.written();
    let gap = written.gap.as_secs_f64();
    ensure!(written.count > calm.count, "the API did not answer again within 30 s");
    ensure!(written.gap < TAKEOVER, "the API was away for {gap:.1} s");
    let mut left = stage.machines.clone();
    left.retain(|machine| machine.name() != holder.name());
    stage.machines = left;
    ensure!(self::holder(stage, &address).await?.is_some(), "nobody holds the address");
    Ok(Seen {
        took: written.gap,
        text: format!("the longest gap of {} writes is {gap:.1} s", written.count - calm.count),
    })
}

/// Who has the address now.
async fn holder(stage: &Stage<'_>, address: &str) -> Result<Option<Machine>> {
    for machine in &stage.machines {
        let addresses = stage.scenario.ssh(machine, "ip -4 -o address show").await?;
        if addresses.contains(&format!(" {address}/")) {
            return Ok(Some(machine.clone()));
        }
    }
    Ok(None)
}
