//! The namespace: its objects, its machines, and the planners at work on them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::ObjectExt;
use crds::cluster::ComponentHealth;
use crds::names::{annotation, label};
use crds::{Cluster, ClusterDeployment, Host, Machine, MachineSet, PlaybookRun};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use plan::claims::Shares;
use plan::cluster::{Access, Contact, NodeSeen, Seen};
use plan::drain::Drain;
use plan::{cluster, cluster_deployment, host, machine, machine_set};

use super::executor::Fate;
use super::metal::{Metal, Town};

/// Time between two looks.
pub const TICK: SignedDuration = SignedDuration::from_secs(45);
/// Without a change for so many looks it has come to rest: nothing waits longer than that.
const REST: usize = 50;
/// It comes to rest before.
const PATIENCE: usize = 2500;

/// Anything that is written, but what Hosts say of themselves.
#[derive(Clone, Debug)]
pub enum Write {
    Deployment(String, cluster_deployment::Action),
    Set(machine_set::Action),
    Machine(String, Box<machine::Action>),
    DeploymentStatus(String, Box<crds::ClusterDeploymentStatus>),
    SetStatus(String, Box<crds::MachineSetStatus>),
    MachineStatus(String, Box<crds::MachineStatus>),
}

/// The namespace.
pub struct Namespace {
    pub now: Timestamp,
    made: u64,
    pub deployments: Vec<ClusterDeployment>,
    pub sets: Vec<MachineSet>,
    pub machines: Vec<Machine>,
    pub hosts: Vec<Host>,
    pub runs: Vec<PlaybookRun>,
    pub clusters: Vec<Cluster>,
    pub keys: BTreeSet<String>,
    /// Clusters for which a person gives the next approval that they ask for.
    approving: BTreeSet<String>,
    /// Whether a person gives every approval that is asked for: each is for one thing.
    approves_all: bool,
    pub metal: BTreeMap<String, Metal>,
    pub towns: BTreeMap<String, Town>,
    /// What becomes of runs, in the order in which they end; when they are used up, all is well.
    pub fates: Vec<Fate>,
    /// The cluster that events happen to.
    pub looked_at: String,
    /// What was written last, for whoever has to understand a failure.
    pub last: Vec<String>,
}

