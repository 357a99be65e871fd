//! Promises about control planes and members of etcd.

use crds::conditions;
use crds::names::{annotation, condition};
use crds::step::{Intent, Role, Step};
use crds::{ObjectExt, PlaybookRun};

use super::super::cluster::SimulatedCluster;
use super::super::world::World;
use crate::attempts;

impl World {
    /// Of the machines of a cluster that stands, one control plane or etcd machine at most is changed at a time.
    pub(super) fn check_one_change(&self, cluster: &SimulatedCluster) {
        if !cluster.is_installed() {
            return;
        }
        let changes = |run: &&PlaybookRun| {
            [Intent::Join, Intent::Remove, Intent::Repair].contains(&run.spec.intent)
                && run.spec.cluster_name.as_deref() == Some(cluster.name())
                && self.changes_members(run)
                && !attempts::is_over(run)
        };
        let under_way: Vec<&PlaybookRun> = self.runs.iter().filter(changes).collect();
        let names: Vec<&str> = under_way.iter().map(|run| run.name()).collect();
        assert!(under_way.len() <= 1, "changes of the control plane side by side: {names:?}");
        let updates = |run: &PlaybookRun| {
            run.spec.steps.iter().any(|step| [Step::EtcdEndpoints, Step::LoadBalancer].contains(step))
        };
        let many = under_way.iter().find(|run| run.spec.hosts.len() > 1);
        assert!(many.is_none_or(|run| updates(run)), "one run changes several control planes: {names:?}");
    }

    /// Whether a run of ours works on a control plane or etcd machine.
    fn changes_members(&self, run: &PlaybookRun) -> bool {
        let is_member = |host: &String| self.role_of(host).is_some_and(|role| role != Role::Worker);
        !attempts::targets(run).is_empty() && run.spec.hosts.iter().any(is_member)
    }

    /// What must be so when a change of the control plane or etcd is asked for.
    pub(in super::super) fn check_change(&self, run: &PlaybookRun) {
        let changes = |run: &PlaybookRun| {
            let kind = [Intent::Join, Intent::Repair, Intent::Install].contains(&run.spec.intent)
                || run.spec.steps.contains(&Step::RemoveEtcdMember);
            kind && self.changes_members(run)
        };
        if !changes(run) {
            return;
        }
        let is_beside = |other: &&PlaybookRun| {
            other.spec.cluster_name == run.spec.cluster_name
                && other.metadata.name != run.metadata.name
                && !attempts::is_over(other)
                && changes(other)
        };
        let other = self.runs.iter().find(is_beside);
        assert_eq!(other.map(|other| other.name()), None, "two changes at a time");
        let voters = self.cluster_of(run).map(|cluster| cluster.voters.clone()).unwrap_or_default();
        let joins = run.spec.intent == Intent::Join;
        let decides = self.cluster_of(run).is_none_or(|cluster| !cluster.is_installed() || self.decides(cluster));
        assert!(!joins || decides, "{} is asked for while etcd has no quorum: {voters:?}", run.name());
        for host in voters.iter().filter(|host| joins && !run.spec.hosts.contains(host)) {
            let status = self.machine_on(host).and_then(|machine| machine.status.as_ref());
            let is_well = status.is_some_and(|status| conditions::is_true(&status.conditions, condition::NODE_READY));
            let is_known = self.role_of(host) == Some(Role::ControlPlane);
            assert!(is_well || !is_known, "a new one comes in before the bad {host} is out");
        }
    }

    /// A member joins an etcd only when those that are there can still decide with it being slow to come.
    pub(in super::super) fn check_member_may_join(&self, name: &str, host: &str) {
        let Some(cluster) = self.find_cluster(name).filter(|cluster| cluster.is_installed()) else {
            return;
        };
        assert!(self.decides(cluster), "{host} joins an etcd that has no quorum: {:?}", cluster.voters);
        let stays = |member: &str| self.machine_on(member).is_some_and(|machine| !machine.is_deleting());
        let bad = cluster.voters.iter().filter(|member| !self.votes(member) && *member != host);
        let gone: Vec<&String> = bad.filter(|member| !stays(member)).collect();
        assert!(gone.is_empty(), "{host} joins before the bad members {gone:?} are out\n{}", self.report());
    }

    /// With and without it etcd decides.
    pub(in super::super) fn check_member_may_leave(&self, name: &str, host: &str) {
        let cluster = self.find_cluster(name).unwrap();
        let voters = &cluster.voters;
        assert!(self.decides(cluster), "{host} is taken out without a majority: {voters:?}");
        assert!(voters.iter().any(|voter| voter != host), "{host} is the last member");
        assert!(self.decides_without(cluster, host), "without {host} etcd has no quorum: {voters:?}");
    }

    /// Only an etcd without a majority is made anew, and only if an administrator approves.
    pub(in super::super) fn check_recovery(&self, name: &str) {
        let cluster = self.find_cluster(name).unwrap();
        assert!(!self.decides(cluster), "there was a majority, and it was given up: {:?}", cluster.voters);
        let is_approved = cluster.deployment.annotation(annotation::APPROVE).is_some();
        assert!(is_approved, "an etcd is made anew without approval: {:?}", cluster.voters);
    }

    /// A member of etcd leaves it before its Node goes.
    pub(in super::super) fn check_node_may_go(&self, name: &str, host: &str) {
        let is_member =
            self.find_cluster(name).is_some_and(|cluster| cluster.voters.contains(host) && self.decides(cluster));
        assert!(!is_member, "the Node of {host} goes before its member of etcd\n{}", self.report());
    }
}
