//! What is known of the cluster's etcd, and of the machines that carry its members.

use std::cmp::Reverse;

use crds::PlaybookRun;
use crds::cluster_deployment::EtcdStatus;

use super::{ClusterMachine, ClusterState};
use crate::attempts;
use crate::etcd::{self, Seen};

impl<'a> ClusterState<'a> {
    /// The machines that carry etcd's members: provisioned, with their Hosts, and not leaving.
    pub fn etcd_machines(&self) -> Vec<ClusterMachine<'a>> {
        let Some(role) = self.membership().etcd_role() else { return Vec::new() };
        let carries = |machine: &ClusterMachine<'_>| machine.is_provisioned() && machine.host.is_some();
        self.of_role(role).filter(carries).collect()
    }

    /// What is seen of etcd, to be shown; none: nothing yet.
    pub fn etcd_status(&self) -> Option<EtcdStatus> {
        self.installed.as_ref()?;
        let machines = self.etcd_machines();
        let member = |machine: &ClusterMachine<'a>| {
            let since = machine.machine.status.as_ref()?.provisioned_at.as_ref()?;
            Some((machine.host_name()?, since.0))
        };
        let members: Vec<_> = machines.iter().filter_map(member).collect();
        let cluster = self.observed.cluster.and_then(|cluster| cluster.status.as_ref());
        let seen = Seen {
            old: self.deployment.status.as_ref().and_then(|status| status.etcd.as_ref()),
            members: &members,
            runs: &self.own_runs(),
            api_size: cluster.and_then(|status| status.etcd_size_bytes),
        };
        Some(etcd::status(&seen)).filter(|status| *status != EtcdStatus::default())
    }

    /// Runs that the cluster made itself.
    pub fn own_runs(&self) -> Vec<&'a PlaybookRun> {
        let runs = self.observed.runs.iter().copied();
        runs.filter(|run| self.owns(&run.metadata)).collect()
    }

    /// Those of them that are such, the newest first.
    pub fn newest_runs(&self, is_such: impl Fn(&PlaybookRun) -> bool) -> Vec<&'a PlaybookRun> {
        let mut runs = self.own_runs();
        runs.retain(|run| is_such(run));
        runs.sort_by_key(|run| Reverse((run.metadata.creation_timestamp.clone(), attempts::attempt_of(run))));
        runs
    }
}
