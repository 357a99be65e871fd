//! A machine that was forgotten comes back with all that was on it.

use std::time::Duration;

use anyhow::{Result, ensure};
use crds::Host;
use crds::host::HostPhase;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use lab::Lab;
use lab::machines::{self, MachineOptions};
use tokio::task::block_in_place;

use crate::eventually::{Look, eventually};
use crate::lifecycle::stage::{POOL, Stage};

/// From power to a kubelet that has told the cluster of itself.
const BACK: Duration = Duration::from_secs(120);
/// Until one of several API servers answers.
const ANSWER: Duration = Duration::from_secs(30);

/// Its Host is no spare one until the machine, set up anew, proves clean; the Node that its kubelet registers again is
/// taken away.
pub async fn quarantined_until_clean(stage: &mut Stage<'_>, machine: &machines::Machine) -> Result<()> {
    returns(stage, machine).await?;
    let node = eventually("the Node of the machine that is back", BACK, async || {
        let events: Api<Event> = stage.scenario.api();
        let events = events.list(&ListParams::default()).await?.items;
        let told = events.iter().any(|event| {
            let about = event.regarding.as_ref().and_then(|host| host.name.as_deref());
            event.reason.as_deref() == Some("ForgottenMachineIsBack") && about == Some(machine.name())
        });
        let nodes: Api<Node> = Api::all(stage.client().await?);
        let node = nodes.get_opt(machine.name()).await?;
        Ok(match (told, node) {
            (true, None) => Look::Done(()),
            (told, node) => Look::Waiting(format!("told: {told}, there: {}", node.is_some())),
        })
    });
    node.await?;
    stage.scenario.say(&format!("the Node of {} was taken away", machine.name()));
    set_up_anew(stage, machine).await
}

/// The same of a machine that reaches no API server: one of a dedicated etcd has no kubelet, and a control plane's asks
/// its own server, whose etcd is no member any more.
pub async fn quarantined_without_node(stage: &mut Stage<'_>, machine: &machines::Machine) -> Result<()> {
    returns(stage, machine).await?;
    tokio::time::sleep(Duration::from_secs(20)).await;
    // The load balancer's stand-in knows its backends by their ports alone: some requests meet the API server that
    // starts there in vain.
    let is_back = eventually("the API says whether the Node is back", ANSWER, async || {
        let nodes: Api<Node> = Api::all(stage.client().await?);
        Ok(Look::Done(nodes.get_opt(machine.name()).await?.is_some()))
    });
    ensure!(!is_back.await?, "the Node of {} is back", machine.name());
    set_up_anew(stage, machine).await
}

async fn returns(stage: &Stage<'_>, machine: &machines::Machine) -> Result<()> {
    stage.host_is(machine.name(), HostPhase::Quarantined, Duration::from_secs(60)).await?;
    block_in_place(|| machine.start())?;
    stage.scenario.say(&format!("{} is there again, with all that was on it", machine.name()));
    Ok(())
}

async fn set_up_anew(stage: &mut Stage<'_>, machine: &machines::Machine) -> Result<()> {
    let name = machine.name().to_owned();
    let host = stage.scenario.api::<Host>().get(&name).await?;
    let phase = host.status.and_then(|status| status.phase);
    ensure!(phase == Some(HostPhase::Quarantined), "{name} is {phase:?} with a cluster's leftovers on it");
    let new = block_in_place(|| {
        machine.clone().remove()?;
        stage.scenario.lab().add_machine(MachineOptions::named(&name))
    })?;
    stage.scenario.apply(&Lab::host_manifest(&new, &stage.scenario.name)).await?;
    stage.machines.retain(|old| old.name() != name);
    stage.machines.push(new);
    stage.host_is(&name, HostPhase::Available, POOL).await?;
    Ok(())
}
