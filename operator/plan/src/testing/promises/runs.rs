//! Promises about runs and the lock that lets them work.

use crds::lock::{LockMode, Operation};
use crds::playbook_run::RunPhase;
use crds::step::{Intent, Role};
use crds::{ObjectExt, PlaybookRun};

use super::super::cluster::SimulatedCluster;
use super::super::world::World;
use crate::attempts;
use crate::cluster_deployment::fencing::is_fence;

impl World {
    /// No two runs are for one host.
    pub(super) fn check_runs(&self) {
        // The Job of a run whose status was lost knows that it is over.
        let is_over = |run: &PlaybookRun| {
            let phase = self.jobs.get(run.name()).and_then(|known| known.phase);
            attempts::is_over(run) || run.status.is_none() && phase.is_some_and(RunPhase::is_final)
        };
        let active: Vec<&PlaybookRun> =
            self.runs.iter().filter(|run| run.spec.intent != Intent::Probe && !is_over(run)).collect();
        let works = |run: &PlaybookRun| run.status.as_ref().is_some_and(|status| status.token > 0);
        let ours = |run: &PlaybookRun| !attempts::targets(run).is_empty();
        for (index, run) in active.iter().enumerate() {
            let beside = |other: &&&PlaybookRun| works(run) && works(other) || ours(run) && ours(other);
            for other in active[index + 1..].iter().filter(beside) {
                let both = run.spec.hosts.iter().find(|host| other.spec.hosts.contains(host));
                assert_eq!(both, None, "two runs for one host: {} and {}", run.name(), other.name());
            }
        }
    }

    /// What works side by side may, and on machines of its own.
    pub(super) fn check_lock(&self, cluster: &SimulatedCluster) {
        let operations = cluster.status().map(|status| status.operations.as_slice()).unwrap_or_default();
        for (index, one) in operations.iter().enumerate() {
            for other in &operations[index + 1..] {
                let shared = one.mode == LockMode::Shared && other.mode == LockMode::Shared;
                let apart = self.is_separate(cluster, one) || self.is_separate(cluster, other);
                assert!(shared || apart, "{} beside {}", one.run, other.run);
                assert!(one.hosts.iter().all(|host| !other.hosts.contains(host)), "two runs on one host");
            }
        }
    }

    /// Whether a run only works on machines that are no part of the cluster, any more or yet.
    fn is_separate(&self, cluster: &SimulatedCluster, held: &Operation) -> bool {
        let run = self.runs.iter().find(|run| run.name() == held.run);
        let only_workers = || held.hosts.iter().all(|host| self.role_of(host) == Some(Role::Worker));
        held.mode == LockMode::Separate && (run.is_some_and(is_fence) || only_workers() && !cluster.is_installed())
    }

    /// What must be so when a run begins.
    pub(in super::super) fn check_begin(&self, run: &PlaybookRun) {
        let name = run.name();
        for other in self.runs.iter().filter(|other| other.metadata.uid != run.metadata.uid) {
            let works = other.status.as_ref().is_some_and(|status| status.token > 0) && !attempts::is_over(other);
            let both = run.spec.hosts.iter().find(|host| other.spec.hosts.contains(host));
            assert!(!works || both.is_none(), "{name} and {} on {both:?}", other.name());
        }
        let is_installed = self.cluster_of(run).is_some_and(SimulatedCluster::is_installed);
        // Its machines would look for a cluster to join.
        assert!(run.spec.intent != Intent::Install || !is_installed, "a cluster that stands is installed");
        for (host, target) in attempts::targets(run) {
            let claim = self.host(&host).and_then(|host| host.spec.claim_ref.as_ref());
            assert_eq!(claim.map(|claim| &claim.uid), Some(&target.uid), "{name} works on {host}");
        }
        self.check_nodes_are_gone(run);
    }

    /// A machine is fenced once its cluster gave it up, and before anybody claims it. A run on another machine that is
    /// no part of the cluster is refused before it begins.
    pub(in super::super) fn check_fence(&self, run: &PlaybookRun) {
        let given_up = run.spec.hosts.iter().all(|host| self.is_given_up(host));
        assert!(!is_fence(run) || given_up, "{} is for {:?}", run.name(), run.spec.hosts);
    }

    /// Only a machine that its cluster gave up, and that nobody has claimed since, is fenced.
    fn is_given_up(&self, host: &str) -> bool {
        self.host(host).is_some_and(|host| {
            let quarantine = host.spec.quarantine.as_ref();
            host.spec.claim_ref.is_none() && quarantine.is_some_and(|quarantine| quarantine.fence.is_some())
        })
    }
}
