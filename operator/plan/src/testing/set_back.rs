//! The store is set back to an older state: objects are what they were, and machines are what they are.

use std::collections::BTreeSet;

use crds::playbook_run::{Fence, FenceOwner, HostResult, RunPhase};
use crds::{ObjectExt, PlaybookRun, Reason, StoreComparison};

use super::results::failed;
use super::world::World;
use crate::cluster_deployment::fencing::is_fence;
use crate::store::comparisons;

/// What a machine's guard remembers beside its fence.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GuardMemory {
    /// UID of the run.
    pub run_uid: String,
    pub owner: FenceOwner,
}

/// What was done to machines by runs that the store does not know.
#[derive(Clone, Debug, Default)]
pub struct SetBack {
    /// Machines that such a run had last.
    pub changed: BTreeSet<String>,
    /// Those of which a person has approved, as the store was told of what they know.
    pub approved: BTreeSet<String>,
}

impl World {
    /// The store is set back to what it was then, and an operator takes it up again.
    pub fn set_back(&mut self, then: &World) {
        // A run that had its token then is known, whatever became of it.
        let had_token =
            |run: &&PlaybookRun| then.token_of(run) > 0 || run.status.as_ref().is_some_and(|told| told.token > 0);
        let known: BTreeSet<&str> = then.runs.iter().filter(had_token).map(|run| run.uid()).collect();
        let unknown = self.memories.iter().filter(|(_, memory)| !known.contains(memory.run_uid.as_str()));
        let changed =
            unknown.map(|(host, _)| host.clone()).filter(|host| self.memories.get(host) != then.memories.get(host));
        self.set_back = Some(SetBack { changed: changed.collect(), approved: BTreeSet::new() });
        (self.sets, self.machines, self.hosts) = (then.sets.clone(), then.machines.clone(), then.hosts.clone());
        self.requests = then.requests.clone();
        (self.runs, self.policies, self.jobs) = (then.runs.clone(), then.policies.clone(), then.jobs.clone());
        for cluster in &mut self.clusters {
            let Some(old) = then.clusters.iter().find(|old| old.name() == cluster.name()) else {
                (cluster.gone, cluster.cluster) = (true, None);
                continue;
            };
            (cluster.deployment, cluster.cluster, cluster.gone) =
                (old.deployment.clone(), old.cluster.clone(), old.gone);
            (cluster.pki, cluster.kubeconfig) = (old.pki, old.kubeconfig.clone());
            cluster.kubeconfig_authority = old.kubeconfig_authority.clone();
            cluster.authorities = old.authorities.clone();
        }
        self.resumed_at = Some(self.now);
        self.approving.clear();
        // Their Pods are there again.
        for index in 0..self.runs.len() {
            let run = &self.runs[index];
            let works = run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Running);
            let refused = self.refused(run, self.token_of(run));
            if works && !refused.is_empty() {
                self.refuse(index, &refused);
            }
        }
    }

    /// What a run brings to a machine.
    pub(super) fn brings(&self, run: &PlaybookRun, host: &str, token: i64) -> (Fence, GuardMemory) {
        let object = self.host(host);
        let claim = object.and_then(|host| host.spec.claim_ref.as_ref());
        let owner = FenceOwner {
            cluster: run.spec.cluster_name.clone().unwrap_or_default(),
            run: format!("{}/{}", run.namespace(), run.name()),
            machine_uid: claim.map(|claim| claim.uid.clone()),
            compared_since: self.comparisons(run, host).pop().map(|newest| newest.since),
        };
        let epoch = object.map_or(0, |host| host.spec.claim_epoch);
        (Fence { epoch, token }, GuardMemory { run_uid: run.uid().to_owned(), owner })
    }

    /// The comparisons that a run brings to a machine.
    fn comparisons(&self, run: &PlaybookRun, host: &str) -> Vec<StoreComparison> {
        let status = self.cluster_of(run).and_then(|cluster| cluster.status());
        let told = self.host(host).zip(status).filter(|_| !is_fence(run));
        told.map(|(host, status)| comparisons::of_host(host, status)).unwrap_or_default()
    }

    /// Whether the machine's guard finds that the store does not know the run that was there.
    pub(super) fn is_unknown(&self, run: &PlaybookRun, host: &str, token: i64) -> bool {
        let Some(((epoch, highest), _)) = self.guards.get(host) else { return false };
        let since = self.memories.get(host).and_then(|memory| memory.owner.compared_since.as_ref());
        let limit = comparisons::limit(&self.comparisons(run, host), since);
        let (brought, _) = self.brings(run, host, token);
        brought.epoch == *epoch && brought.token > *highest && limit.is_some_and(|limit| *highest > limit)
    }

    /// Hosts of a run whose guards refuse it.
    pub(super) fn refused(&self, run: &PlaybookRun, token: i64) -> Vec<String> {
        let refuses = |host: &&String| {
            let Some(((epoch, highest), _)) = self.guards.get(*host) else { return false };
            let known = Fence { epoch: *epoch, token: *highest };
            let (brought, ours) = self.brings(run, host, token);
            let Some(theirs) = self.memories.get(*host) else { return brought < known };
            let of_another =
                |one: &Option<String>, other: &Option<String>| one.is_some() && other.is_some() && one != other;
            let is_another_claim = theirs.owner.cluster_path() != ours.owner.cluster_path()
                || of_another(&theirs.owner.machine_uid, &ours.owner.machine_uid);
            brought < known
                || brought == known && theirs.run_uid != ours.run_uid
                || brought.epoch == known.epoch && is_another_claim
                || self.is_unknown(run, host, token)
        };
        run.spec.hosts.iter().filter(|host| !self.silent.contains(*host)).filter(refuses).cloned().collect()
    }

    /// The run ends without having done anything, and tells which fences it met.
    pub(super) fn refuse(&mut self, index: usize, refused: &[String]) {
        let hosts = self.runs[index].spec.hosts.clone();
        let result = |host: &String| match refused.contains(host) {
            true => HostResult {
                fence: self.guards.get(host).map(|((epoch, token), _)| Fence { epoch: *epoch, token: *token }),
                fence_owner: self.memories.get(host).map(|memory| memory.owner.clone()),
                ..failed(host, "", Reason::Fenced)
            },
            false => failed(host, "", Reason::NotReached),
        };
        let results: Vec<HostResult> = hosts.iter().map(result).collect();
        self.end(index, RunPhase::Failed, Reason::Fenced, 0);
        self.report_outcome(index, RunPhase::Failed, Reason::Fenced, results);
    }

    /// A person approves of what machines know and the store does not, as far as it was told.
    pub(super) fn approve_contradictions(&mut self) {
        let is_told = |host: &&crds::Host| {
            let told = host.status.as_ref().and_then(|status| status.fence);
            let known = self.guards.get(host.name()).map(|((epoch, token), _)| Fence { epoch: *epoch, token: *token });
            told.is_some() && told == known
        };
        let told: Vec<String> = self.hosts.iter().filter(is_told).map(|host| host.name().to_owned()).collect();
        if let Some(set_back) = &mut self.set_back {
            set_back.approved.extend(told);
        }
    }

    /// After the store was set back, nothing is done to a machine that was changed since before a person has approved,
    /// and never to one that serves another cluster.
    pub(super) fn check_set_back(&self, run: &PlaybookRun) {
        let Some(set_back) = &self.set_back else { return };
        let cluster = run.spec.cluster_name.as_deref().unwrap_or_default();
        for host in run.spec.hosts.iter().filter(|host| !self.silent.contains(*host)) {
            // One that is clean serves nobody.
            let changed = set_back.changed.contains(host) && self.dirty.contains(host);
            assert!(
                !changed || set_back.approved.contains(host),
                "{} works on {host} unasked\n{}",
                run.name(),
                self.report()
            );
            let serves = self.kubelets.get(host);
            let is_others = serves.is_some_and(|serves| serves != cluster);
            assert!(!is_others, "{} works on {host}, which serves {serves:?}\n{}", run.name(), self.report());
        }
    }
}
