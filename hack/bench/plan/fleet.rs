//! Synthetic fleets: one namespace with as many Hosts as Machines, parsed as the API's objects are.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::sync::Arc;

use crds::{ClusterDeployment, Host, Machine, MachineSet, PlaybookRun};
use plan::settings::Manifests;
use serde::de::DeserializeOwned;

/// Hosts that share a value of the label `rack`.
const HOSTS_PER_RACK: usize = 40;
/// Workers that one run joins.
const WORKERS_PER_RUN: usize = 100;
const CONTROL_PLANES: usize = 3;
const LONG_AGO: &str = "2026-01-01T00:00:00Z";

/// How far the clusters are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// All Hosts are free, and every Machine looks for one.
    Claiming,
    /// Every Machine holds its Host and has joined.
    Running,
}

/// What a fleet looks like.
#[derive(Clone, Copy)]
pub struct Shape {
    pub phase: Phase,
    /// Machines of a cluster; none: all of them are of one.
    pub cluster_size: Option<usize>,
    /// What a set asks of its Hosts, as YAML; `CLUSTER` stands for the name of its cluster.
    pub request: &'static str,
}

/// One namespace.
pub struct Fleet {
    pub deployments: Vec<ClusterDeployment>,
    pub sets: Vec<MachineSet>,
    pub machines: Vec<Machine>,
    pub hosts: Vec<Host>,
    /// The same Hosts, as the planner of Hosts takes them.
    pub shared_hosts: Vec<Arc<Host>>,
    pub runs: Vec<PlaybookRun>,
    pub manifests: Manifests,
}

impl Fleet {
    pub fn new(shape: Shape, size: usize) -> Result<Self, Box<dyn Error>> {
        let mut fleet = Self {
            deployments: Vec::new(),
            sets: Vec::new(),
            machines: Vec::new(),
            hosts: Vec::new(),
            shared_hosts: Vec::new(),
            runs: Vec::new(),
            manifests: Manifests {
                network: Some("none".into()),
                files: Some(BTreeMap::new()),
                registries: Some(BTreeMap::new()),
            },
        };
        let cluster_size = shape.cluster_size.unwrap_or(size);
        for number in 0..size / cluster_size {
            fleet.add_cluster(shape, &format!("c{number:05}"), cluster_size)?;
        }
        let hosts = fleet.hosts.iter().cloned();
        fleet.shared_hosts = hosts.map(Arc::new).collect();
        Ok(fleet)
    }

    fn add_cluster(&mut self, shape: Shape, cluster: &str, size: usize) -> Result<(), Box<dyn Error>> {
        let workers = size - CONTROL_PLANES;
        let status = match shape.phase {
            Phase::Claiming => "{lastToken: 0}".to_owned(),
            Phase::Running => {
                format!("{{lastToken: 9, installedAt: '{LONG_AGO}', kubernetesVersion: 1.35.4}}")
            }
        };
        self.deployments.push(object(
            "ClusterDeployment",
            &format!(
                "name: {cluster}, uid: uid-{cluster},
                 finalizers: [clusterwright.dev/machines-released]"
            ),
            &format!(
                "kubernetesVersion: 1.35.4, artifacts: {{url: 'http://bundle'}},
                 workers: [{{name: general, replicas: {workers}}}],
                 controlPlane: {{replicas: {CONTROL_PLANES}, endpoint: {{host: 10.255.0.1, port: 6443}}}}"
            ),
            &status,
        )?);
        for (role, set, count) in [
            ("control-plane", format!("{cluster}-control-plane"), CONTROL_PLANES),
            ("worker", format!("{cluster}-general"), workers),
        ] {
            self.add_set(shape, cluster, role, &set, count)?;
        }
        Ok(())
    }

    fn add_set(
        &mut self,
        shape: Shape,
        cluster: &str,
        role: &str,
        set: &str,
        count: usize,
    ) -> Result<(), Box<dyn Error>> {
        let request = shape.request.replace("CLUSTER", cluster);
        self.sets.push(object(
            "MachineSet",
            &format!("name: {set}, uid: uid-{set}, generation: 1, {}", owner("ClusterDeployment", cluster)),
            &format!(
                "clusterName: {cluster}, role: {role}, replicas: {count},
                 template: {{kubernetesVersion: 1.35.4{request}}}"
            ),
            "{}",
        )?);
        let mut members = Vec::new();
        for ordinal in 0..count {
            let (machine, host) = (format!("{set}-{ordinal:05}"), self.hosts.len());
            self.add_host(shape.phase, cluster, host, &machine)?;
            self.add_machine(shape.phase, cluster, role, set, ordinal, &request, host)?;
            members.push((host_name(host), format!("uid-{machine}")));
        }
        if shape.phase == Phase::Running {
            for members in members.chunks(WORKERS_PER_RUN) {
                self.add_run(cluster, role, members)?;
            }
        }
        Ok(())
    }

