//! The scene: what was observed of one cluster, looked at once and put in order.

mod install;
mod sets;

use std::collections::BTreeMap;

use crds::commands::{self, Target};
use crds::step::{Intent, Role};
use crds::{ClusterDeployment, Host, Machine, PlaybookRun, names};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

pub(super) use super::member::Member;
use super::{Observed, rebuild};
use crate::approval;
use crate::attempts::{self, Turn};
use crate::departure::Council;
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
        let since = rebuild::anew_since(observed);
        let is_new = |at: &Time| since.is_none_or(|since| at.0 > since);
        scene.installed = recorded.filter(is_new).or_else(|| scene.seen_installed(since));
        scene
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
        let value = approval::to_write(&self.deployment.metadata, value);
        self.annotate(names::annotation::APPROVE, &value)
    }

    /// What a person types to annotate the cluster.
    pub fn annotate(&self, key: &str, value: &str) -> String {
        commands::annotate(Target::ClusterDeployment, &self.deployment.metadata, key, value)
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
