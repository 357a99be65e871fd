//! What the API server and the garbage collector make of what is written.

use crds::ObjectExt;
use crds::names::{annotation, finalizer};
use crds::{Host, Machine, MachineSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plan::{cluster, cluster_deployment, host, machine, machine_set};

use super::namespace::{Namespace, Write, owned};

impl Namespace {
    pub fn apply(&mut self, write: &Write) {
        match write.clone() {
            Write::Deployment(cluster, step) => self.apply_to_deployment(&cluster, step),
            Write::Set(step) => self.apply_of_set(step),
            Write::Machine(name, step) => self.apply_to_machine(&name, *step),
            Write::DeploymentStatus(cluster, status) => self.deployment(&cluster).status = Some(*status),
            Write::SetStatus(name, status) => {
                if let Some(set) = named_set(&mut self.sets, &name) {
                    set.status = Some(*status);
                }
            }
            Write::MachineStatus(name, status) => {
                if let Some(machine) = self.machine(&name) {
                    machine.status = Some(*status);
                }
            }
        }
    }

    pub fn machine(&mut self, name: &str) -> Option<&mut Machine> {
        self.machines.iter_mut().find(|machine| machine.metadata.name.as_deref() == Some(name))
    }

    /// A deletion: the finalizer holds it. A second one changes nothing.
    pub fn delete_machine(&mut self, deleted: &Machine) {
        let now = self.time();
        let uid = deleted.metadata.uid.clone();
        let found = self.machines.iter_mut().find(|machine| machine.metadata.uid == uid);
        if let Some(machine) = found.filter(|machine| !machine.is_deleting()) {
            machine.metadata.deletion_timestamp = Some(now);
            machine.metadata.generation = machine.metadata.generation.map(|number| number + 1);
        }
    }

    #[allow(unreachable_patterns)]
    fn apply_of_set(&mut self, action: machine_set::Action) {
        use machine_set::Action;
        match action {
            Action::CreateMachine(machine) => {
                let mut machine = *machine;
                let same = |other: &Machine| other.metadata.name == machine.metadata.name;
                if !self.machines.iter().any(same) {
                    self.stamp(&mut machine.metadata);
                    self.machines.push(machine);
                }
            }
            Action::Adopt(machine) => {
                let name = machine.name().to_owned();
                if let Some(there) = self.machine(&name) {
                    there.metadata = machine.metadata;
                }
            }
            Action::QuarantineHost { machine, quarantine, .. } => {
                let name = machine.metadata.name.unwrap_or_default();
                if let Some(machine) = self.machine(&name) {
                    let annotations = machine.metadata.annotations.get_or_insert_default();
                    annotations.insert(annotation::QUARANTINE.into(), quarantine);
                }
            }
            Action::DeleteMachine(machine) => {
                self.check_removal(&machine);
                self.delete_machine(&machine);
            }
            Action::SetVersion { machine, version } => {
                let name = machine.metadata.name.unwrap_or_default();
                if let Some(machine) = self.machine(&name) {
                    machine.spec.kubernetes_version = version;
                }
            }
            other => panic!("this world does not know {other:?}"),
        }
    }

    #[allow(unreachable_patterns)]
    fn apply_to_deployment(&mut self, cluster: &str, action: cluster_deployment::Action) {
        use cluster_deployment::Action;
        match action {
            Action::AddFinalizer => {
                self.deployment(cluster).metadata.finalizers = Some(vec![finalizer::CLUSTER_DEPLOYMENT.into()]);
            }
            Action::MarkFenced(host) => {
                if let Some(live) = self.unchanged(&host) {
                    let fence = live.spec.quarantine.as_mut().and_then(|there| there.fence.as_mut());
                    fence.unwrap().fenced = true;
                    changed(&mut live.metadata);
                }
            }
            Action::MakePki => drop(self.keys.insert(cluster.into())),
            Action::MakeKubeconfig { .. } => drop(self.keys.insert(format!("{cluster}-kubeconfig"))),
            Action::ApplyCluster(mut object) => {
                let found = self.clusters.iter_mut().find(|there| there.metadata.name == object.metadata.name);
                match found {
                    Some(there) => there.spec = object.spec,
                    None => {
                        self.stamp(&mut object.metadata);
                        self.clusters.push(*object);
                    }
                }
            }
            Action::ApplyMachineSet { name, object } => {
                let mut set: MachineSet = serde_json::from_value(object).unwrap();
                match named_set(&mut self.sets, &name) {
                    Some(there) => {
                        let generation = there.metadata.generation.map(|number| number + 1);
                        (set.metadata.uid, set.metadata.generation) = (there.metadata.uid.clone(), generation);
                        set.metadata.creation_timestamp = there.metadata.creation_timestamp.clone();
                        set.status = there.status.clone();
                        *there = set;
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
                orphans.iter().for_each(|machine| self.delete_machine(machine));
            }
            Action::DeleteMachine(machine) => {
                self.check_replacement(cluster, &machine);
                self.delete_machine(&machine);
            }
            Action::ForceRemoveMachine(machine) => {
                let name = machine.name().to_owned();
                self.force_remove(&name);
            }
            Action::CreateRun(run) => {
                crds::playbook_run::check_steps(run.spec.intent, &run.spec.steps).unwrap();
                let mut run = *run;
                let same = |other: &crds::PlaybookRun| other.metadata.name == run.metadata.name;
                if !self.runs.iter().any(same) {
                    self.check_new_run(cluster, &run);
                    self.stamp(&mut run.metadata);
                    self.runs.push(run);
                }
            }
            Action::CancelRun(run) => {
                if let Some(run) = self.run_of(&run.metadata) {
                    run.spec.cancel = true;
                }
            }
            Action::HoldRun { run, paused } => {
                if let Some(run) = self.run_of(&run.metadata) {
                    run.spec.paused = paused;
                }
            }
            Action::DeleteRun(run) => self.runs.retain(|other| other.metadata.uid != run.metadata.uid),
            other => panic!("this world does not know {other:?}"),
        }
    }

    fn run_of(&mut self, metadata: &ObjectMeta) -> Option<&mut crds::PlaybookRun> {
        self.runs.iter_mut().find(|run| run.metadata.uid == metadata.uid)
    }

    /// A person's word, for the Machine as it is now.
    pub fn force_remove(&mut self, name: &str) {
        if let Some(machine) = self.machine(name) {
            let generation = machine.generation().to_string();
            let annotations = machine.metadata.annotations.get_or_insert_default();
            annotations.insert(annotation::FORCE_REMOVE.into(), generation);
        }
    }

    #[allow(unreachable_patterns)]
    fn apply_to_machine(&mut self, name: &str, action: machine::Action) {
        use machine::Action;
        let cluster = self.machine(name).map(|machine| machine.spec.cluster_name.clone());
        let cluster = cluster.unwrap_or_default();
        match action {
            Action::AddFinalizer => {
                if let Some(machine) = self.machine(name) {
                    machine.metadata.finalizers = Some(vec![finalizer::MACHINE.into()]);
                }
            }
            Action::Claim { host, claim, epoch, identity, finalizers } => {
                if let Some(live) = self.unchanged(&host) {
                    live.spec.identity = identity;
                    live.spec.claim_ref = Some(claim);
                    live.spec.claim_epoch = epoch;
                    live.metadata.finalizers = Some(finalizers);
                    changed(&mut live.metadata);
                }
            }
            Action::SetHost(host) => {
                // As in one pass: what follows a refused claim is not carried out.
                let uid = self.machine(name).and_then(|machine| machine.metadata.uid.clone());
                let held = self.hosts.iter().any(|candidate| {
                    candidate.metadata.name.as_ref() == Some(&host.name)
                        && candidate.spec.claim_ref.as_ref().map(|claim| claim.uid.clone()) == uid
                });
                if let Some(machine) = self.machine(name).filter(|_| held) {
                    machine.spec.host_ref.get_or_insert(host);
                }
            }
            Action::Cordon { node, .. } => drop(self.town(&cluster).cordoned.insert(node)),
            Action::Evict { .. } => {}
            Action::DeleteNode { node, .. } => {
                self.check_node_may_go(&cluster, &node);
                let metal = self.metal.clone();
                let town = self.town(&cluster);
                // Through its API.
                if town.answers(&metal) {
                    town.nodes.remove(&node);
                    town.cordoned.remove(&node);
                }
            }
            Action::Release { host, finalizers, quarantine, identity } => {
                self.check_release(&cluster, &host, quarantine.is_some());
                if let Some(live) = self.unchanged(&host) {
                    live.spec.claim_ref = None;
                    live.spec.identity = identity;
                    if quarantine.is_some() {
                        live.spec.quarantine = quarantine;
                    }
                    live.metadata.finalizers = Some(finalizers);
                    changed(&mut live.metadata);
                }
            }
            Action::RemoveFinalizer => self.machines.retain(|machine| machine.metadata.name.as_deref() != Some(name)),
            other => panic!("this world does not know {other:?}"),
        }
    }

    /// Through the API of the cluster.
    pub fn apply_to_town(&mut self, name: &str, action: cluster::Action) -> bool {
        match action {
            // What labels a Node has nobody looks at.
            cluster::Action::PatchNode { .. } => false,
            action @ (cluster::Action::SpreadDns { .. } | cluster::Action::MoveDnsPod { .. }) => {
                panic!("no DNS was shown, so {action:?} is for nothing")
            }
            cluster::Action::CordonOrphan(orphan) => self.town(name).cordoned.insert(orphan.name),
            cluster::Action::DeleteOrphan(orphan) => {
                self.check_stray(name, &orphan.name);
                self.check_node_may_go(name, &orphan.name);
                let town = self.town(name);
                town.cordoned.remove(&orphan.name);
                town.nodes.remove(&orphan.name)
            }
        }
    }

    #[allow(unreachable_patterns)]
    pub fn apply_to_host(&mut self, action: host::Action) {
        match action {
            host::Action::Probe(run) => {
                let mut run = *run;
                let same = |other: &crds::PlaybookRun| other.metadata.name == run.metadata.name;
                if !self.runs.iter().any(same) {
                    self.stamp(&mut run.metadata);
                    self.runs.push(run);
                }
            }
            host::Action::Forget(run) => self.runs.retain(|other| other.metadata.uid != run.metadata.uid),
            host::Action::EndQuarantine(host) => {
                if let Some(live) = self.unchanged(&host) {
                    live.spec.quarantine = None;
                    live.spec.identity = None;
                    changed(&mut live.metadata);
                }
            }
            host::Action::SetIdentity { host, identity } => {
                if let Some(live) = self.unchanged(&host) {
                    live.spec.identity = Some(identity);
                    changed(&mut live.metadata);
                }
            }
            host::Action::ReleaseClaim { host, finalizers, quarantine } => {
                if let Some(live) = self.unchanged(&host) {
                    live.spec.claim_ref = None;
                    live.spec.identity = None;
                    live.spec.quarantine = Some(quarantine);
                    live.metadata.finalizers = Some(finalizers);
                    changed(&mut live.metadata);
                }
            }
            other => panic!("this world does not know {other:?}"),
        }
    }

    /// The Host, if nobody has written it since it was read.
    fn unchanged(&mut self, read: &Host) -> Option<&mut Host> {
        self.hosts.iter_mut().find(|host| {
            host.metadata.name == read.metadata.name && host.metadata.resource_version == read.metadata.resource_version
        })
    }
}

fn named_set<'a>(sets: &'a mut [MachineSet], name: &str) -> Option<&'a mut MachineSet> {
    sets.iter_mut().find(|set| set.metadata.name.as_deref() == Some(name))
}

/// A spec was written.
fn changed(metadata: &mut ObjectMeta) {
    metadata.generation = metadata.generation.map(|number| number + 1);
    written(metadata);
}

pub fn written(metadata: &mut ObjectMeta) {
    let version = metadata.resource_version.as_deref().unwrap_or_default();
    let version: u64 = version.parse().unwrap_or_default();
    metadata.resource_version = Some((version + 1).to_string());
}
