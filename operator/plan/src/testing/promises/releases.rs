//! Promises about machines that leave: what is cleaned, forgotten and given back.

use crds::cluster_deployment::DeletionPolicy;
use crds::host::Quarantine;
use crds::step::{Intent, Step};
use crds::{Host, ObjectExt, PlaybookRun};

use super::super::world::World;
use crate::attempts;

impl World {
    /// A Host that is not clean is never given back as if it were, but for a cluster that leaves its machines as they
    /// are.
    pub(in super::super) fn check_release(&self, name: &str, host: &Host, quarantine: Option<&Quarantine>) {
        let detached = self.find_cluster(name).is_none_or(|cluster| {
            cluster.gone || cluster.deployment.spec.deletion_policy == DeletionPolicy::Detach && !cluster.stays()
        });
        assert!(
            quarantine.is_some() || !self.dirty.contains(host.name()) || detached,
            "{} of {name} is given back as if it were clean",
            host.name()
        );
    }

    /// The Node of a machine that leaves a cluster which goes on is gone before the machine is cleaned; but one that an
    /// administrator's own run, or the machine that got its power back, has made meanwhile goes after it.
    pub(super) fn check_nodes_are_gone(&self, run: &PlaybookRun) {
        let resets = run.spec.steps.contains(&Step::Reset) && !attempts::targets(run).is_empty();
        let Some(cluster) = self.cluster_of(run).filter(|cluster| resets && cluster.stays()) else {
            return;
        };
        let customs = || self.runs.iter().filter(|run| run.spec.intent == Intent::Custom);
        let by_hand = |host: &String| customs().any(|run| run.spec.hosts.contains(host));
        for host in run.spec.hosts.iter().filter(|host| !by_hand(host) && !self.returned.contains(*host)) {
            assert!(!cluster.nodes.contains(host), "{host} is cleaned, and its Node is still there");
        }
    }

    /// A member of an etcd that goes on is not cleaned.
    pub(in super::super) fn check_reset(&self, name: &str, host: &str) {
        let cluster = self.find_cluster(name).unwrap();
        let counts_on_it = cluster.stays() && cluster.is_installed() && cluster.voters.contains(host);
        assert!(!counts_on_it, "{host} is cleaned as a member of etcd");
    }

    /// A Node that no Machine stands for goes only if a machine of this cluster was forgotten there.
    pub(in super::super) fn check_orphan(&self, cluster: &str, host: &str) {
        let stands = self.machine_on(host).is_some_and(|machine| machine.spec.cluster_name == cluster);
        assert!(
            !stands && !self.is_held(host),
            "the Node of {host}, which is a machine of {cluster}, is deleted\n{}",
            self.report()
        );
    }
}