impl Namespace {
    pub fn new(hosts: usize) -> Self {
        let host = |number: usize| -> Host {
            let yaml = format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: h{number}, namespace: fleet, uid: host-{number}, \
                 generation: 1, resourceVersion: '0', creationTimestamp: '2026-01-01T00:00:00Z'}}, spec: {{address: 10.0.0.{number}, \
                 ssh: {{credentialsRef: {{name: key}}, hostKeys: ['ssh-ed25519 AAAA{number}']}}}}}}"
            );
            serde_yaml::from_str(&yaml).unwrap()
        };
        let metal = |number: usize| {
            let machine = Metal { alive: true, ..Metal::default() };
            (format!("h{number}"), machine)
        };
        Self {
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            made: 0,
            deployments: Vec::new(),
            approving: BTreeSet::new(),
            approves_all: false,
            sets: Vec::new(),
            machines: Vec::new(),
            hosts: (1..=hosts).map(host).collect(),
            runs: Vec::new(),
            clusters: Vec::new(),
            keys: BTreeSet::new(),
            metal: (1..=hosts).map(metal).collect(),
            towns: BTreeMap::new(),
            fates: Vec::new(),
            looked_at: String::new(),
            last: Vec::new(),
        }
    }

    /// A person wishes a cluster.
    pub fn found(&mut self, name: &str, planes: usize, workers: usize) {
        let number = self.deployments.len() + 1;
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: {name}, namespace: fleet}}, \
             spec: {{kubernetesVersion: 1.35.4, artifacts: {{url: 'http://bundle'}}, \
             controlPlane: {{replicas: {planes}, endpoint: {{host: 10.0.1.{number}, port: 6443}}}}, \
             networking: {{podCIDR: 10.{number}0.0.0/16}}, \
             workers: [{{name: general, replicas: {workers}}}], \
             machineRemoval: {{drainTimeoutSeconds: 60, forceRemoveAfterSeconds: 600}}, \
             remediation: {{unhealthyAfterSeconds: 120, neverStartedAfterSeconds: 7200, waitSeconds: 60, maxUnhealthy: '40%', cooldownSeconds: 60}}}}}}"
        );
        let mut deployment: ClusterDeployment = serde_yaml::from_str(&yaml).unwrap();
        self.stamp(&mut deployment.metadata);
        self.deployments.push(deployment);
        self.towns.insert(name.into(), Town::default());
        self.looked_at = name.into();
    }

    pub fn look_at(&mut self, name: &str) {
        self.looked_at = name.into();
    }

    pub fn deployment(&mut self, name: &str) -> &mut ClusterDeployment {
        let found = self.deployments.iter_mut();
        found.into_iter().find(|there| there.metadata.name.as_deref() == Some(name)).unwrap()
    }

    pub fn town(&mut self, name: &str) -> &mut Town {
        self.towns.get_mut(name).unwrap()
    }

    /// Changes a spec as a person does.
    pub fn host_request(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut crds::cluster_deployment::ClusterDeploymentSpec),
    ) {
        let deployment = self.deployment(name);
        let before = deployment.spec.clone();
        change(&mut deployment.spec);
        if deployment.spec != before {
            deployment.metadata.generation = deployment.metadata.generation.map(|number| number + 1);
        }
    }

    pub fn workers(&mut self, name: &str, count: i32) {
        self.host_request(name, |spec| spec.workers[0].replicas = Some(count));
    }

    /// Gives a verb that is meant for the ClusterDeployment as it is now.
    pub fn tell(&mut self, name: &str, verb: &str) {
        if verb == annotation::APPROVE {
            self.approving.insert(name.to_owned());
            return;
        }
        let deployment = self.deployment(name);
        let generation = deployment.generation().to_string();
        let annotations = deployment.metadata.annotations.get_or_insert_default();
        let count = annotations.get(verb).map_or(0, |value| value.len());
        let value = match annotations.get(verb) {
            // Said again, it is another word.
            Some(old) if *old == generation => format!("{generation}.{count}"),
            _ => generation,
        };
        annotations.insert(verb.into(), value);
    }

    /// A person gives the approval that a cluster asks for, once.
    fn approve(&mut self) {
        for name in self.approving.clone() {
            let Some(deployment) =
                self.deployments.iter_mut().find(|there| there.metadata.name.as_ref() == Some(&name))
            else {
                continue;
            };
            let status = deployment.status.clone().unwrap_or_default();
            let messages = status.conditions.iter().map(|there| there.message.clone());
            let values = messages.chain(status.message.clone()).filter_map(|text| {
                let (_, value) = text.rsplit_once("clusterwright.dev/approve=")?;
                value.split_whitespace().next().map(str::to_owned)
            });
            if let Some(value) = values.into_iter().next() {
                let annotations = deployment.metadata.annotations.get_or_insert_default();
                annotations.insert(annotation::APPROVE.into(), value);
                if !self.approves_all {
                    self.approving.remove(&name);
                }
            }
        }
    }

    /// Everything heals, nothing is cut, and a person answers what is asked; runs do not fail any more.
    pub fn all_is_well(&mut self) {
        self.fates.clear();
        self.approves_all = true;
        for machine in self.metal.values_mut() {
            machine.boot();
            (machine.sick, machine.broken) = (false, false);
        }
        for town in self.towns.values_mut() {
            town.cut = false;
        }
        let names: Vec<String> = self.towns.keys().cloned().collect();
        for name in names {
            self.host_request(&name, |spec| spec.paused = false);
            // The next generation: whatever was given up is tried again.
            self.host_request(&name, |spec| spec.control_plane.cert_sans.push("again.example".into()));
            self.tell(&name, annotation::APPROVE);
            self.tell(&name, annotation::RETRY);
        }
        for host in &mut self.hosts {
            host.spec.unschedulable = false;
            let generation = host.generation() + 1;
            host.metadata.generation = Some(generation);
            let annotations = host.metadata.annotations.get_or_insert_default();
            annotations.insert(annotation::RELEASE.into(), generation.to_string());
            super::api::written(&mut host.metadata);
        }
    }

    pub fn time(&self) -> Time {
        Time(self.now)
    }

    pub fn stamp(&mut self, metadata: &mut ObjectMeta) {
        self.made += 1;
        metadata.namespace = Some("fleet".into());
        metadata.uid = Some(format!("uid-{}", self.made));
        metadata.generation = Some(1);
        metadata.resource_version = Some("0".into());
        metadata.creation_timestamp = Some(self.time());
    }

    /// Until nothing is written any more.
    pub fn settle(&mut self) {
        let mut still = 0;
        for _ in 0..PATIENCE {
            still = if self.turn() { 0 } else { still + 1 };
            if still >= REST {
                return;
            }
        }
        panic!("it has not come to rest; written last:\n{}\n{}", self.last.join("\n"), self.told());
    }

    /// So many looks.
    pub fn run_for(&mut self, turns: usize) {
        for _ in 0..turns {
            self.turn();
        }
    }

    /// Time passes, and everybody looks once; true if anything was written.
    fn turn(&mut self) -> bool {
        self.now += TICK;
        self.executors();
        self.kubelets();
        let acted = self.see_clusters();
        self.approve();
        self.plan_hosts();
        let writes = self.writes();
        for write in &writes {
            self.last.push(format!("{} {write:?}", self.now).chars().take(900).collect());
            if self.last.len() > 24 {
                self.last.remove(0);
            }
            self.apply(write);
            self.check();
        }
        acted || !writes.is_empty() || self.works()
    }

    fn works(&self) -> bool {
        self.runs
            .iter()
            .any(|run| run.spec.cluster_name.is_some() && !plan::attempts::is_over(run) && self.token_of(run) > 0)
    }

    /// What everybody says of itself, for whoever has to understand a failure.
    pub fn told(&self) -> String {
        let mut text = String::new();
        for deployment in &self.deployments {
            let status = deployment.status.clone().unwrap_or_default();
            text += &format!("cluster {:?}: {:?}\n", deployment.metadata.name, status.message);
            for condition in &status.conditions {
                text +=
                    &format!("  {} {} {} {}\n", condition.type_, condition.status, condition.reason, condition.message);
            }
            text += &format!("  repairs {:?}\n  operations {:?}\n", status.repairs, status.operations);
        }
        for set in &self.sets {
            let message = set.status.as_ref().and_then(|status| status.message.clone());
            text += &format!("set {:?} {}: {message:?}\n", set.metadata.name, set.spec.replicas);
        }
        for machine in &self.machines {
            let status = machine.status.clone().unwrap_or_default();
            text += &format!(
                "machine {:?} on {:?} deleted {}: {:?}\n",
                machine.metadata.name,
                machine.spec.host_ref.as_ref().map(|host| &host.name),
                machine.is_deleting(),
                status.message
            );
        }
        for host in &self.hosts {
            let status = host.status.clone().unwrap_or_default();
            let name = host.name().to_owned();
            text += &format!(
                "host {name} {:?} claimed {:?} metal {:?}: {:?}\n",
                status.phase,
                host.spec.claim_ref.as_ref().map(|claim| &claim.name),
                self.metal[&name],
                status.message
            );
        }
        for run in self.runs.iter().filter(|run| run.spec.cluster_name.is_some()) {
            let status = run.status.clone().unwrap_or_default();
            text += &format!(
                "run {:?} {:?} {:?} {:?}: {:?}\n",
                run.metadata.name, run.spec.intent, run.spec.hosts, status.phase, status.message
            );
        }
        text + &format!("towns {:?}\n", self.towns)
    }

    /// Clusters are looked at; true if anything was done in one of them.
    fn see_clusters(&mut self) -> bool {
        let now = self.time();
        let machines: Vec<Arc<Machine>> = self.machines.iter().cloned().map(Arc::new).collect();
        let hosts: Vec<Arc<Host>> = self.hosts.iter().cloned().map(Arc::new).collect();
        let quarantined: Vec<Arc<Host>> = hosts.into_iter().filter(|host| host.spec.quarantine.is_some()).collect();
        let mut acted = false;
        for index in 0..self.clusters.len() {
            let name = self.clusters[index].metadata.name.clone().unwrap_or_default();
            let of_cluster: Vec<Arc<Machine>> =
                machines.iter().filter(|machine| machine.spec.cluster_name == name).cloned().collect();
            let plan = cluster::plan(&cluster::Observed {
                cluster: &self.clusters[index],
                contact: self.contact(&name),
                machines: &of_cluster,
                deployment: self.deployment_of(&name),
                hosts: &quarantined,
                now: now.clone(),
                chance: 0.5,
            });
            self.clusters[index].status = Some(plan.status);
            for step in plan.actions {
                let told = format!("{} {step:?}", self.now).chars().take(900).collect();
                if self.apply_to_town(&name, step) {
                    self.last.push(told);
                    acted = true;
                }
            }
        }
        acted
    }

    fn contact(&self, name: &str) -> Contact {
        let access = Access {
            server: "https://10.0.1.1:6443".into(),
            certificates: vec![("admin-kubeconfig", Time("2036-01-01T00:00:00Z".parse().unwrap()))],
        };
        let Some(nodes) = self.nodes_of(name) else {
            return Contact::Lost {
                access,
                reason: crds::Reason::ConnectionRefused,
                message: "connection refused".into(),
            };
        };
        let component = |name: &str| ComponentHealth { name: name.into(), healthy: true, message: None };
        let components = ["kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler"];
        Contact::Made {
            access,
            seen: Seen {
                version: Some("1.35.4".into()),
                cluster_uid: Some(name.to_owned()),
                components: components.map(component).to_vec(),
                nodes: Some(nodes),
                dns: None,
            },
        }
    }

    /// The Nodes of a cluster, as they are watched; `None`: its API does not answer.
    fn nodes_of(&self, cluster: &str) -> Option<Vec<NodeSeen>> {
        let town = self.towns.get(cluster)?;
        if town.members.is_empty() || !town.answers(&self.metal) {
            return None;
        }
        let seen = |name: &String| NodeSeen {
            name: name.clone(),
            uid: name.clone(),
            addresses: vec![name.replace('h', "10.0.0.")],
            ready: match &self.metal[name] {
                machine if !machine.alive => None,
                machine => Some(!machine.sick),
            },
            kubelet_version: "1.35.4".into(),
            unschedulable: town.cordoned.contains(name),
            ..NodeSeen::default()
        };
        Some(town.nodes.iter().map(seen).collect())
    }

    fn plan_hosts(&mut self) {
        let hosts: Vec<Arc<Host>> = self.hosts.iter().cloned().map(Arc::new).collect();
        for index in 0..self.hosts.len() {
            let probes: Vec<Arc<PlaybookRun>> =
                self.runs.iter().filter(|run| host::is_probe(run)).cloned().map(Arc::new).collect();
            let plan = host::host(&host::HostObserved {
                host: &self.hosts[index],
                now: self.now,
                interval_seconds: 600,
                hosts: &hosts,
                probes: &probes,
                runs: &[],
                problems: &BTreeMap::new(),
                holder_is_gone: false,
            });
            self.hosts[index].status = Some(plan.status);
            for step in plan.actions {
                self.apply_to_host(step);
            }
        }
    }

    fn writes(&self) -> Vec<Write> {
        let mut writes = Vec::new();
        let hosts: Vec<&Host> = self.hosts.iter().collect();
        let sets: Vec<&MachineSet> = self.sets.iter().collect();
        let deployments: Vec<&ClusterDeployment> = self.deployments.iter().collect();
        for deployment in &self.deployments {
            let name = deployment.name().to_owned();
            let machines = of_cluster(&self.machines, &name);
            let runs = runs_of(&self.runs, &name);
            let nodes = self.nodes_of(&name);
            let plan = cluster_deployment::plan(&cluster_deployment::Observed {
                now: self.now,
                deployment,
                sets: &sets,
                machines: &machines,
                hosts: &hosts,
                runs: &runs,
                policies: &[],
                library: None,
                deployments: &deployments,
                cluster: self.cluster(&name),
                forgotten_nodes: nodes.as_deref(),
                manifests: &plan::settings::Manifests::default(),
                pki: self.keys.contains(&name),
                kubeconfig: self.keys.contains(&format!("{name}-kubeconfig")),
            });
            writes.extend(plan.actions.into_iter().map(|step| Write::Deployment(name.clone(), step)));
            if deployment.status.as_ref() != Some(&plan.status) {
                writes.push(Write::DeploymentStatus(name, Box::new(plan.status)));
            }
        }
        for set in &self.sets {
            let cluster = &set.spec.cluster_name;
            let plan = machine_set::plan(&machine_set::Observed {
                now: self.now,
                set,
                deployment: self.deployment_of(cluster),
                machines: &of_cluster(&self.machines, cluster),
                hosts: &hosts,
                runs: &runs_of(&self.runs, cluster),
            });
            writes.extend(plan.actions.into_iter().map(Write::Set));
            if set.status.as_ref() != Some(&plan.status) {
                let name = set.name().to_owned();
                writes.push(Write::SetStatus(name, Box::new(plan.status)));
            }
        }
        let all: Vec<&Machine> = self.machines.iter().collect();
        let shares = Shares::new(&all, &hosts);
        for machine in &self.machines {
            let cluster = &machine.spec.cluster_name;
            let runs = runs_of(&self.runs, cluster);
            let nodes = self.nodes_of(cluster);
            let drain = Drain { pods: Ok(Vec::new()), refusals: Vec::new() };
            let plan = machine::plan(&machine::Observed {
                now: self.now,
                machine,
                deployment: self.deployment_of(cluster),
                machines: &of_cluster(&self.machines, cluster),
                hosts: &hosts,
                share: shares.share(machine),
                runs: &runs,
                nodes: nodes.as_deref(),
                cluster: self.cluster(cluster),
                drain: Some(&drain),
            });
            let name = machine.name().to_owned();
            writes.extend(plan.actions.into_iter().map(|step| Write::Machine(name.clone(), Box::new(step))));
            if machine.status.as_ref() != Some(&plan.status) {
                writes.push(Write::MachineStatus(name, Box::new(plan.status)));
            }
        }
        writes
    }

    pub fn cluster(&self, name: &str) -> Option<&Cluster> {
        self.clusters.iter().find(|cluster| cluster.metadata.name.as_deref() == Some(name))
    }

    pub fn deployment_of(&self, name: &str) -> Option<&ClusterDeployment> {
        self.deployments.iter().find(|deployment| deployment.metadata.name.as_deref() == Some(name))
    }

    /// Nodes that are Ready.
    pub fn ready_nodes(&self, name: &str) -> usize {
        let nodes = self.nodes_of(name).unwrap_or_default();
        nodes.iter().filter(|node| node.ready == Some(true)).count()
    }
}

/// Machines of a cluster.
pub fn of_cluster<'a>(machines: &'a [Machine], name: &str) -> Vec<&'a Machine> {
    machines.iter().filter(|machine| machine.spec.cluster_name == name).collect()
}

fn runs_of<'a>(runs: &'a [PlaybookRun], name: &str) -> Vec<&'a PlaybookRun> {
    runs.iter().filter(|run| run.spec.cluster_name.as_deref() == Some(name)).collect()
}

/// Whether the Machine carries the set's label.
pub fn owned(machine: &Machine, set: &MachineSet) -> bool {
    let labels = machine.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(label::MACHINE_SET)) == set.metadata.name.as_ref()
}
