//! A cluster that scenarios are played on: what was last wished of it, its machines, and what its objects say.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use crds::host::HostPhase;
use crds::step::Role;
use crds::{ClusterDeployment, Host, Machine, conditions};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use lab::machines;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use crate::eventually::{Look, eventually};
use crate::scenario::Scenario;
use crate::{objects, own_network, pod_network, workload};

/// The cluster's name.
pub const CLUSTER: &str = "c";
/// Its only set of workers.
pub const WORKERS: &str = "general";
/// A cluster is made, or made whole again.
pub const READY: Duration = Duration::from_secs(420);
/// A Host is cleaned, probed, and back in the pool.
pub const POOL: Duration = Duration::from_secs(180);

/// Also of a node whose DNS server has just been lost.
const POD_NETWORK: Duration = Duration::from_secs(120);

/// A cluster in a scenario.
pub struct Stage<'a> {
    /// The scenario that it stands in.
    pub scenario: &'a Scenario,
    /// All machines of the scenario.
    pub machines: Vec<machines::Machine>,
    /// What is wished of the cluster.
    pub wish: Value,
}

impl<'a> Stage<'a> {
    /// Machines in the pool, all Available, and a wish that nobody has been told yet: one control plane and no worker,
    /// on whatever Hosts there are.
    pub async fn set(scenario: &'a Scenario, machines: &[&str], pod_cidr: &str) -> Result<Self> {
        let machines = scenario.machines(machines).await?;
        let mut wish = objects::cluster(&scenario.name, CLUSTER, pod_cidr, &[], &[]);
        wish["spec"]["controlPlane"] = json!({"replicas": 1});
        wish["spec"]["workers"] = json!([{"name": WORKERS, "replicas": 0}]);
        let stage = Self { scenario, machines, wish };
        stage.available(stage.machines.len()).await?;
        Ok(stage)
    }

    /// Wishes what `wish` says.
    pub async fn apply(&self) -> Result<()> {
        self.scenario.apply(&self.wish).await?;
        Ok(())
    }

    /// Wishes so many workers.
    pub async fn workers(&mut self, count: usize) -> Result<()> {
        self.wish["spec"]["workers"][0]["replicas"] = json!(count);
        self.apply().await
    }

    /// How many workers are wished.
    pub fn workers_wished(&self) -> usize {
        let replicas = self.wish["spec"]["workers"][0]["replicas"].as_u64();
        usize::try_from(replicas.unwrap_or_default()).unwrap_or_default()
    }

    /// Waits until the cluster is Ready with exactly so many nodes, all Ready.
    pub async fn ready(&self, nodes: usize) -> Result<Vec<Node>> {
        self.scenario.ready(CLUSTER, READY).await?;
        let client = self.client().await?;
        let nodes = workload::nodes_ready(&client, nodes, READY).await?;
        self.scenario.ready(CLUSTER, READY).await?;
        Ok(nodes)
    }

    /// Waits until the Pods of every Ready node reach each other and DNS, if the cluster is still there.
    pub async fn connected(&self) -> Result<()> {
        match self.scenario.api::<ClusterDeployment>().get_opt(CLUSTER).await? {
            Some(_) => pod_network::connected(&self.client().await?, None, POD_NETWORK).await,
            None => Ok(()),
        }
    }

    /// A cluster that was made without kube-proxy is still without, and the network of its owner serves Services.
    pub async fn stays_without_kube_proxy(&self) -> Result<()> {
        if !own_network::is_wished(&self.wish) {
            return Ok(());
        }
        // A worker that came for a surge leaves once nothing is left to do.
        let nodes = eventually("nobody leaves", POOL, async || {
            let mut nodes = self.members(Role::ControlPlane).await?;
            nodes.extend(self.members(Role::Worker).await?);
            let leaving = nodes.iter().filter(|node| node.metadata.deletion_timestamp.is_some());
            let leaving: Vec<String> = leaving.map(ResourceExt::name_any).collect();
            Ok(match leaving.is_empty() {
                true => Look::Done(nodes),
                false => Look::Waiting(leaving.join(", ")),
            })
        })
        .await?;
        let machines = nodes.iter().map(|node| self.machine_of(node)).collect::<Result<Vec<_>>>()?;
        let machines: Vec<&machines::Machine> = machines.iter().collect();
        own_network::serves(self.scenario, CLUSTER, &self.client().await?, &machines).await
    }

    /// A client of the cluster.
    pub async fn client(&self) -> Result<Client> {
        self.scenario.cluster_client(CLUSTER).await
    }

    /// The ClusterDeployment.
    pub async fn deployment(&self) -> Result<ClusterDeployment> {
        Ok(self.scenario.api::<ClusterDeployment>().get(CLUSTER).await?)
    }

    /// Machines of a role, the oldest first.
    pub async fn members(&self, role: Role) -> Result<Vec<Machine>> {
        let all = self.scenario.api::<Machine>().list(&ListParams::default()).await?;
        let of = |machine: &Machine| machine.spec.cluster_name == CLUSTER && machine.spec.role == role;
        let mut members: Vec<Machine> = all.into_iter().filter(of).collect();
        members.sort_by_key(|machine| (machine.creation_timestamp(), machine.name_any()));
        Ok(members)
    }

    /// The lab's machine behind a Machine.
    pub fn machine_of(&self, machine: &Machine) -> Result<machines::Machine> {
        let host = host_of(machine).with_context(|| format!("{} has no Host", machine.name_any()))?;
        self.machine(host)
    }

