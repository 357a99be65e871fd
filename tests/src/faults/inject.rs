//! Does what a fault does, and takes it back. What must be looked up is looked up before (`aim`), so that the hit
//! itself takes no time.

mod machine;
mod metadata;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use crds::step::Intent;
use crds::{ClusterDeployment, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use lab::machines::Machine;
use lab::processes::Identity;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::task::{JoinHandle, block_in_place, spawn_blocking};

use super::fault::{Fault, Place};
use super::schedule::Schedule;
use crate::scenario::Scenario;

pub use machine::{cable, pull};
pub use metadata::{Node, administrator, delete_operator, delete_pod, keep_operators, keep_to, start_node};

/// What will be hit.
pub struct Aim {
    /// By what.
    pub fault: Fault,
    /// The run under way.
    pub run: String,
    /// The machine that it works on.
    pub machine: Machine,
    target: Target,
}

enum Target {
    Processes(Vec<Identity>),
    Pod(String),
    Leader { pod: String, holder: String, processes: Vec<Identity> },
    Node(Node),
    Cable(String),
    Machine,
    Object,
}

/// How and when what was done is taken back.
pub enum Undo {
    /// There is nothing to take back.
    Nothing,
    /// So long after the hit.
    After(Duration, Repair),
    /// When the run that was hit has ended and the reason stands in the status.
    RunOver(Repair),
    /// It ends by itself.
    ByItself(JoinHandle<Result<()>>),
}

/// What takes it back.
pub enum Repair {
    /// Plugs the cable in.
    Heal(Machine),
    /// Turns the power on.
    Start(Machine),
    /// Turns the power of a node on.
    StartNode(Node),
    /// Lets stopped processes go on.
    Continue(Vec<Identity>),
    /// Removes a Pod, so that its container's restarts are not waited for longer and longer.
    DeletePod(String),
    /// Applies the object as it was.
    Apply(Value),
    /// The host key that is known.
    HostKey(Machine),
    /// Room on the disk.
    Disk(Machine),
    /// Another attempt, asked for as the status tells a person to.
    Retry,
}

/// Makes ready what the fault needs before the install begins.
pub async fn prepare(scenario: &Scenario, fault: Fault, machines: &[Machine]) -> Result<()> {
    match fault {
        Fault::DiskFull => block_in_place(|| machines.iter().try_for_each(machine::own_disk)),
        Fault::OperatorKilled | Fault::OperatorStopped => metadata::rested_operators(&scenario.client).await,
        _ => Ok(()),
    }
}

/// Looks up what the fault hits.
pub async fn aim(scenario: &Scenario, fault: Fault, run: &str, machine: &Machine) -> Result<Aim> {
    let target = match fault {
        Fault::PodKilled => Target::Processes(executor(scenario, run).await?),
        Fault::PodDeleted => Target::Pod(pod_of(scenario, run).await?.name_any()),
        Fault::NodeLost => Target::Node(Node::LOSSY),
        Fault::OperatorKilled | Fault::OperatorStopped => {
            let Leader { pod, holder, processes } = Leader::find(&scenario.client).await?;
            Target::Leader { pod, holder, processes }
        }
        Fault::NetworkCut => Target::Cable(block_in_place(|| machine::cable(machine))?),
        Fault::HostRebooted | Fault::PowerLost | Fault::HostKeySwapped | Fault::DiskFull => Target::Machine,
        Fault::SpecEdited
        | Fault::InputsDeleted
        | Fault::SecretRotated
        | Fault::RunCanceled
        | Fault::ClusterDeleted => Target::Object,
    };
    Ok(Aim { fault, run: run.to_owned(), machine: machine.clone(), target })
}

/// Hits, and says when that was done.
pub async fn strike(
    scenario: &Scenario,
    cluster: &str,
    fault: Fault,
    place: Place,
    aim: &Aim,
    schedule: Schedule,
) -> Result<(Timestamp, Undo)> {
    let outage = schedule.outage(fault, place);
    let machine = &aim.machine;
    let mut done = None;
    let undo = match (&aim.target, fault) {
        (Target::Processes(processes), _) => {
            all(processes, Signal::SIGKILL)?;
            Undo::Nothing
        }
        (Target::Pod(name), _) => {
            metadata::delete_pod(&scenario.api(), name).await?;
            Undo::Nothing
        }
        (Target::Leader { pod, processes, .. }, Fault::OperatorKilled) => {
            all(processes, Signal::SIGKILL)?;
            Undo::After(Duration::from_secs(2), Repair::DeletePod(pod.clone()))
        }
        (Target::Leader { processes, .. }, _) => {
            all(processes, Signal::SIGSTOP)?;
            Undo::After(outage, Repair::Continue(processes.clone()))
        }
        // A power cut is one signal; it is the machine that takes its time to be gone.
        (Target::Node(node), _) => {
            done = Some(Timestamp::now());
            block_in_place(|| node.machine()?.kill())?;
            Undo::RunOver(Repair::StartNode(*node))
        }
        (Target::Cable(cable), _) => {
            block_in_place(|| machine::pull(cable))?;
            done = Some(Timestamp::now());
            block_in_place(|| machine.partition())?;
            Undo::After(outage, Repair::Heal(machine.clone()))
        }
        (Target::Machine, Fault::HostRebooted) => {
            let machine = machine.clone();
            Undo::ByItself(spawn_blocking(move || machine.reboot()))
        }
        (Target::Machine, Fault::PowerLost) => {
            done = Some(Timestamp::now());
            block_in_place(|| machine.kill())?;
            Undo::After(outage, Repair::Start(machine.clone()))
        }
        (Target::Machine, Fault::HostKeySwapped) => {
            block_in_place(|| machine::swap_host_key(machine))?;
            Undo::RunOver(Repair::HostKey(machine.clone()))
        }
        (Target::Machine, _) => {
            block_in_place(|| machine::fill_disk(machine))?;
            Undo::RunOver(Repair::Disk(machine.clone()))
        }
        (Target::Object, fault) => objects(scenario, cluster, fault, &aim.run).await?,
    };
    Ok((done.unwrap_or_else(Timestamp::now), undo))
}

/// Takes it back.
pub async fn repair(scenario: &Scenario, cluster: &str, repair: Repair) -> Result<()> {
    match repair {
        Repair::Heal(machine) => block_in_place(|| machine.heal()),
        Repair::Start(machine) => block_in_place(|| machine.start()),
        Repair::StartNode(node) => node.start(&scenario.client).await,
        Repair::Continue(processes) => all(&processes, Signal::SIGCONT),
        Repair::DeletePod(pod) => metadata::delete_operator(&scenario.client, &pod).await,
        Repair::Apply(object) => scenario.apply(&object).await.map(drop),
        Repair::HostKey(machine) => block_in_place(|| machine::restore_host_key(&machine)),
        Repair::Disk(machine) => block_in_place(|| machine::free_disk(&machine)),
        Repair::Retry => retry(scenario, cluster).await,
    }
}

async fn objects(scenario: &Scenario, cluster: &str, fault: Fault, run: &str) -> Result<Undo> {
    let clusters = scenario.api::<ClusterDeployment>();
    let runs = scenario.api::<PlaybookRun>();
    let merge = PatchParams::default();
    match fault {
        Fault::SpecEdited => {
            let patch = json!([{"op": "add", "path": "/spec/workers/0/labels", "value": {"edited": "meanwhile"}}]);
            let patch: Patch<Value> = Patch::Json(serde_json::from_value(patch)?);
            clusters.patch(cluster, &merge, &patch).await?;
        }
        Fault::InputsDeleted => {
            let status = runs.get(run).await?.status.unwrap_or_default();
            let inputs = status.inputs.with_context(|| format!("run {run} names no inputs"))?;
            let now = DeleteParams::default();
            scenario.api::<ConfigMap>().delete(&inputs.config_map, &now).await?;
            scenario.api::<Secret>().delete(&inputs.secret, &now).await?;
        }
        Fault::SecretRotated => {
            let right = scenario.lab().secret_manifest(&scenario.name)?;
            let mut wrong = right.clone();
            wrong["stringData"]["ssh-privatekey"] = json!(machine::another_key()?);
            scenario.apply(&wrong).await?;
            return Ok(Undo::RunOver(Repair::Apply(right)));
        }
        Fault::RunCanceled => {
            let patch = Patch::Merge(json!({"spec": {"cancel": true}}));
            runs.patch(run, &merge, &patch).await?;
            return Ok(Undo::RunOver(Repair::Retry));
        }
        _ => {
            clusters.delete(cluster, &DeleteParams::default()).await?;
        }
    }
    Ok(Undo::Nothing)
}

async fn retry(scenario: &Scenario, cluster: &str) -> Result<()> {
    let clusters = scenario.api::<ClusterDeployment>();
    let generation = clusters.get(cluster).await?.metadata.generation.unwrap_or_default();
    let asked = json!({"metadata": {"annotations": {crds::names::annotation::RETRY: generation.to_string()}}});
    clusters.patch(cluster, &PatchParams::default(), &Patch::Merge(asked)).await?;
    Ok(())
}

/// Whether another operator leads than the one that was hit at this time.
pub async fn another_leads(scenario: &Scenario, aim: &Aim, since: Timestamp) -> Result<bool> {
    match &aim.target {
        Target::Leader { holder, .. } => metadata::another_leads(&scenario.client, holder, since).await,
        _ => Ok(false),
    }
}

/// Which of the install's machines a run of this intent works on.
pub fn machine_of(machines: &[Machine], intent: Intent) -> Option<&Machine> {
    machines.get(usize::from(intent == Intent::Join))
}

/// The operator that leads.
pub struct Leader {
    /// Its Pod.
    pub pod: String,
    /// The name that it leads under.
    pub holder: String,
    /// Its processes.
    pub processes: Vec<Identity>,
}

impl Leader {
    /// The one that leads now.
    pub async fn find(client: &Client) -> Result<Self> {
        let (pod, holder) = metadata::leader(client).await?;
        Ok(Self { processes: processes(&pod, "operator")?, pod: pod.name_any(), holder })
    }
}

/// The processes of the executor of a run under way.
pub async fn executor(scenario: &Scenario, run: &str) -> Result<Vec<Identity>> {
    processes(&pod_of(scenario, run).await?, "executor")
}

fn processes(pod: &Pod, program: &str) -> Result<Vec<Identity>> {
    let processes = lab::processes::of_pod(&pod.uid().unwrap_or_default(), program);
    if processes.is_empty() {
        bail!("Pod {} has no process of the {program}", pod.name_any());
    }
    Ok(processes)
}

/// The Pod of a run under way.
pub async fn pod_of(scenario: &Scenario, run: &str) -> Result<Pod> {
    let of_run = kube::api::ListParams::default().labels(&format!("{}={run}", crds::names::label::RUN));
    let pods = scenario.api::<Pod>().list(&of_run).await?;
    let running = pods.items.into_iter().find(|pod| pod.metadata.deletion_timestamp.is_none());
    running.with_context(|| format!("run {run} has no Pod"))
}

/// Sends a signal to all of them.
pub fn all(processes: &[Identity], signal: Signal) -> Result<()> {
    processes.iter().try_for_each(|process| process.signal(signal))
}