    fn add_host(&mut self, phase: Phase, cluster: &str, number: usize, machine: &str) -> Result<(), Box<dyn Error>> {
        let (reason, epoch, claim) = match phase {
            Phase::Claiming => ("Available", 0, String::new()),
            Phase::Running => (
                "Claimed",
                1,
                format!(", claimEpoch: 1, claimRef: {{kind: Machine, name: {machine}, uid: uid-{machine}}}"),
            ),
        };
        let address = format!("10.{}.{}.{}", number >> 16, (number >> 8) & 255, number & 255);
        let (rack, zone) = (number / HOSTS_PER_RACK, number % 3);
        self.hosts.push(object(
            "Host",
            &format!(
                "name: {}, uid: uid-h{number}, generation: 1, finalizers: [clusterwright.dev/claimed],
                 labels: {{rack: r{rack:05}, zone: z{zone}, size: large, pool: {cluster}}}",
                host_name(number)
            ),
            &format!(
                "address: {address}, 
                 ssh: {{credentialsRef: {{name: key}}, hostKeys: [ssh-ed25519 AAAA{number:05}]}}{claim}"
            ),
            &format!(
                "{{observedGeneration: 1, cleanedEpoch: {epoch}, lastProbeAt: '{LONG_AGO}', conditions: [{}, {}, {}]}}",
                condition("Ready", reason),
                condition("Reachable", "Reachable"),
                condition("Clean", "Clean")
            ),
        )?);
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "each is a field of the Machine")]
    fn add_machine(
        &mut self,
        phase: Phase,
        cluster: &str,
        role: &str,
        set: &str,
        ordinal: usize,
        request: &str,
        host: usize,
    ) -> Result<(), Box<dyn Error>> {
        let name = format!("{set}-{ordinal:05}");
        let (host_ref, status) = match phase {
            Phase::Claiming => (String::new(), "{}".to_owned()),
            Phase::Running => (
                format!(", hostRef: {{name: {}}}", host_name(host)),
                format!(
                    "{{observedGeneration: 1, provisionedAt: '{LONG_AGO}', nodeName: {}, kubernetesVersion: 1.35.4, applied: {{token: 1}},
                      conditions: [{}, {}]}}",
                    host_name(host),
                    condition("Ready", "Running"),
                    condition("NodeReady", "NodeReady")
                ),
            ),
        };
        self.machines.push(object(
            "Machine",
            &format!(
                "name: {name}, uid: uid-{name}, generation: 1, finalizers: [clusterwright.dev/release-host],
                 annotations: {{clusterwright.dev/ordinal: '{ordinal}'}}, {},
                 labels: {{clusterwright.dev/cluster: {cluster}, clusterwright.dev/machine-set: {set},
                          clusterwright.dev/role: {role}}}",
                owner("MachineSet", set)
            ),
            &format!("clusterName: {cluster}, role: {role}, kubernetesVersion: 1.35.4{request}{host_ref}"),
            &status,
        )?);
        Ok(())
    }

    fn add_run(&mut self, cluster: &str, role: &str, members: &[(String, String)]) -> Result<(), Box<dyn Error>> {
        let intent = if role == "worker" { "Join" } else { "Install" };
        let mut targets = BTreeMap::new();
        let mut results = String::new();
        for (host, uid) in members {
            targets.insert(host, BTreeMap::from([("uid", uid)]));
            write!(results, "{{name: {host}, ok: 3}}, ")?;
        }
        let hosts: Vec<&str> = members.iter().map(|(host, _)| host.as_str()).collect();
        let (targets, number) = (serde_json::to_string(&targets)?, self.runs.len());
        self.runs.push(object(
            "PlaybookRun",
            &format!(
                "name: run-{number:05}, uid: uid-run-{number},
                 annotations: {{clusterwright.dev/machines: '{targets}'}}"
            ),
            &format!("clusterName: {cluster}, intent: {intent}, steps: [node], hosts: [{}]", hosts.join(", ")),
            &format!("{{phase: Succeeded, token: 1, finishedAt: '{LONG_AGO}', hosts: [{results}]}}"),
        )?);
        Ok(())
    }

    /// Machines of one cluster, and its runs: what its controllers observe.
    pub fn of_cluster(&self, cluster: &str) -> (Vec<&Machine>, Vec<&PlaybookRun>) {
        let machines = self.machines.iter();
        let runs = self.runs.iter();
        (
            machines.filter(|machine| machine.spec.cluster_name == cluster).collect(),
            runs.filter(|run| run.spec.cluster_name.as_deref() == Some(cluster)).collect(),
        )
    }
}

fn host_name(number: usize) -> String {
    format!("h{number:05}")
}

fn condition(type_: &str, reason: &str) -> String {
    format!(
        "{{type: {type_}, status: 'True', reason: {reason}, message: '',
          observedGeneration: 1, lastTransitionTime: '{LONG_AGO}'}}"
    )
}

fn owner(kind: &str, name: &str) -> String {
    format!(
        "ownerReferences: [{{apiVersion: clusterwright.dev/v1alpha1, kind: {kind}, name: {name},
          uid: uid-{name}, controller: true, blockOwnerDeletion: true}}]"
    )
}

fn object<K: DeserializeOwned>(kind: &str, metadata: &str, spec: &str, status: &str) -> Result<K, Box<dyn Error>> {
    let text = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: {kind}, spec: {{{spec}}}, status: {status},
         metadata: {{namespace: fleet, creationTimestamp: '{LONG_AGO}', {metadata}}}}}"
    );
    serde_yaml::from_str(&text).map_err(|error| format!("{error}: {text}").into())
}
