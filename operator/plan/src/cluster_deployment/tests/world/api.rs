//! What the API server and the garbage collector make of what is written.

use crds::ObjectExt;
use crds::{Cluster, Host, Machine, MachineSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{World, Write, owned};
use crate::{cluster_deployment, machine, machine_set};

impl World {
    pub(super) fn apply(&mut self, write: &Write) {
        match write.clone() {
            Write::Deployment(step) => self.apply_to_deployment(step),
            Write::Set(machine_set::Action::CreateMachine(machine)) => {
                let mut machine = *machine;
                if self.machines.iter().all(|other| other.metadata.name != machine.metadata.name) {
                    self.stamp(&mut machine.metadata);
                    self.machines.push(machine);
                }
            }
            Write::Set(machine_set::Action::DeleteMachine(machine)) => self.mark_deleted(&machine),
            Write::Set(machine_set::Action::Adopt(adopted)) => {
                let name = adopted.name().to_owned();
                if let Some(machine) = self.machine(&name) {
                    machine.metadata = adopted.metadata;
                }
            }
            Write::Set(machine_set::Action::QuarantineHost { machine, quarantine, .. }) => {
                let name = machine.metadata.name.unwrap_or_default();
                if let Some(machine) = self.machine(&name) {
                    let annotations = machine.metadata.annotations.get_or_insert_default();
                    annotations.insert(crds::names::annotation::QUARANTINE.into(), quarantine);
                }
            }
            Write::Set(machine_set::Action::SetVersion { machine, version }) => {
                let name = machine.metadata.name.unwrap_or_default();
                if let Some(machine) = self.machine(&name) {
                    machine.spec.kubernetes_version = version;
                }
            }
            Write::Machine(uid, step) => self.apply_to_machine(&uid, *step),
            Write::DeploymentStatus(status) => self.deployment.status = Some(*status),
            Write::SetStatus(name, status) => {
                if let Some(set) = self.sets.iter_mut().find(|set| set.metadata.name.as_ref() == Some(&name)) {
                    set.status = Some(*status);
                }
            }
            Write::MachineStatus(uid, status) => {
                if let Some(machine) = self.machine_of(&uid) {
                    machine.status = Some(*status);
                }
            }
        }
    }

    pub(super) fn machine(&mut self, name: &str) -> Option<&mut Machine> {
        self.machines.iter_mut().find(|machine| machine.metadata.name.as_deref() == Some(name))
    }

    fn machine_of(&mut self, uid: &str) -> Option<&mut Machine> {
        self.machines.iter_mut().find(|machine| machine.metadata.uid.as_deref() == Some(uid))
    }

    pub(super) fn mark_deleted(&mut self, deleted: &Machine) {
        let now = self.time();
        let uid = deleted.metadata.uid.clone();
        if let Some(machine) = self.machines.iter_mut().find(|machine| machine.metadata.uid == uid) {
            machine.metadata.deletion_timestamp.get_or_insert(now);
        }
    }

    pub(super) fn apply_to_deployment(&mut self, step: cluster_deployment::Action) {
        use cluster_deployment::Action;
        match step {
            Action::AddFinalizer => {
                self.deployment.metadata.finalizers = Some(vec![crds::names::finalizer::CLUSTER_DEPLOYMENT.into()]);
            }
            Action::MarkFenced(host) => {
                if let Some(live) = self.unchanged(&host) {
                    let fence = live.spec.quarantine.as_mut().and_then(|there| there.fence.as_mut());
                    fence.unwrap().fenced = true;
                    written(&mut live.metadata);
                }
            }
            Action::MakePki => self.pki = true,
            Action::MakeKubeconfig { .. } => {
                assert!(self.pki, "a kubeconfig needs keys");
                self.kubeconfig = true;
            }
            Action::ApplyCluster(cluster) => {
                let mut cluster = *cluster;
                match &mut self.cluster {
                    Some(there) => there.spec = cluster.spec,
                    None => {
                        self.stamp(&mut cluster.metadata);
                        self.cluster = Some(cluster);
                    }
                }
            }
            Action::DeleteCluster(cluster) => {
                let is_it = |there: &Cluster| there.metadata.uid == cluster.metadata.uid;
                self.cluster = self.cluster.take().filter(|there| !is_it(there));
            }
            Action::ApplyMachineSet { name, object } => {
                let found = self.sets.iter().position(|set| set.metadata.name.as_ref() == Some(&name));
                let mut set: MachineSet = serde_json::from_value(object).unwrap();
                match found {
                    Some(index) => {
                        set.metadata.uid = self.sets[index].metadata.uid.clone();
                        set.metadata.generation = self.sets[index].metadata.generation.map(|generation| generation + 1);
                        set.status = self.sets[index].status.clone();
                        self.sets[index] = set;
                    }
                    None => {
                        self.stamp(&mut set.metadata);
                        self.sets.push(set);
                    }
                }
            }
            Action::DeleteMachineSet(set) => {
                self.sets.retain(|other| other.metadata.uid != set.metadata.uid);
                let orphans: Vec<Machine> =
                    self.machines.iter().filter(|machine| owned(machine, &set)).cloned().collect();
                orphans.iter().for_each(|machine| self.mark_deleted(machine));
            }
            Action::DeleteMachine(machine) => self.mark_deleted(&machine),
            Action::ForceRemoveMachine(machine) => {
                let name = machine.name().to_owned();
                if let Some(machine) = self.machine(&name) {
                    let generation = machine.generation().to_string();
                    let annotations = machine.metadata.annotations.get_or_insert_default();
                    annotations.insert(crds::names::annotation::FORCE_REMOVE.into(), generation);
                }
            }
            Action::ForgetMachine { machine, since } => {
                let uid = machine.uid().to_owned();
                if let Some(machine) = self.machine_of(&uid) {
                    let generation = machine.generation().to_string();
                    let annotations = machine.metadata.annotations.get_or_insert_default();
                    annotations.insert(crds::names::annotation::FORCE_REMOVE.into(), generation);
                    annotations.insert(crds::names::annotation::LOST_SINCE.into(), since.to_string());
                }
            }
            Action::CreateRun(run) => {
                let mut run = *run;
                self.check_change(&run);
                crds::playbook_run::check_steps(run.spec.intent, &run.spec.steps).unwrap();
                if self.runs.iter().all(|other| other.metadata.name != run.metadata.name) {
                    self.stamp(&mut run.metadata);
                    self.runs.push(run);
                }
            }
            Action::CancelRun(run) => {
                let uid = run.metadata.uid.clone();
                if let Some(run) = self.runs.iter_mut().find(|run| run.metadata.uid == uid) {
                    run.spec.cancel = true;
                }
            }
            Action::HoldRun { run, paused } => {
                let uid = run.metadata.uid.clone();
                if let Some(run) = self.runs.iter_mut().find(|run| run.metadata.uid == uid) {
                    run.spec.paused = paused;
                }
            }
            Action::DeleteRun(run) => self.runs.retain(|other| other.metadata.uid != run.metadata.uid),
            Action::RemoveFinalizer => {
                self.gone = true;
                // The garbage collector.
                self.sets.clear();
                self.cluster = None;
            }
        }
    }

    pub(super) fn apply_to_machine(&mut self, uid: &str, action: machine::Action) {
        use machine::Action;
        match action {
            Action::AddFinalizer => {
                if let Some(machine) = self.machine_of(uid) {
                    machine.metadata.finalizers = Some(vec![crds::names::finalizer::MACHINE.into()]);
                }
            }
            Action::Claim { host, claim, epoch, identity, finalizers } => {
                if let Some(live) = self.unchanged(&host) {
                    live.spec.identity = identity;
                    live.spec.claim_ref = Some(claim);
                    live.spec.claim_epoch = epoch;
                    live.metadata.finalizers = Some(finalizers);
                    written(&mut live.metadata);
                }
            }
            Action::SetHost(host) => {
                // As in one pass: what follows a refused claim is not carried out.
                let held = self.hosts.iter().any(|candidate| {
                    candidate.metadata.name.as_ref() == Some(&host.name)
                        && candidate.spec.claim_ref.as_ref().map(|claim| claim.uid.as_str()) == Some(uid)
                });
                if let Some(machine) = self.machine_of(uid).filter(|_| held) {
                    machine.spec.host_ref.get_or_insert(host);
                }
            }
            Action::DeleteNode { node, .. } => {
                self.nodes.remove(&node);
                self.cordoned.remove(&node);
                self.deleted_nodes.push(node);
            }
            Action::Cordon { node, .. } => drop(self.cordoned.insert(node)),
            Action::Evict { pods, .. } => self.evict(&pods),
            Action::Release { host, finalizers, quarantine, identity } => {
                self.check_release(&host, quarantine.as_ref());
                if let Some(live) = self.unchanged(&host) {
                    live.spec.claim_ref = None;
                    live.spec.identity = identity;
                    if quarantine.is_some() {
                        live.spec.quarantine = quarantine;
                    }
                    live.metadata.finalizers = Some(finalizers);
                    written(&mut live.metadata);
                }
            }
            Action::RemoveFinalizer => self.machines.retain(|machine| machine.metadata.uid.as_deref() != Some(uid)),
        }
    }

    /// The Host, if nobody has written it since it was read.
    pub(super) fn unchanged(&mut self, read: &Host) -> Option<&mut Host> {
        self.hosts.iter_mut().find(|host| {
            host.metadata.name == read.metadata.name && host.metadata.resource_version == read.metadata.resource_version
        })
    }
}

pub(super) fn written(metadata: &mut ObjectMeta) {
    let version: u64 = metadata.resource_version.as_ref().and_then(|version| version.parse().ok()).unwrap_or_default();
    metadata.resource_version = Some((version + 1).to_string());
}
