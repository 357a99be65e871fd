//! What must be so at every turn.

use std::collections::BTreeSet;

use crds::ObjectExt;
use crds::cluster_deployment::{DeletionPolicy, LockMode, Operation};
use crds::host::Quarantine;
use crds::playbook_run::RunPhase;
use crds::step::{Intent, Role, Step};
use crds::{Host, PlaybookRun};

use super::World;
use crate::attempts;
use crate::cluster_deployment::fencing::is_fence;

impl World {
    /// What must be so at every turn.
    pub(super) fn check(&self) {
        for machine in &self.machines {
            let uid = machine.metadata.uid.as_ref();
            let held = self.hosts.iter().filter(|host| host.spec.claim_ref.as_ref().map(|claim| &claim.uid) == uid);
            assert!(held.count() <= 1, "a Machine holds two Hosts");
        }
        // The Job of a run whose status was lost knows that it is over.
        let is_over = |run: &PlaybookRun| {
            let phase = self.jobs.get(run.name()).and_then(|known| known.phase);
            attempts::is_over(run) || run.status.is_none() && phase.is_some_and(RunPhase::is_final)
        };
        let active: Vec<&PlaybookRun> =
            self.runs.iter().filter(|run| !is_over(run) && run.spec.intent != Intent::Probe).collect();
        let works = |run: &PlaybookRun| run.status.as_ref().is_some_and(|status| status.token > 0);
        let ours = |run: &PlaybookRun| !attempts::targets(run).is_empty();
        for (index, run) in active.iter().enumerate() {
            let beside = |other: &&&PlaybookRun| works(run) && works(other) || ours(run) && ours(other);
            for other in active[index + 1..].iter().filter(beside) {
                let both = run.spec.hosts.iter().find(|host| other.spec.hosts.contains(host));
                assert_eq!(both, None, "two runs for one host: {} and {}", run.name(), other.name());
            }
        }
        self.check_one_change();
        let operations = self.deployment.status.as_ref().map(|status| status.operations.as_slice()).unwrap_or_default();
        for (index, one) in operations.iter().enumerate() {
            for other in &operations[index + 1..] {
                let shared = one.mode == LockMode::Shared && other.mode == LockMode::Shared;
                assert!(shared || self.is_separate(one) || self.is_separate(other));
                assert!(one.hosts.iter().all(|host| !other.hosts.contains(host)));
            }
        }
        let installs = self.runs.iter().filter(|run| {
            run.spec.intent == Intent::Install
                && run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Succeeded)
        });
        let mut installed = BTreeSet::new();
        for host in installs.flat_map(|run| attempts::targets(run).into_values()) {
            assert!(installed.insert(host.uid), "a cluster is installed once");
        }
        for host in self.hosts.iter().filter(|host| host.spec.claim_ref.is_some()) {
            assert!(host.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty()));
        }
    }

    /// Of the machines of a cluster that stands, one control plane or etcd machine at most is changed at a time.
    fn check_one_change(&self) {
        let status = self.deployment.status.as_ref();
        if status.is_none_or(|status| status.installed_at.is_none()) {
            return;
        }
        let is_of_council = |host: &&String| self.role_of(host).is_some_and(|role| role != Role::Worker);
        let changes = |run: &&PlaybookRun| {
            let kind = [Intent::Join, Intent::Remove, Intent::Repair].contains(&run.spec.intent);
            let tells = run.spec.steps.contains(&Step::EtcdEndpoints) || run.spec.steps.contains(&Step::LoadBalancer);
            kind && !tells && !attempts::is_over(run) && !attempts::targets(run).is_empty()
        };
        let changed = self.runs.iter().filter(changes);
        let changed: Vec<&String> = changed.flat_map(|run| &run.spec.hosts).filter(is_of_council).collect();
        assert!(changed.len() <= 1, "{changed:?} change at a time");
    }

    /// A Host that is not clean is never given back as if it were, but for a cluster that leaves its machines as they
    /// are.
    pub(super) fn check_release(&self, host: &Host, quarantine: Option<&Quarantine>) {
        let name = host.name();
        let detached = self.deployment.spec.deletion_policy == DeletionPolicy::Detach && self.deployment.is_deleting();
        assert!(
            quarantine.is_some() || !self.dirty.contains(name) || detached || self.gone,
            "Host {name} is given back as if it were clean"
        );
    }

    /// Whether a run only works on machines that are no part of the cluster, any more or yet.
    fn is_separate(&self, held: &Operation) -> bool {
        let run = self.runs.iter().find(|run| run.name() == held.run);
        let only_workers = || held.hosts.iter().all(|host| self.role_of(host) == Some(Role::Worker));
        let installed = self.deployment.status.as_ref().is_some_and(|status| status.installed_at.is_some());
        held.mode == LockMode::Separate && (run.is_some_and(is_fence) || only_workers() && !installed)
    }

    /// A run of ours works on machines that hold their Hosts, and on no others.
    pub(super) fn check_held(&self, run: &PlaybookRun) {
        for (name, target) in attempts::targets(run) {
            let mut hosts = self.hosts.iter();
            let host = hosts.find(|host| host.metadata.name.as_ref() == Some(&name));
            let claim = host.and_then(|host| host.spec.claim_ref.as_ref());
            assert_eq!(claim.map(|claim| &claim.uid), Some(&target.uid), "{:?} works on {name}", run.metadata.name);
        }
    }

    /// An install is for a cluster that does not stand: its machines would look for one to join.
    pub(super) fn check_install(&self, run: &PlaybookRun) {
        let status = self.deployment.status.as_ref();
        let stands = status.is_some_and(|status| status.installed_at.is_some());
        assert!(run.spec.intent != Intent::Install || !stands, "a cluster that stands is installed");
    }

    /// The Node of a machine that leaves a cluster which goes on is gone before the machine is cleaned; but one that an
    /// administrator's own run has made meanwhile goes after it.
    pub(super) fn check_reset(&self, run: &PlaybookRun) {
        let goes_on = !self.deployment.is_deleting();
        let by_hand = |host: &String| {
            let mut runs = self.runs.iter();
            runs.any(|other| other.spec.intent == Intent::Custom && other.spec.hosts.contains(host))
        };
        let mut hosts = run.spec.hosts.iter();
        let node = hosts.find(|host| self.nodes.contains(*host) && !by_hand(host));
        let ours = !attempts::targets(run).is_empty();
        let resets = ours && run.spec.intent == Intent::Reset;
        assert!(!resets || !goes_on || node.is_none(), "{node:?} is cleaned, and its Node is still there");
    }
}
