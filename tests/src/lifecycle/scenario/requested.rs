//! A platform requests machines beside the count.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use crds::machine_request::{RequestAnswer, RequestedMachineState};
use crds::{Host, MachineRequest, MachineSet, names};
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

use super::Seen;
use crate::eventually::{Look, eventually};
use crate::lifecycle::guards;
use crate::lifecycle::stage::{CLUSTER, POOL, Stage, WORKERS, is_available};

const ORDER: &str = "order";
const DEADLINE_SECONDS: u64 = 300;

/// One machine more is requested than there are: those that there are join, and are given back with the request.
pub async fn partly(stage: &mut Stage<'_>) -> Result<Seen> {
    let old = stage.in_use().await?;
    let before = guards::lengths(&old);
    let hosts = stage.scenario.api::<Host>().list(&ListParams::default()).await?.items;
    let spare = hosts.iter().filter(|host| is_available(host)).count();
    let began = Instant::now();
    let order = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "MachineRequest",
        "metadata": {"name": ORDER, "namespace": stage.scenario.name},
        "spec": {"clusterName": CLUSTER, "set": WORKERS, "count": spare + 1, "deadlineSeconds": DEADLINE_SECONDS},
    });
    stage.scenario.apply(&order).await?;
    let request = answered(stage).await?;
    let status = request.status.unwrap_or_default();
    ensure!(status.answer == Some(RequestAnswer::PartiallyFulfilled), "{status:?}");
    let in_state = |state| status.machines.iter().filter(move |machine| machine.state == state);
    ensure!(in_state(RequestedMachineState::Ready).count() == spare, "{status:?}");
    let reasons: Vec<&str> = in_state(RequestedMachineState::GivenBack).map(|given| given.reason.as_str()).collect();
    ensure!(reasons == ["NoHost"], "{status:?}");
    stage.ready(1 + stage.workers_wished() + spare).await?;
    let set = stage.scenario.api::<MachineSet>().get(&names::worker_set(CLUSTER, WORKERS)).await?;
    let counts = set.status.unwrap_or_default();
    let beside = usize::try_from(counts.requested_replicas).unwrap_or_default();
    ensure!(beside == spare, "{counts:?}");
    ensure!(usize::try_from(set.spec.replicas).unwrap_or_default() == stage.workers_wished(), "its count was changed");
    let text = format!("{spare} of {} Ready, beside the count; all clean in the pool again", spare + 1);
    let seen = Seen::since(began, text);
    stage.scenario.api::<MachineRequest>().delete(ORDER, &DeleteParams::default()).await?;
    stage.available(spare).await?;
    stage.ready(1 + stage.workers_wished()).await?;
    guards::untouched(&old, &before)?;
    guards::hold(&stage.machines)?;
    Ok(seen)
}

async fn answered(stage: &Stage<'_>) -> Result<MachineRequest> {
    let api = stage.scenario.api::<MachineRequest>();
    let within = Duration::from_secs(DEADLINE_SECONDS) + POOL;
    eventually("the request answered", within, async || {
        let request = api.get(ORDER).await?;
        let status = request.status.clone().unwrap_or_default();
        Ok(match status.answer {
            Some(_) => Look::Done(request),
            None => Look::Waiting(status.message.unwrap_or_default()),
        })
    })
    .await
}
