//! A setting that restarts something waits for a window.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::names::condition;
use crds::step::Intent;
use crds::{Conditions, PlaybookRun};
use jiff::{SignedDuration, Timestamp, ToSpan, Unit, Zoned};
use kube::api::ListParams;
use serde_json::json;

use super::Seen;
use super::control_plane::no_longer_than_an_election;
use crate::eventually::{Look, eventually};
use crate::lifecycle::stage::{CLUSTER, Stage};
use crate::lifecycle::whole::whole;
use crate::lifecycle::writer::Writer;

/// Until it is seen that the window is waited for.
const NOTICED: Duration = Duration::from_secs(30);
/// The window opens in two minutes at most, and three API servers are started anew.
const ROLLED_OUT: Duration = Duration::from_secs(600);
const EVENT_TTL: i64 = 5400;

/// Nothing begins before the window opens, and all is done in it.
pub async fn waited_for(stage: &mut Stage<'_>) -> Result<Seen> {
    let planes = stage.wish["spec"]["controlPlane"]["replicas"].as_u64().context("there are no control planes")?;
    let planes = usize::try_from(planes)?;
    let opens = next_but_one_minute()?;
    let schedule = format!("{} {} * * *", opens.minute(), opens.hour());
    stage.wish["spec"]["rollout"] =
        json!({"windows": [{"schedule": schedule, "timeZone": "Etc/UTC", "durationMinutes": 15}]});
    stage.wish["spec"]["configuration"] = json!({"apiServer": {"eventTTLSeconds": EVENT_TTL}});
    let began = Instant::now();
    let writer = Writer::to(stage.scenario, CLUSTER).await?;
    stage.apply().await?;
    let waits = up_to_date(stage, NOTICED, |said| said.reason == "WaitingForWindow").await?;
    stage.scenario.say(&waits);
    let told = up_to_date(stage, ROLLED_OUT, |said| said.status == "True").await?;
    stage.scenario.say(&told);
    let runs = stage.scenario.api::<PlaybookRun>().list(&ListParams::default()).await?;
    let since: Timestamp = opens.timestamp() - SignedDuration::from_mins(3);
    let starts: Vec<Timestamp> = runs
        .iter()
        .filter(|run| run.spec.intent == Intent::Configure)
        .filter_map(|run| run.metadata.creation_timestamp.as_ref().map(|time| time.0))
        .filter(|created| *created > since)
        .collect();
    ensure!(starts.len() == planes, "a run for each control plane: {starts:?}");
    let first = starts.iter().min().context("there is no run")?;
    ensure!(*first >= opens.timestamp(), "a run was made at {first}, and the window opens at {opens}");
    for member in stage.members(crds::step::Role::ControlPlane).await? {
        let machine = stage.machine_of(&member)?;
        let flags = stage.scenario.ssh(&machine, "ps -C kube-apiserver -o args=").await?;
        ensure!(flags.contains("--event-ttl=5400s"), "{} has not got it: {flags}", machine.name());
    }
    let written = writer.written();
    no_longer_than_an_election(&written)?;
    drop(writer);
    stage.wish["spec"]["rollout"] = json!({});
    stage.apply().await?;
    whole(stage, planes).await?;
    let late = first.duration_since(opens.timestamp()).as_secs();
    Ok(Seen { took: began.elapsed(), text: format!("the first run {late} s after it opened; {}", written.told()) })
}

/// One or two minutes from now, as a schedule can say it.
fn next_but_one_minute() -> Result<Zoned> {
    let soon = Timestamp::now().in_tz("Etc/UTC")?.checked_add(2.minutes())?;
    Ok(soon.round(jiff::ZonedRound::new().smallest(Unit::Minute).mode(jiff::RoundMode::Trunc))?)
}

/// Waits until `UpToDate` of the present generation is so, and gives its message.
async fn up_to_date(
    stage: &Stage<'_>,
    deadline: Duration,
    is_so: impl Fn(&k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition) -> bool,
) -> Result<String> {
    eventually("UpToDate", deadline, async || {
        let found = stage.deployment().await?;
        let said = found.condition(condition::UP_TO_DATE).context("nothing is said of it")?;
        let told = format!("{}: {}", said.reason, said.message);
        let is_current = said.observed_generation == found.metadata.generation;
        Ok(if is_current && is_so(said) { Look::Done(told) } else { Look::Waiting(told) })
    })
    .await
}
