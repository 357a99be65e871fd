//! Ordering: whose removal goes on now. One at a time, and none beside a run on another one.

use crds::Machine;
use crds::ObjectExt;
use crds::Reason;

use super::EtcdMembership;
use super::health::{deleting, is_same};
use crate::attempts;

/// Where a Machine's removal stands after its turn has come: reasons of `Deleting`.
const ON_ITS_WAY: [Reason; 5] =
    [Reason::WaitingForHooks, Reason::Draining, Reason::LeavingEtcd, Reason::ClusterUnreachable, Reason::DeletingNode];

impl EtcdMembership<'_> {
    /// Why its removal does not begin, or go on.
    pub fn why_not_yet(&self, machine: &Machine) -> Option<String> {
        if self.cluster.is_paused {
            let name = self.cluster.name;
            return Some(format!("cluster {name} is paused"));
        }
        let another = || self.another_leaves(machine);
        another().or_else(|| self.run_in_the_way(Some(machine))).or_else(|| self.cannot_do_without(machine))
    }

    fn another_leaves(&self, machine: &Machine) -> Option<String> {
        let position = |machine: &Machine| {
            (
                !Reason::among(deleting(machine), &ON_ITS_WAY),
                self.is_healthy(machine),
                machine.metadata.deletion_timestamp.clone(),
                machine.metadata.name.clone(),
            )
        };
        // One that the cluster cannot do without waits for others to come, and keeps nobody.
        let may_go = |other: &&Machine| is_same(other, machine) || !self.is_kept(other);
        let first = self.leaving().filter(may_go).min_by_key(|other| position(other))?;
        (position(first) < position(machine)).then(|| {
            format!(
                "waits for machine {} to leave first: one control plane or etcd machine changes at a time",
                first.name()
            )
        })
    }

    /// A control plane or etcd machine that leaves, and that the cluster can do without.
    pub fn leaving_in_the_way(&self) -> Option<String> {
        let leaves = self.leaving().find(|machine| !self.is_kept(machine))?;
        Some(format!("waits for machine {} to leave first", leaves.name()))
    }

    /// A run on a control plane or etcd machine other than this one, unless that one is out already.
    pub fn run_in_the_way(&self, machine: Option<&Machine>) -> Option<String> {
        let in_the_way = |host: &String| {
            self.machines.iter().any(|other| {
                let named = other.spec.host_ref.as_ref();
                named.is_some_and(|named| named.name == *host)
                    && machine.is_none_or(|machine| !is_same(other, machine))
                    && !self.is_out(other)
            })
        };
        let run = self.runs.iter().find(|run| {
            !run.spec.intent.changes_nothing() && !attempts::is_over(run) && run.spec.hosts.iter().any(in_the_way)
        })?;
        Some(format!(
            "waits for run {} on {} to end: one control plane or etcd machine changes at a time",
            run.name(),
            run.spec.hosts.join(", ")
        ))
    }
}
