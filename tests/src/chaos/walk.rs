//! A walk on three control planes behind Keepalived, with workers, spare machines and a policy that replaces.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use super::converged::converged;
use super::inject::{Done, Injector};
use super::schedule::{DESTROYED, Event, WORKERS, schedule};
use crate::lifecycle::scenario::remediate;
use crate::lifecycle::stage::{CLUSTER, Stage};
use crate::lifecycle::writer::Writer;
use crate::scenario::{Scenario, within};

/// The endpoint's address: one of the lab's network that no machine gets.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(172, 30, 0, 242);
const PORT: u16 = 8443;
const POD_CIDR: &str = "10.124.0.0/16";
/// Five control planes at most, all workers, and a spare machine for each that is destroyed.
const MACHINES: usize = 5 + WORKERS + DESTROYED;

/// How a walk ended.
pub struct Walked {
    /// Actions that were done.
    pub done: usize,
    /// Actions that there was nothing to do for.
    pub skipped: usize,
    /// From the healing until the cluster matched its spec.
    pub converged: Duration,
    /// What a client that wrote all the time says.
    pub written: String,
}

/// Walks for so long, heals, and waits until the cluster matches its spec.
pub async fn walk(seed: u64, length: Duration) -> Result<Walked> {
    within("chaos", async |scenario| walk_in(scenario, &schedule(seed, length), length).await).await
}

async fn walk_in(scenario: &Scenario, events: &[Event], length: Duration) -> Result<Walked> {
    let names: Vec<String> = (0..MACHINES).map(|number| format!("m{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut stage = Stage::set(scenario, &names, POD_CIDR).await?;
    let spec = &mut stage.wish["spec"];
    spec["controlPlane"] = json!({
        "replicas": 3,
        "endpoint": {"host": ADDRESS.to_string(), "port": PORT, "provider": "Keepalived"},
    });
    spec["workers"][0]["replicas"] = json!(2);
    remediate(&mut stage);
    stage.apply().await?;
    stage.ready(5).await.context("the cluster did not come to be")?;
    let writer = Writer::to(scenario, CLUSTER).await?;

    let (began, mut done, mut skipped) = (Instant::now(), 0, 0);
    let mut injector = Injector::new(&mut stage);
    for event in events {
        tokio::time::sleep(event.at.saturating_sub(began.elapsed())).await;
        match injector.inject(*event).await {
            Ok(Done::To(whom)) => {
                done += 1;
                scenario.say(&format!("{}: {whom}", event.action));
            }
            Ok(Done::Skipped(why)) => {
                skipped += 1;
                scenario.say(&format!("{}: skipped, {why}", event.action));
            }
            // An operator, a Pod or an API server that an earlier action hit may be away for the moment.
            Err(error) => {
                skipped += 1;
                scenario.say(&format!("{}: skipped, {error:#}", event.action));
            }
        }
    }
    tokio::time::sleep(length.saturating_sub(began.elapsed())).await;
    injector.heal().await.context("failed to heal")?;
    scenario.say("all is healed");
    let converged = converged(&stage, (&ADDRESS.to_string(), PORT)).await?;
    let written = writer.written().told();
    scenario.say(&format!("the cluster matches its spec after {:.0} s; {written}", converged.as_secs_f64()));
    Ok(Walked { done, skipped, converged, written })
}
