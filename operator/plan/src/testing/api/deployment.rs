//! What the controller of ClusterDeployments writes.

use crds::names::{annotation, finalizer, label};
use crds::{Cluster, Machine, MachineSet, ObjectExt, PlaybookRun};

use super::super::world::World;
use super::annotate;
use crate::cluster_deployment::Action;
use crate::encryption::Scheme;
use crate::key_transfer::KeysSeen;
use crate::rotation::Subject;
use crate::store::adoption::Adoption;
use crate::testing::authorities;

impl World {
    pub(super) fn apply_to_deployment(&mut self, name: &str, action: Action) {
        match action {
            Action::AddFinalizer => {
                let finalizers = vec![finalizer::CLUSTER_DEPLOYMENT.into()];
                self.cluster_mut(name).deployment.metadata.finalizers = Some(finalizers);
            }
            Action::MarkFenced(host) => self.change_host(&host, |live| {
                let fence = live.spec.quarantine.as_mut().and_then(|there| there.fence.as_mut());
                fence.unwrap().fenced = true;
            }),
            Action::MakePki { given } => {
                assert!(self.restoring.keys == KeysSeen::Absent, "there are keys of a backup");
                let cluster = self.cluster_mut(name);
                if !cluster.pki {
                    let wanted = Scheme::wanted(cluster.deployment.spec.encryption.as_ref());
                    (cluster.pki, cluster.authorities) = (true, authorities::made_with(&wanted, &given));
                }
            }
            Action::Rotate(act) => {
                let cluster = self.cluster_mut(name);
                let wanted = Scheme::wanted(cluster.deployment.spec.encryption.as_ref());
                authorities::execute(&mut cluster.authorities, act, &wanted);
            }
            Action::FetchKeys(transfer) => self.restoring.jobs.push(transfer.job),
            Action::TakeKeys => {
                assert!(!self.cluster_mut(name).pki, "keys that are there are never replaced");
                let cluster = self.cluster_mut(name);
                (cluster.pki, cluster.authorities) =
                    (true, authorities::made(&Scheme::wanted(cluster.deployment.spec.encryption.as_ref())));
                self.restoring.keys = KeysSeen::InPlace;
            }
            Action::DropKeyTransfer => {
                self.restoring.jobs.clear();
                self.restoring.pods.clear();
                self.restoring.keys = KeysSeen::Absent;
            }
            Action::MakeKubeconfig { endpoint } => {
                let cluster = self.cluster_mut(name);
                assert!(cluster.pki, "a kubeconfig needs keys");
                cluster.kubeconfig = Some(endpoint);
                cluster.kubeconfig_authority = Some(cluster.authorities.rings[&Subject::Ca].digest());
            }
            Action::ApplyAddon(object) => self.cluster_mut(name).addon = Some(*object),
            Action::DeleteAddon(_) => self.cluster_mut(name).addon = None,
            Action::ApplyCluster(object) => self.apply_cluster(name, *object),
            Action::DeleteCluster(object) => {
                let there = &mut self.cluster_mut(name).cluster;
                there.take_if(|there| there.metadata.uid == object.metadata.uid);
            }
            Action::ApplyMachineSet { name, object } => {
                self.apply_machine_set(&name, serde_json::from_value(object).unwrap());
            }
            Action::DeleteMachineSet(set) => self.delete_machine_set(&set),
            Action::DeleteMachine(machine) | Action::Adopt(Adoption::DeleteMachine(machine)) => {
                self.check_replacement(name, &machine);
                self.mark_deleted(&machine);
            }
            Action::ForceRemoveMachine(machine) => self.force_remove(machine.name()),
            Action::SetDrainFor { machine, reasons } => self.drain_for(machine.name(), reasons),
            Action::ForgetMachine { machine, since } => {
                self.force_remove(machine.name());
                if let Some(machine) = self.machine_with(machine.uid()) {
                    annotate(&mut machine.metadata, annotation::LOST_SINCE, since.to_string());
                }
            }
            Action::CreateRun(run) => {
                crds::playbook_run::check_steps(run.spec.intent, &run.spec.steps).unwrap();
                self.check_change(&run);
                if self.runs.iter().all(|other| other.metadata.name != run.metadata.name) {
                    self.check_new_run(name, &run);
                }
                self.create_run(*run);
            }
            Action::CreateBackup(backup) => {
                if self.backups.iter().all(|other| other.metadata.name != backup.metadata.name) {
                    self.backups.push(*backup);
                }
            }
            Action::CancelRun(run) => self.change_run(&run, |run| run.spec.cancel = true),
            Action::HoldRun { run, paused } => self.change_run(&run, |run| run.spec.paused = paused),
            Action::DeleteRun(run) => self.delete_run(&run),
            Action::Adopt(Adoption::RaiseEpoch { host, epoch }) => {
                self.change_host(&host, |live| live.spec.claim_epoch = epoch);
            }
            Action::Adopt(Adoption::ReleaseClaim { host, epoch, finalizers, quarantine }) => {
                self.change_host(&host, |live| {
                    (live.spec.claim_ref, live.spec.identity, live.spec.claim_epoch) = (None, None, epoch);
                    live.spec.quarantine = Some(*quarantine);
                    live.metadata.finalizers = Some(finalizers);
                });
            }
            Action::RemoveFinalizer => {
                let cluster = self.cluster_mut(name);
                (cluster.gone, cluster.cluster) = (true, None);
                // The garbage collector.
                self.sets.retain(|set| set.spec.cluster_name != name);
            }
        }
    }

    fn change_run(&mut self, changed: &PlaybookRun, change: impl FnOnce(&mut PlaybookRun)) {
        let found = self.runs.iter_mut().find(|run| run.metadata.uid == changed.metadata.uid);
        found.map(change);
    }

    fn apply_cluster(&mut self, name: &str, mut object: Cluster) {
        match &mut self.cluster_mut(name).cluster {
            Some(there) => there.spec = object.spec,
            None => {
                self.stamp(&mut object.metadata);
                self.cluster_mut(name).cluster = Some(object);
            }
        }
    }

    fn apply_machine_set(&mut self, name: &str, mut set: MachineSet) {
        match self.set_named(name) {
            Some(there) => {
                let generation = there.metadata.generation.map(|number| number + 1);
                (set.metadata.uid, set.metadata.generation) = (there.metadata.uid.take(), generation);
                set.metadata.creation_timestamp = there.metadata.creation_timestamp.take();
                set.status = there.status.take();
                *there = set;
            }
            None => {
                self.stamp(&mut set.metadata);
                self.sets.push(set);
            }
        }
    }

    fn delete_machine_set(&mut self, set: &MachineSet) {
        self.sets.retain(|other| other.metadata.uid != set.metadata.uid);
        let is_owned = |machine: &&Machine| {
            let labels = machine.metadata.labels.as_ref();
            labels.and_then(|labels| labels.get(label::MACHINE_SET)) == set.metadata.name.as_ref()
        };
        let orphans: Vec<Machine> = self.machines.iter().filter(is_owned).cloned().collect();
        orphans.iter().for_each(|machine| self.mark_deleted(machine));
    }
}
