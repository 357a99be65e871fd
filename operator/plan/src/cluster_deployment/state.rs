//! The state of one cluster: what was observed, looked at once and put in order.

mod etcd;
mod health;
mod install;
pub(super) mod past;
mod sets;

use std::collections::BTreeMap;

use crds::ObjectExt;
use crds::commands::{self, Target};
use crds::references::controller_ref;
use crds::step::{Role, Step};
use crds::{ClusterDeployment, ClusterKind, Machine, PlaybookRun, names};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::drifted_machine::Drifted;
use super::observed::Observed;
use super::outdated_machine::Outdated;
use super::rollout::Rollout;
use super::wanted_upgrade::Upgrade;
use crate::attempts::{self, RetryDecision, Terms};
pub(super) use crate::cluster_machine::ClusterMachine;
use crate::cluster_machine::{self, gather};
use crate::departure::EtcdMembership;
use crate::run_owner::RunOwner;
use crate::settings::Wanted;
use crate::store::Compared;
use crate::store::comparison::{Comparison, ComparisonObserved};
use crate::{Next, approval};
use crate::{inputs, provisioning};

/// What was observed, in order.
pub(super) struct ClusterState<'a> {
    pub observed: &'a Observed<'a>,
    pub deployment: &'a ClusterDeployment,
    pub name: String,
    /// The ClusterDeployment as the owner of its runs.
    pub owner: RunOwner,
    /// What holds for all attempts at its machines.
    pub terms: Terms,
    /// Machines that stay.
    pub live: Vec<ClusterMachine<'a>>,
    /// Machines that are being deleted.
    pub leaving: Vec<ClusterMachine<'a>>,
    /// Runs that are not over, in the order of their creation; without probes, which change nothing.
    pub active: Vec<&'a PlaybookRun>,
    /// When the cluster was installed.
    pub installed: Option<Time>,
    /// What the machines say of the store.
    pub comparison: Comparison<'a>,
    /// The settings that machines are to have.
    pub wanted: Wanted,
    /// All machines trust the next authority of Kubernetes, which does not sign yet.
    pub is_trusted: bool,
    /// All control planes encrypt with the next key, and decrypt with the former one still.
    pub encrypts_anew: bool,
    /// Whether the KMS plug-in that is to encrypt, if there is one, answers on all control planes that do not have it.
    pub plugin_answers: bool,
    /// The upgrade that is wanted, and not over.
    pub upgrade: Option<Upgrade<'a>>,
    /// Machines to which settings are to be brought, and the one by which manifests are applied.
    pub outdated: Vec<Outdated<'a>>,
    /// Machines that differ from what is wanted, and are to be repaired.
    pub drifted: Vec<Drifted<'a>>,
    /// What is to be done to machines that stay, and whether they may be disrupted for it.
    pub rollout: Rollout,
}

impl<'a> ClusterState<'a> {
    pub fn observe(observed: &'a Observed<'a>) -> Self {
        let deployment = observed.deployment;
        let (live, leaving) = gather(observed.machines, observed.hosts);
        let mut active: Vec<&PlaybookRun> = observed
            .runs
            .iter()
            .copied()
            .filter(|run| !attempts::is_over(run) && !run.spec.intent.changes_nothing())
            .collect();
        active.sort_by_key(|run| (run.metadata.creation_timestamp.clone(), run.metadata.name.clone()));
        let mut state = Self {
            observed,
            deployment,
            name: deployment.name().to_owned(),
            terms: provisioning::terms(deployment),
            owner: RunOwner::new(deployment, ClusterKind::ClusterDeployment, controller_ref(deployment)),
            live,
            leaving,
            active,
            installed: None,
            comparison: compared(observed),
            wanted: Wanted::new(deployment),
            is_trusted: false,
            encrypts_anew: false,
            plugin_answers: true,
            upgrade: None,
            outdated: Vec::new(),
            drifted: Vec::new(),
            rollout: Rollout::default(),
        };
        let recorded = deployment.status.as_ref().and_then(|status| status.installed_at.clone());
        let since = past::anew_since(observed);
        let is_new = |at: &Time| since.is_none_or(|since| at.0 > since);
        state.installed = recorded.filter(is_new).or_else(|| state.seen_installed(since));
        state
    }