    /// The lab's machine of this name.
    pub fn machine(&self, name: &str) -> Result<machines::Machine> {
        let found = self.machines.iter().find(|machine| machine.name() == name);
        found.cloned().with_context(|| format!("there is no machine {name}"))
    }

    /// The lab's machines of the cluster's members.
    pub async fn in_use(&self) -> Result<Vec<machines::Machine>> {
        let mut found = Vec::new();
        for role in [Role::ControlPlane, Role::Etcd, Role::Worker] {
            for member in self.members(role).await? {
                found.push(self.machine_of(&member)?);
            }
        }
        Ok(found)
    }

    /// Takes a machine's power away.
    pub fn kill(&self, machine: &machines::Machine) -> Result<()> {
        self.scenario.say(&format!("{} loses its power", machine.name()));
        block_in_place(|| machine.kill())
    }

    /// Deletes a Machine.
    pub async fn delete(&self, machine: &Machine) -> Result<()> {
        let api = self.scenario.api::<Machine>();
        api.delete(&machine.name_any(), &DeleteParams::default()).await?;
        Ok(())
    }

    /// Annotates a Machine.
    pub async fn annotate(&self, machine: &Machine, key: &str, value: &str) -> Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
        self.scenario.api::<Machine>().patch(&machine.name_any(), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Gives a verb that is meant for the ClusterDeployment as it is now.
    pub async fn tell(&self, annotation: &str) -> Result<()> {
        let generation = self.deployment().await?.metadata.generation.unwrap_or_default();
        self.say(annotation, &generation.to_string()).await
    }

    /// Writes an annotation of a person's on the ClusterDeployment.
    pub async fn say(&self, annotation: &str, value: &str) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {annotation: value}}});
        self.scenario.api::<ClusterDeployment>().patch(CLUSTER, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Waits until a Machine is gone.
    pub async fn gone(&self, machine: &Machine, deadline: Duration) -> Result<()> {
        let api = self.scenario.api::<Machine>();
        let (name, uid) = (machine.name_any(), machine.uid());
        eventually(&format!("Machine {name} gone"), deadline, async || {
            Ok(match api.get_opt(&name).await? {
                Some(found) if found.uid() == uid => {
                    Look::Waiting(found.status.and_then(|status| status.message).unwrap_or_default())
                }
                _ => Look::Done(()),
            })
        })
        .await
    }

    /// Waits until a Machine's condition says something that contains all these words, and gives its message.
    pub async fn says(&self, machine: &str, condition: &str, words: &[&str], deadline: Duration) -> Result<String> {
        let api = self.scenario.api::<Machine>();
        eventually(&format!("{condition} of Machine {machine} with {words:?}"), deadline, async || {
            let status = api.get(machine).await?.status.unwrap_or_default();
            let found = conditions::find(&status.conditions, condition);
            let text = found.map(|found| format!("{}: {}", found.reason, found.message)).unwrap_or_default();
            Ok(match words.iter().all(|word| text.contains(word)) {
                true => Look::Done(text),
                false => Look::Waiting(text),
            })
        })
        .await
    }

    /// Waits until exactly so many Hosts are clean, claimed by nobody, and can be taken.
    pub async fn available(&self, count: usize) -> Result<()> {
        let api = self.scenario.api::<Host>();
        eventually(&format!("{count} Hosts Available"), POOL, async || {
            let hosts = api.list(&ListParams::default()).await?.items;
            let found = hosts.iter().filter(|host| is_available(host)).count();
            Ok(match found == count {
                true => Look::Done(()),
                false => Look::Waiting(format!("{found} are: {}", phases(&hosts))),
            })
        })
        .await
    }

    /// Waits until this Host is in the phase.
    pub async fn host_is(&self, name: &str, phase: HostPhase, deadline: Duration) -> Result<Host> {
        let api = self.scenario.api::<Host>();
        eventually(&format!("Host {name} {phase:?}"), deadline, async || {
            let host = api.get(name).await?;
            let status = host.status.clone().unwrap_or_default();
            Ok(match status.phase == Some(phase) {
                true => Look::Done(host),
                false => Look::Waiting(format!("{:?}: {:?}", status.phase, status.message)),
            })
        })
        .await
    }

    /// Lets a Host be taken, or not.
    pub async fn schedulable(&self, host: &str, may: bool) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"unschedulable": !may}}));
        let api: Api<Host> = self.scenario.api();
        api.patch(host, &PatchParams::default(), &patch).await?;
        Ok(())
    }
}

/// Whether a Host can be taken.
pub fn is_available(host: &Host) -> bool {
    let phase = host.status.as_ref().and_then(|status| status.phase);
    phase == Some(HostPhase::Available) && host.spec.claim_ref.is_none() && !host.spec.unschedulable
}

fn phases(hosts: &[Host]) -> String {
    let one = |host: &Host| {
        let status = host.status.clone().unwrap_or_default();
        let phase = status.phase.map(|phase| format!("{phase:?}")).unwrap_or_default();
        format!("{} {phase} {}", host.name_any(), status.message.unwrap_or_default())
    };
    hosts.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Name of a Machine's Host.
pub fn host_of(machine: &Machine) -> Option<&str> {
    machine.spec.host_ref.as_ref().map(|host| host.name.as_str())
}

/// The one that is there now and was not before.
pub fn newcomer<'a>(now: &'a [Machine], before: &[Machine]) -> Result<&'a Machine> {
    let known = |machine: &&Machine| !before.iter().any(|old| old.uid() == machine.uid());
    let mut new = now.iter().filter(known);
    match (new.next(), new.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => bail!("no Machine is new"),
        (Some(one), Some(other)) => bail!("{} and {} are new", one.name_any(), other.name_any()),
    }
}
