//! The versions of API servers and kubelets: what the steps of a run make of them, and what must be so.

use crds::machine::DrainReason;
use crds::step::{Role, Step};
use crds::{KubernetesVersion, MachineSet, ObjectExt, PlaybookRun};

use super::cluster::SimulatedCluster;
use super::world::World;
use crate::disruption;

impl World {
    /// The steps of a run that a machine has done bring their version to it. A kubelet is never newer than the API
    /// servers that it may ask, and its minor is another one only where no Pod is left.
    pub(super) fn bring_versions(&mut self, run: &PlaybookRun, host: &str, done: usize) {
        let settings = run.status.as_ref().and_then(|status| status.settings.as_ref());
        let Some(version) = settings.and_then(|settings| settings.kubernetes_version) else { return };
        let (role, name) = (self.role_of(host), run.spec.cluster_name.clone().unwrap_or_default());
        for step in run.spec.steps.iter().take(done) {
            let is = |of: Step, machine: Role| *step == of && role == Some(machine);
            if is(Step::KubeadmUpgrade, Role::ControlPlane) {
                self.api_versions.insert(host.to_owned(), version);
                self.check_skew(&name);
            } else if is(Step::ControlPlane, Role::ControlPlane) {
                let serves = *self.api_versions.entry(host.to_owned()).or_insert(version);
                self.check_skew(&name);
                assert!(version <= serves, "the kubelet of {host} is {version}, its API server {serves}");
                self.switch_kubelet(&name, host, version);
            } else if is(Step::Node, Role::Worker) {
                let lowest = self.find_cluster(&name).and_then(|cluster| self.serving(cluster).min());
                let is_well = lowest.is_none_or(|lowest| version <= lowest);
                assert!(is_well, "the kubelet of {host} is {version}, an API server {lowest:?}\n{}", self.report());
                self.switch_kubelet(&name, host, version);
            }
        }
    }

    fn switch_kubelet(&mut self, name: &str, host: &str, version: KubernetesVersion) {
        let before = self.kubelet_versions.insert(host.to_owned(), version);
        let cluster = self.find_cluster(name).unwrap();
        let is_free = !cluster.nodes.contains(host) || cluster.cordoned.contains(host);
        let is_same = before.is_none_or(|before| before.minor() == version.minor());
        assert!(is_same || is_free, "{host} goes from {before:?} to {version} under its Pods\n{}", self.report());
    }

    /// Versions of a cluster's API servers.
    fn serving<'w>(&'w self, cluster: &'w SimulatedCluster) -> impl Iterator<Item = KubernetesVersion> + 'w {
        cluster.api_servers.iter().filter_map(|host| self.api_versions.get(host).copied())
    }

    fn check_skew(&self, name: &str) {
        let Some(cluster) = self.find_cluster(name) else { return };
        let Some((lowest, highest)) = self.serving(cluster).min().zip(self.serving(cluster).max()) else { return };
        assert!(highest.minor() - lowest.minor() <= 1, "API servers are {lowest} and {highest}\n{}", self.report());
    }

    /// Workers are upgraded as many at once as may be out of service of their set, one by default, or have joined for
    /// it.
    pub(super) fn check_drains(&self, cluster: &SimulatedCluster) {
        let is_drained = |role: Role| {
            let machines =
                self.machines_of(cluster.name()).into_iter().filter(move |machine| machine.spec.role == role);
            let drained = machines.filter(|machine| machine.spec.drain_for.contains(&DrainReason::Upgrade));
            drained.filter(|machine| !machine.is_deleting()).count()
        };
        let (planes, workers) = (is_drained(Role::ControlPlane), is_drained(Role::Worker));
        let is_its = |set: &&MachineSet| set.spec.cluster_name == cluster.name() && set.spec.role == Role::Worker;
        let most = |set: &MachineSet| {
            let surge = usize::try_from(set.spec.surge).unwrap();
            surge.max(disruption::most(set, Some(&cluster.deployment)))
        };
        let most: usize = self.sets.iter().filter(is_its).map(most).sum();
        assert!(
            planes <= 1 && workers <= most.max(1),
            "{planes} control planes and {workers} workers are upgraded\n{}",
            self.report()
        );
    }

    /// Every Node has the version that is wanted, and none is drained for it.
    pub(super) fn check_versions(&self) {
        for cluster in self.clusters.iter().filter(|cluster| cluster.stays() && cluster.is_installed()) {
            let wanted = cluster.deployment.spec.kubernetes_version;
            for host in &cluster.nodes {
                let version = self.kubelet_versions.get(host);
                assert!(version == Some(&wanted), "{host} has {version:?}, not {wanted}\n{}", self.report());
            }
            let mut machines = self.machines_of(cluster.name()).into_iter();
            let drained = machines.find(|machine| machine.spec.drain_for.contains(&DrainReason::Upgrade));
            assert!(drained.is_none(), "{drained:?} is drained still\n{}", self.report());
        }
    }
}