    pub fn retry_decision(&self, member: &ClusterMachine<'_>) -> RetryDecision {
        provisioning::retry_decision(
            member.machine,
            member.host,
            || self.terms.clone(),
            self.observed.runs,
            self.observed.now,
        )
    }

    /// The control planes and etcd machines, and what was done about them.
    pub fn membership(&self) -> EtcdMembership<'a> {
        EtcdMembership::new(self.observed.machines, self.deployment.into(), self.observed.runs)
    }

    /// A Machine with its Host, one that leaves included.
    pub fn member(&self, machine: &Machine) -> Option<ClusterMachine<'a>> {
        let mut members = self.live.iter().chain(&self.leaving);
        let found = members.find(|member| member.machine.metadata.uid == machine.metadata.uid);
        found.copied()
    }

    /// What a run must know of etcd, with these members; nothing where none is ours, as its inputs have the rest.
    pub fn etcd_variables(&self, members: &[&Machine]) -> BTreeMap<String, Value> {
        if self.membership().etcd_role().is_none() {
            return BTreeMap::new();
        }
        let seat = |machine: &&Machine| {
            let host = self.member(machine)?.host?;
            let name = host.metadata.name.clone()?;
            Some((name, inputs::address_in_cluster(host).to_owned()))
        };
        inputs::of_etcd(&members.iter().filter_map(seat).collect::<Vec<_>>())
    }

    /// Look again then; times are whole seconds, so a little after.
    pub fn until(&self, at: Timestamp) -> Next {
        Next::until(at, self.observed.now)
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

    pub fn of_role(&self, role: Role) -> impl Iterator<Item = ClusterMachine<'a>> + '_ {
        self.live.iter().copied().filter(move |member| member.machine.spec.role == role)
    }

    pub fn generation(&self) -> i64 {
        self.deployment.generation()
    }

    pub fn uid(&self) -> &'a str {
        self.deployment.uid()
    }

    /// Whether a Host is held by a machine that is being deleted.
    pub fn is_leaving(&self, host: &str) -> bool {
        self.leaving.iter().any(|member| member.host_name() == Some(host))
    }

    /// The role whose machines go now, in a cluster that is being deleted; those of others wait for them.
    pub fn first_role_to_leave(&self) -> Option<Role> {
        cluster_machine::first_role_to_leave(&self.leaving)
    }

    /// A run, by its name.
    pub fn run(&self, name: &str) -> Option<&'a PlaybookRun> {
        let mut runs = self.observed.runs.iter().copied();
        runs.find(|run| run.metadata.name.as_deref() == Some(name))
    }

    /// The run of ours that works, or waits, for a step.
    pub fn active_with(&self, step: &Step) -> Option<&'a PlaybookRun> {
        let mut active = self.active.iter().copied();
        active.find(|run| run.spec.steps.contains(step) && !attempts::targets(run).is_empty())
    }

    /// The run that works on a Host, or is about to.
    pub fn active_on(&self, host: &str) -> Option<&'a PlaybookRun> {
        self.active.iter().copied().find(|run| run.spec.hosts.iter().any(|named| named == host))
    }
}

/// What the machines say of the store. Those that a rebuild forgets are not asked.
fn compared<'a>(observed: &'a Observed<'a>) -> Comparison<'a> {
    let deployment = observed.deployment;
    let goes_on = |machine: &&Machine| !past::is_of_the_past(observed, machine);
    let machines: Vec<&Machine> = observed.machines.iter().copied().filter(goes_on).collect();
    Comparison::new(&ComparisonObserved {
        metadata: &deployment.metadata,
        compared: deployment.status.as_ref().map(Compared::from).unwrap_or_default(),
        machines: &machines,
        hosts: observed.hosts,
        runs: observed.runs,
        resumed_at: observed.resumed_at,
    })
}
