//! The install as the state shows it: its machines, when it succeeded, and where the API answers since.

use crds::KubernetesVersion;
use crds::PlaybookRun;
use crds::cluster_deployment::EtcdTopology;
use crds::networking::API_SERVER_PORT;
use crds::playbook_run::{RunPhase, StepPhase};
use crds::step::{Intent, Role, Step};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{ClusterMachine, ClusterState};
use crate::attempts;
use crate::departure::is_healthy;

impl<'a> ClusterState<'a> {
    /// When the install of ours succeeded that is known; from then on machines join, whatever became of the founders.
    /// What is not younger than `since` was another cluster, and so was one of whose machines none is left.
    pub(super) fn seen_installed(&self, since: Option<Timestamp>) -> Option<Time> {
        let ours = |run: &&&PlaybookRun| run.spec.intent == Intent::Install && !attempts::targets(run).is_empty();
        let succeeded =
            |run: &&&PlaybookRun| run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Succeeded);
        let ended = self.observed.runs.iter().filter(ours).filter(succeeded);
        let ended = ended.filter(|run| self.has_founder(run));
        let ended = ended.filter_map(|run| attempts::ended_at(run));
        let of_run = ended.filter(|at| Some(*at) > since).min();
        // The run may be gone: what the control planes remember counts, too, those that leave included.
        let remembered =
            self.live.iter().chain(&self.leaving).filter(|member| member.machine.spec.role == Role::ControlPlane);
        let remembered =
            remembered.filter_map(|member| member.machine.status.as_ref()?.provisioned_at.as_ref().map(|at| at.0));
        let remembered = remembered.filter(|at| Some(*at) > since);
        of_run.or(remembered.min()).map(Time)
    }

    /// Whether workers may join: the cluster is installed, or nothing is left of its install but what proves it.
    pub fn accepts_workers(&self) -> bool {
        self.installed.is_some() || self.is_reachable() && self.install_under_way().is_some_and(serves)
    }

    /// The install of ours that works, or is about to.
    pub fn install_under_way(&self) -> Option<&'a PlaybookRun> {
        let is_ours = |run: &&PlaybookRun| run.spec.intent == Intent::Install && !attempts::targets(run).is_empty();
        self.active.iter().copied().find(is_ours)
    }

    fn has_founder(&self, run: &PlaybookRun) -> bool {
        let targets = attempts::targets(run);
        let is_there = |uid: &String| {
            let mut machines = self.observed.machines.iter();
            machines.any(|machine| machine.metadata.uid.as_ref() == Some(uid))
        };
        targets.values().any(|target| is_there(&target.uid))
    }

    /// The machines of an install, all of them with their Hosts; `None` while one is missing.
    pub fn founders(&self) -> Option<Vec<ClusterMachine<'a>>> {
        let spec = &self.deployment.spec;
        let etcd = match spec.etcd.topology {
            EtcdTopology::Dedicated => spec.etcd.replicas.unwrap_or_default(),
            EtcdTopology::Stacked | EtcdTopology::External => 0,
        };
        let complete = |role, wanted: i32| {
            let members: Vec<ClusterMachine<'a>> = self.of_role(role).collect();
            let enough = i32::try_from(members.len()) == Ok(wanted);
            (enough && members.iter().all(|member| member.host.is_some())).then_some(members)
        };
        let mut founders = complete(Role::ControlPlane, spec.control_plane.replicas)?;
        founders.extend(complete(Role::Etcd, etcd)?);
        Some(founders)
    }

    /// The version that a running cluster has, as its control planes report it. `spec.kubernetesVersion` says nothing
    /// of it: it may have changed while the install went on with what it was given.
    pub fn version_reported(&self) -> Option<&'a str> {
        self.installed.as_ref()?;
        let seen = |member: ClusterMachine<'a>| member.machine.status.as_ref()?.kubernetes_version.as_deref();
        let recorded = || self.deployment.status.as_ref()?.kubernetes_version.as_deref();
        self.of_role(Role::ControlPlane).find_map(seen).or_else(recorded)
    }

    /// The version that a running cluster has; also `None` if its control planes report one in another form.
    pub fn version_installed(&self) -> Option<KubernetesVersion> {
        self.version_reported()?.parse().ok()
    }

    /// The Kubernetes version whose rollout has begun. While none is recorded, what the control planes have.
    pub fn version_begun(&self) -> KubernetesVersion {
        let status = self.deployment.status.as_ref();
        let recorded = status.and_then(|status| status.started_kubernetes_version);
        recorded.or_else(|| self.version_installed()).unwrap_or(self.deployment.spec.kubernetes_version)
    }

    /// The machine that runs `kubeadm init`: the one chosen, or else the first by ordinal once all have their Hosts. In
    /// a cluster that stands it is one that is part of it, which another one becomes when it goes.
    pub fn first_control_plane(&self) -> Option<ClusterMachine<'a>> {
        let status = self.deployment.status.as_ref();
        let chosen = status.and_then(|status| status.first_control_plane.as_deref());
        let may_be = |member: &ClusterMachine<'a>| self.installed.is_none() || member.is_provisioned();
        let chosen = chosen
            .and_then(|name| self.of_role(Role::ControlPlane).find(|member| member.name() == name && may_be(member)));
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
        let known = self.deployment.status.as_ref().and_then(|status| status.endpoint.clone());
        if self.installed.is_some() && known.is_some() {
            return known;
        }
        let host = self.first_control_plane()?.host?;
        let address = host.spec.internal_address.as_ref().unwrap_or(&host.spec.address);
        Some(url(address, API_SERVER_PORT))
    }
}

/// Whether every step is done but the last one, which changes nothing. What a user's own playbooks do after an install
/// is a part of it.
fn serves(install: &PlaybookRun) -> bool {
    let statuses = install.status.iter().flat_map(|status| &status.steps);
    let done: Vec<Step> = statuses.filter(|step| step.phase == StepPhase::Succeeded).map(|step| step.name).collect();
    let steps = &install.spec.steps;
    steps.last() == Some(&Step::PostInstall)
        && steps.iter().all(|step| *step == Step::PostInstall || done.contains(step))
}

fn url(host: &str, port: i32) -> String {
    if host.contains(':') { format!("https://[{host}]:{port}") } else { format!("https://{host}:{port}") }
}
