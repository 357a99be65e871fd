//! The state of a plane's machines: what was observed, looked at once and put in order.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crds::cluster_deployment::EtcdStatus;
use crds::names::condition;
use crds::playbook_run::RunPhase;
use crds::references::controller_ref;
use crds::step::{Effect, Intent, Role};
use crds::{ClusterKind, Conditions, EtcdRestore, KarmadaDeployment, Machine, ObjectExt, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::super::observed::Observed;
use super::super::seats::MachinesSeen;
use crate::Next;
use crate::attempts::{self, HasTerms, Terms};
use crate::cluster_machine::{ClusterMachine, gather};
use crate::departure::EtcdMembership;
use crate::etcd::{self, Seen};
use crate::formed_cluster::FormedCluster;
use crate::former::is_former;
use crate::inputs;
use crate::message::count;
use crate::run_owner::RunOwner;
use crate::run_request::{Asker, RunRequest};
use crate::store::Compared;
use crate::store::comparison::{Comparison, ComparisonObserved};

/// What was observed, in order.
pub(in super::super) struct PlaneState<'a> {
    pub now: Timestamp,
    pub object: &'a KarmadaDeployment,
    pub seen: MachinesSeen<'a>,
    /// EtcdRestores of the plane.
    pub restores: &'a [&'a EtcdRestore],
    /// The plane as what forms a cluster.
    pub cluster: FormedCluster<'a>,
    /// Its Machines, without those of a former plane of its name.
    pub machines: Vec<&'a Machine>,
    /// Machines that stay.
    pub live: Vec<ClusterMachine<'a>>,
    /// Machines that are being deleted.
    pub leaving: Vec<ClusterMachine<'a>>,
    /// Runs that are not over and change something, in the order of their creation.
    pub active: Vec<&'a PlaybookRun>,
    pub owner: RunOwner,
    pub terms: Terms,
    /// When etcd stood on the machines that it began with.
    pub installed: Option<Time>,
    /// What the machines say of the store.
    pub comparison: Comparison<'a>,
}

impl<'a> PlaneState<'a> {
    pub fn observe(observed: &Observed<'a>) -> Self {
        let (object, seen) = (observed.object, observed.machines);
        let cluster = FormedCluster::from(object);
        let is_own = |machine: &&&Machine| !is_former(machine, cluster, seen.sets);
        let machines: Vec<&Machine> = seen.machines.iter().filter(is_own).copied().collect();
        let (live, leaving) = gather(&machines, seen.hosts);
        let is_active = |run: &&PlaybookRun| !attempts::is_over(run) && !run.spec.intent.changes_nothing();
        let mut active: Vec<&PlaybookRun> = seen.runs.iter().copied().filter(is_active).collect();
        active.sort_by_key(|run| (run.metadata.creation_timestamp.clone(), run.metadata.name.clone()));
        let comparison = Comparison::new(&ComparisonObserved {
            metadata: &object.metadata,
            compared: object.status.as_ref().map(Compared::from).unwrap_or_default(),
            machines: &machines,
            hosts: seen.hosts,
            runs: seen.runs,
            resumed_at: seen.resumed_at,
        });
        let mut state = Self {
            now: observed.now,
            object,
            seen,
            restores: observed.restores,
            cluster,
            machines,
            live,
            leaving,
            active,
            owner: RunOwner::new(object, ClusterKind::KarmadaDeployment, controller_ref(object)),
            terms: object.terms(),
            installed: None,
            comparison,
        };
        let recorded = object.status.as_ref().and_then(|status| status.first_installed_at.clone());
        state.installed = recorded.or_else(|| state.seen_installed());
        state
    }

    /// When an install of machines that are still there succeeded, or the first of them was made part of the plane.
    fn seen_installed(&self) -> Option<Time> {
        let succeeded = |run: &&&PlaybookRun| {
            let phase = run.status.as_ref().and_then(|status| status.phase);
            run.spec.intent == Intent::Install && phase == Some(RunPhase::Succeeded)
        };
        let is_of_ours =
            |run: &&&PlaybookRun| self.machines.iter().any(|machine| attempts::is_about(run, machine.uid()));
        let runs = self.seen.runs.iter().filter(succeeded).filter(is_of_ours);
        let ended = runs.filter_map(|run| attempts::ended_at(run)).min();
        let remembered = self.machines.iter().filter_map(|machine| machine.status.as_ref()?.provisioned_at.as_ref());
        ended.or(remembered.map(|at| at.0).min()).map(Time)
    }

