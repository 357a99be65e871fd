//! The scene: what was observed of one cluster, looked at once and put in order.

use std::collections::BTreeMap;

use crds::cluster_deployment::EtcdTopology;
use crds::names;
use crds::playbook_run::RunPhase;
use crds::step::{Intent, Role};
use crds::{ClusterDeployment, Host, Machine, MachineSet, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::Value;

pub(super) use super::member::Member;
use super::{Observed, rebuild};
use crate::attempts::{self, Turn};
use crate::departure::{Council, is_healthy};
use crate::{claims, inputs, machine_set, provisioning};

/// What was observed, in order.
pub(super) struct Scene<'a> {
    pub observed: &'a Observed<'a>,
    pub deployment: &'a ClusterDeployment,
    pub name: String,
    /// Machines that stay.
    pub live: Vec<Member<'a>>,
    /// Machines that are being deleted.
    pub leaving: Vec<Member<'a>>,
    /// Runs that are not over, in the order of their creation; without probes, which change nothing.
    pub active: Vec<&'a PlaybookRun>,
    /// When the cluster was installed.
    pub installed: Option<Time>,
}

impl<'a> Scene<'a> {
    pub fn of(observed: &'a Observed<'a>) -> Self {
        let deployment = observed.deployment;
        let mut holders: BTreeMap<&str, &Host> = BTreeMap::new();
        for host in observed.hosts {
            if let Some(claim) = &host.spec.claim_ref {
                holders.insert(&claim.uid, host);
            }
        }
        let member = |machine: &'a Machine| {
            let host = holders
                .get(machine.metadata.uid.as_deref().unwrap_or_default())
                .copied();
            let named = machine.spec.host_ref.as_ref().map(|host| host.name.as_str());
            // Both sides must agree before anything is done to the machine; one that leaves lets go of what it holds.
            let leaving = machine.metadata.deletion_timestamp.is_some();
            Member {
                machine,
                host: host.filter(|host| {
                    claims::holds(machine, host) && (leaving || named == host.metadata.name.as_deref())
                }),
            }
        };
        let mut members: Vec<Member<'a>> = observed.machines.iter().copied().map(member).collect();
        members.sort_by_key(|member| {
            (
                member.machine.spec.role,
                machine_set::ordinal_of(member.machine),
                member.name(),
            )
        });
        let (live, leaving): (Vec<_>, Vec<_>) = members
            .into_iter()
            .partition(|member| member.machine.metadata.deletion_timestamp.is_none());
        let mut active: Vec<&PlaybookRun> = observed
            .runs
            .iter()
            .copied()
            .filter(|run| !attempts::is_over(run) && run.spec.intent != Intent::Probe)
            .collect();
        active.sort_by_key(|run| (run.metadata.creation_timestamp.clone(), run.metadata.name.clone()));
        let mut scene = Self {
            observed,
            deployment,
            name: deployment.metadata.name.clone().unwrap_or_default(),
            live,
            leaving,
            active,
            installed: None,
        };
        let recorded = deployment
            .status
            .as_ref()
            .and_then(|status| status.installed_at.clone());
        let since = rebuild::anew_since(deployment, observed.machines);
        let is_new = |at: &Time| since.is_none_or(|since| at.0 > since);
        scene.installed = recorded.filter(is_new).or_else(|| scene.seen_installed(since));
        scene
    }

    /// When the install of ours succeeded that is known; from then on machines join, whatever became of the founders.
    /// What is not younger than `since` was another cluster, and so was one of whose machines none is left.
    fn seen_installed(&self, since: Option<Timestamp>) -> Option<Time> {
        let ours =
            |run: &&&PlaybookRun| run.spec.intent == Intent::Install && !attempts::marks(run).is_empty();
        let succeeded = |run: &&&PlaybookRun| {
            run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Succeeded)
        };
        let ended = self.observed.runs.iter().filter(ours).filter(succeeded);
        let ended = ended.filter(|run| self.has_founder(run));
        let ended = ended.filter_map(|run| attempts::ended_at(run));
        let of_run = ended.filter(|at| Some(*at) > since).min();
        // The run may be gone: what the control planes remember counts, too, those that leave included.
        let remembered = self
            .live
            .iter()
            .chain(&self.leaving)
            .filter(|member| member.machine.spec.role == Role::ControlPlane);
        let remembered = remembered.filter_map(|member| {
            member
                .machine
                .status
                .as_ref()?
                .provisioned_at
                .as_ref()
                .map(|at| at.0)
        });
        let remembered = remembered.filter(|at| Some(*at) > since);
        of_run.or(remembered.min()).map(Time)
    }

    fn has_founder(&self, run: &PlaybookRun) -> bool {
        let marks = attempts::marks(run);
        let is_there = |uid: &String| {
            let mut machines = self.observed.machines.iter();
            machines.any(|machine| machine.metadata.uid.as_ref() == Some(uid))
        };
        marks.values().any(|mark| is_there(&mark.uid))
    }

    /// The machines of an install, all of them with their Hosts; `None` while one is missing.
    pub fn founders(&self) -> Option<Vec<Member<'a>>> {
        let spec = &self.deployment.spec;
        let etcd = match spec.etcd.topology {
            EtcdTopology::Dedicated => spec.etcd.replicas.unwrap_or_default(),
            EtcdTopology::Stacked | EtcdTopology::External => 0,
        };
        let complete = |role, wanted: i32| {
            let members: Vec<Member<'a>> = self.of_role(role).collect();
            let enough = i32::try_from(members.len()) == Ok(wanted);
            (enough && members.iter().all(|member| member.host.is_some())).then_some(members)
        };
        let mut founders = complete(Role::ControlPlane, spec.control_plane.replicas)?;
        founders.extend(complete(Role::Etcd, etcd)?);
        Some(founders)
    }

    pub fn turn(&self, member: &Member<'_>) -> Turn {
        provisioning::turn(
            member.machine,
            member.host,
            self.deployment,
            self.observed.runs,
            self.observed.now,
        )
    }

    /// The control planes and etcd machines, and what was done about them.
    pub fn council(&self) -> Council<'a> {
        Council::of(
            &self.name,
            self.observed.machines,
            self.deployment,
            self.observed.runs,
        )
    }

    /// A Machine with its Host, one that leaves included.
    pub fn member(&self, machine: &Machine) -> Option<Member<'a>> {
        let mut members = self.live.iter().chain(&self.leaving);
        let found = members.find(|member| member.machine.metadata.uid == machine.metadata.uid);
        found.copied()
    }

    /// What a run must know of etcd, with these members.
    pub fn etcd_variables(&self, members: &[&Machine]) -> BTreeMap<String, Value> {
        let seat = |machine: &&Machine| {
            let host = self.member(machine)?.host?;
            let name = host.metadata.name.clone()?;
            Some((name, inputs::address_in_cluster(host).to_owned()))
        };
        inputs::of_etcd(&members.iter().filter_map(seat).collect::<Vec<_>>())
    }

    /// What a person types to approve what waits for it.
    pub fn approve(&self, value: &str) -> String {
        format!(
            "kubectl annotate --overwrite cd {} {}={value}",
            self.name,
            names::annotation::APPROVE
        )
    }

    pub fn of_role(&self, role: Role) -> impl Iterator<Item = Member<'a>> + '_ {
        self.live
            .iter()
            .copied()
            .filter(move |member| member.machine.spec.role == role)
    }

    pub fn generation(&self) -> i64 {
        self.deployment.metadata.generation.unwrap_or_default()
    }

    pub fn uid(&self) -> &'a str {
        self.deployment.metadata.uid.as_deref().unwrap_or_default()
    }

    pub fn owns(&self, child: &ObjectMeta) -> bool {
        let owners = child.owner_references.as_deref().unwrap_or_default();
        owners.iter().any(|owner| owner.uid == self.uid())
    }

    /// The MachineSets of the cluster, also a platform's.
    pub fn sets(&self) -> impl Iterator<Item = &'a MachineSet> + '_ {
        self.observed
            .sets
            .iter()
            .copied()
            .filter(|set| set.spec.cluster_name == self.name)
    }

    pub fn set(&self, name: &str) -> Option<&'a MachineSet> {
        self.observed
            .sets
            .iter()
            .copied()
            .find(|set| set.metadata.name.as_deref() == Some(name))
    }

    /// MachineSets that have a name that this cluster needs, and are not its.
    pub fn foreign_sets(&self) -> impl Iterator<Item = &'a MachineSet> + '_ {
        self.set_names()
            .into_iter()
            .filter_map(|name| self.set(&name))
            .filter(|set| !self.owns(&set.metadata))
    }

    fn set_names(&self) -> Vec<String> {
        let spec = &self.deployment.spec;
        let mut set_names = vec![names::control_plane_set(&self.name)];
        if spec.etcd.topology == EtcdTopology::Dedicated {
            set_names.push(names::etcd_set(&self.name));
        }
        set_names.extend(
            spec.workers
                .iter()
                .map(|set| names::worker_set(&self.name, &set.name)),
        );
        set_names
    }

    /// Workers wanted, over all sets.
    pub fn workers_wanted(&self) -> i32 {
        let spec = &self.deployment.spec;
        let ours = spec.workers.iter().map(|workers| {
            let set = self.set(&names::worker_set(&self.name, &workers.name));
            workers
                .replicas
                .or(set.map(|set| set.spec.replicas))
                .unwrap_or_default()
        });
        let platform = self
            .sets()
            .filter(|set| set.spec.role == Role::Worker && !self.owns(&set.metadata));
        ours.chain(platform.map(|set| set.spec.replicas)).sum()
    }

    pub fn nodes_wanted(&self) -> u64 {
        let wanted = self
            .deployment
            .spec
            .control_plane
            .replicas
            .saturating_add(self.workers_wanted());
        u64::try_from(wanted).unwrap_or_default()
    }

    /// The version that a running cluster has, as its control planes show it. The wish says nothing of it: it may have
    /// changed while the install went on with what it was given.
    pub fn version_installed(&self) -> Option<String> {
        self.installed.as_ref()?;
        let seen = |member: Member<'a>| member.machine.status.as_ref()?.kubernetes_version.clone();
        let recorded = || self.deployment.status.as_ref()?.kubernetes_version.clone();
        self.of_role(Role::ControlPlane).find_map(seen).or_else(recorded)
    }

    /// The machine that runs `kubeadm init`: the one chosen, or else the first by ordinal once all have their Hosts. In a
    /// cluster that stands it is one that is part of it, which another one becomes when it goes.
    pub fn first_control_plane(&self) -> Option<Member<'a>> {
        let status = self.deployment.status.as_ref();
        let chosen = status.and_then(|status| status.first_control_plane.as_deref());
        let may_be = |member: &Member<'a>| self.installed.is_none() || member.is_provisioned();
        let chosen = chosen.and_then(|name| {
            self.of_role(Role::ControlPlane)
                .find(|member| member.name() == name && may_be(member))
        });
        if chosen.is_some() || self.installed.is_none() {
            return chosen.or_else(|| {
                let mut founders = self.founders()?.into_iter();
                founders.find(|member| member.machine.spec.role == Role::ControlPlane)
            });
        }
        let standing = || self.of_role(Role::ControlPlane).filter(may_be);
        let healthy = standing().find(|member| is_healthy(member.machine));
        healthy.or_else(|| standing().next())
    }

    /// Where the API answers, or will: the endpoint given, or the first control plane.
    pub fn endpoint(&self) -> Option<String> {
        if let Some(endpoint) = &self.deployment.spec.control_plane.endpoint {
            return Some(url(&endpoint.host, endpoint.port));
        }
        let known = self
            .deployment
            .status
            .as_ref()
            .and_then(|status| status.endpoint.clone());
        if self.installed.is_some() && known.is_some() {
            return known;
        }
        let host = self.first_control_plane()?.host?;
        let address = host.spec.internal_address.as_ref().unwrap_or(&host.spec.address);
        Some(url(address, 6443))
    }

    /// Whether a Host is held by a machine that is being deleted.
    pub fn is_leaving(&self, host: &str) -> bool {
        self.leaving.iter().any(|member| member.host_name() == Some(host))
    }

    /// The run that works on a Host, or is about to.
    pub fn active_on(&self, host: &str) -> Option<&'a PlaybookRun> {
        self.active
            .iter()
            .copied()
            .find(|run| run.spec.hosts.iter().any(|named| named == host))
    }
}

fn url(host: &str, port: i32) -> String {
    if host.contains(':') {
        format!("https://[{host}]:{port}")
    } else {
        format!("https://{host}:{port}")
    }
}
