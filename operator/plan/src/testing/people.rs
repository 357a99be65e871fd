//! What people do: they change specs, delete, approve, and ask for one more attempt.

use crds::ObjectExt;
use crds::PlaybookRun;
use crds::cluster_deployment::ClusterDeploymentSpec;
use crds::machine::DrainReason;
use crds::names::{annotation, condition};
use crds::playbook_run::PlaybookRunSpec;
use crds::step::{Intent, Step};

use super::api::{annotate, written};
use super::objects::deployment;
use super::world::World;

impl World {
    /// Applies another spec.
    pub fn respec(&mut self, spec: &str) {
        self.deployment.spec = deployment("a", spec).spec;
        self.touch();
    }

    /// The spec was changed.
    pub fn touch(&mut self) {
        self.deployment.metadata.generation = self.deployment.metadata.generation.map(|generation| generation + 1);
    }

    /// Changes the spec of a cluster.
    pub fn change_spec(&mut self, name: &str, change: impl FnOnce(&mut ClusterDeploymentSpec)) {
        let before = self.select(name).deployment.spec.clone();
        change(&mut self.deployment.spec);
        if self.deployment.spec != before {
            self.touch();
        }
    }

    pub fn scale_workers(&mut self, name: &str, count: i32) {
        self.change_spec(name, |spec| spec.workers[0].replicas = Some(count));
    }

    pub fn delete(&mut self) {
        self.deployment.metadata.deletion_timestamp = Some(self.time());
        self.touch();
    }

    pub fn delete_machine(&mut self, index: usize) {
        if let Some(machine) = self.machines.get(index).cloned() {
            self.mark_deleted(&machine);
        }
    }

    /// A person wants the Node of a Machine drained, or not any more.
    pub fn drain_for(&mut self, name: &str, reasons: Vec<DrainReason>) {
        if let Some(machine) = self.machine(name).filter(|machine| machine.spec.drain_for != reasons) {
            machine.spec.drain_for = reasons;
            machine.metadata.generation = machine.metadata.generation.map(|generation| generation + 1);
        }
    }

    pub fn custom_run(&mut self, name: &str, hosts: &[&str]) {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let spec = PlaybookRunSpec {
            cluster_name: Some(self.name().to_owned()),
            ..PlaybookRunSpec::new(Intent::Custom, vec![Step::BootstrapOs], hosts)
        };
        let mut run = PlaybookRun::new(name, spec);
        self.stamp(&mut run.metadata);
        self.runs.push(run);
    }

    /// Approves the next thing that a cluster asks for.
    pub fn approve_next(&mut self, name: &str) {
        self.approving.insert(name.to_owned());
    }

    /// Annotates a ClusterDeployment as it is now.
    pub fn request(&mut self, name: &str, key: &str) {
        let deployment = &mut self.cluster_mut(name).deployment;
        let generation = deployment.generation().to_string();
        let value = match deployment.annotation(key) {
            // A second time it is another value.
            Some(old) if *old == generation => format!("{generation}.{}", old.len()),
            _ => generation,
        };
        annotate(&mut deployment.metadata, key, value);
    }

    /// Gives the approvals that are asked for in a status.
    pub(super) fn approve_asked(&mut self) {
        for name in self.approving.clone() {
            let deployment = &mut self.cluster_mut(&name).deployment;
            let status = deployment.status.clone().unwrap_or_default();
            // What contradicts the store stands alone in its condition.
            let mut conditions = status.conditions;
            conditions.sort_by_key(|stated| stated.type_ != condition::STORE_IS_OLDER);
            let messages = conditions.into_iter().map(|stated| stated.message).chain(status.message);
            let mut values = messages.filter_map(|text| {
                let (_, value) = text.rsplit_once("clusterwright.dev/approve=")?;
                Some(value.split_whitespace().next()?.trim_end_matches(';').to_owned())
            });
            if let Some(value) = values.next() {
                let is_of_store = value.rsplit(',').next().is_some_and(|asked| asked.starts_with("store."));
                annotate(&mut deployment.metadata, annotation::APPROVE, value);
                if is_of_store {
                    self.approve_contradictions();
                }
                if !self.approves_all {
                    self.approving.remove(&name);
                }
            }
        }
    }

    /// Everything heals, nothing is cut, and people answer what is asked; runs do not fail any more.
    pub fn heal_all(&mut self) {
        self.fates.clear();
        self.approves_all = true;
        self.sick_nodes.clear();
        self.always_fails.clear();
        let names: Vec<String> = self.hosts.iter().map(|host| host.name().to_owned()).collect();
        names.iter().for_each(|host| self.boot(host));
        for name in self.machines.iter().map(|machine| machine.name().to_owned()).collect::<Vec<_>>() {
            // Who worked on a machine has ended.
            let reasons = self.machine(&name).map(|machine| machine.spec.drain_for.clone()).unwrap_or_default();
            self.drain_for(&name, reasons.into_iter().filter(|reason| *reason != DrainReason::Maintenance).collect());
        }
        let selected = self.name().to_owned();
        for name in self.clusters.iter().map(|cluster| cluster.name().to_owned()).collect::<Vec<_>>() {
            self.cluster_mut(&name).cut = false;
            self.change_spec(&name, |spec| {
                spec.paused = false;
                spec.rollout.windows.clear();
            });
            // The next generation: whatever was given up is tried again.
            self.change_spec(&name, |spec| spec.control_plane.cert_sans.push("again.example".into()));
            self.approve_next(&name);
            self.request(&name, annotation::RETRY);
        }
        self.select(&selected);
        for host in &mut self.hosts {
            host.spec.unschedulable = false;
            let generation = host.generation() + 1;
            host.metadata.generation = Some(generation);
            annotate(&mut host.metadata, annotation::RELEASE, generation.to_string());
            written(&mut host.metadata);
        }
    }
}