    /// The machines and what was done about etcd's members.
    pub fn membership(&self) -> EtcdMembership<'a> {
        EtcdMembership::new(&self.machines, self.cluster, self.seen.runs)
    }

    pub fn of_role(&self, role: Role) -> impl Iterator<Item = ClusterMachine<'a>> + '_ {
        self.live.iter().copied().filter(move |member| member.machine.spec.role == role)
    }

    /// Machines of the role that are part of the plane, have their Hosts, and stay.
    pub fn working(&self, role: Role) -> impl Iterator<Item = ClusterMachine<'a>> + '_ {
        self.of_role(role).filter(|member| member.is_provisioned() && member.host.is_some())
    }

    /// A Machine with its Host, one that leaves included.
    pub fn member(&self, machine: &Machine) -> Option<ClusterMachine<'a>> {
        let mut members = self.live.iter().chain(&self.leaving);
        members.find(|member| member.machine.metadata.uid == machine.metadata.uid).copied()
    }

    /// What a run must know of etcd, with these members.
    pub fn etcd_variables(&self, members: &[&Machine]) -> BTreeMap<String, Value> {
        let seat = |machine: &&Machine| {
            let host = self.member(machine)?.host?;
            Some((host.name().to_owned(), inputs::address_in_cluster(host).to_owned()))
        };
        inputs::of_etcd(&members.iter().filter_map(seat).collect::<Vec<_>>())
    }

    pub fn asker(&self) -> Asker<'_> {
        Asker { owner: &self.owner, generation: self.object.generation(), wanted: &self.terms.wanted }
    }

    pub fn request(&self, request: RunRequest<'_, '_>) -> PlaybookRun {
        request.run(&self.asker())
    }

    pub fn until(&self, at: Timestamp) -> Next {
        Next::until(at, self.now)
    }

    pub fn is_leaving(&self, host: &str) -> bool {
        self.leaving.iter().any(|member| member.host_name() == Some(host))
    }

    /// The run that changes machines that stay now, or is about to: another one waits for it.
    pub fn under_way(&self) -> Option<&'a PlaybookRun> {
        let mut active = self.active.iter().copied();
        active.find(|run| run.spec.intent.spec().effect == Effect::Provisions)
    }

    /// Since when the lock is closed, as the status says.
    pub fn closed_since(&self) -> Option<Timestamp> {
        let open = self.object.condition(condition::LOCK_AVAILABLE).filter(|open| open.status == "False");
        open.map(|closed| closed.last_transition_time.0)
    }

    /// Machines that carry a member of etcd, and stay.
    pub fn etcd_machines(&self) -> Vec<ClusterMachine<'a>> {
        self.cluster.etcd_role.map(|role| self.working(role).collect()).unwrap_or_default()
    }

    /// What is seen of etcd, to be shown; none: it does not stand, or is others'.
    pub fn etcd_status(&self) -> Option<EtcdStatus> {
        let (installed, role) = (self.installed.as_ref(), self.cluster.etcd_role);
        installed.and(role)?;
        let machines = self.etcd_machines();
        let member = |machine: &ClusterMachine<'a>| {
            let since = machine.machine.status.as_ref()?.provisioned_at.as_ref()?;
            Some((machine.host_name()?, since.0))
        };
        let members: Vec<_> = machines.iter().filter_map(member).collect();
        Some(etcd::status(&Seen {
            old: self.object.status.as_ref().and_then(|status| status.etcd.as_ref()),
            members: &members,
            runs: &self.own_runs().collect::<Vec<_>>(),
            api_size: None,
        }))
    }

    /// The runs that defragment etcd, the newest first.
    pub fn defragmentations(&self) -> Vec<&'a PlaybookRun> {
        let mut runs: Vec<&PlaybookRun> = self.own_runs().filter(|run| etcd::defragments(run)).collect();
        runs.sort_by_key(|run| Reverse((run.metadata.creation_timestamp.clone(), attempts::attempt_of(run))));
        runs
    }

    /// Runs that the plane made itself.
    pub fn own_runs(&self) -> impl Iterator<Item = &'a PlaybookRun> + '_ {
        self.seen.runs.iter().copied().filter(|run| self.owner.owns(&run.metadata))
    }

    /// What an active run does: `configuring h1: karmada-service, task 3 of 7`.
    pub fn describe(&self, run: &PlaybookRun) -> String {
        let members = || self.live.iter().chain(&self.leaving);
        let what = match run.spec.hosts.as_slice() {
            [host] => members()
                .find(|member| member.host_name() == Some(host))
                .map_or_else(|| host.clone(), ClusterMachine::title),
            hosts => count(hosts.len(), "machine"),
        };
        let status = run.status.as_ref();
        let progress = status.and_then(|status| status.progress.as_ref()).filter(|progress| !progress.step.is_empty());
        let place = match progress {
            Some(progress) if progress.total > 0 => {
                format!("{}, task {} of {}", progress.step, progress.done, progress.total)
            }
            Some(progress) => progress.step.clone(),
            None => {
                let said = status.and_then(|status| status.message.clone()).filter(|message| !message.is_empty());
                said.unwrap_or_else(|| format!("run {} begins", run.name()))
            }
        };
        format!("{} {what}: {place}", run.spec.intent.spec().doing)
    }
}
