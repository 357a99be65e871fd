//! The Machines of a cluster, each with the Host that it holds, whatever object forms the cluster.

use std::collections::BTreeMap;

use crds::Conditions;
use crds::ObjectExt;
use crds::Reason;
use crds::step::Role;
use crds::{Host, Machine, conditions, names};
use jiff::Timestamp;

use crate::lifecycle::is_provisioned;
use crate::{claims, machine_set};

/// A Machine with the Host that it holds.
#[derive(Clone, Copy)]
pub(crate) struct ClusterMachine<'a> {
    pub machine: &'a Machine,
    /// The Host, when its claim is the Machine's.
    pub host: Option<&'a Host>,
}

impl<'a> ClusterMachine<'a> {
    pub fn name(&self) -> &'a str {
        self.machine.name()
    }

    pub fn uid(&self) -> &'a str {
        self.machine.uid()
    }

    pub fn deleted_at(&self) -> Option<Timestamp> {
        let deleted = self.machine.metadata.deletion_timestamp.as_ref();
        deleted.map(|time| time.0)
    }

    pub fn host_name(&self) -> Option<&'a str> {
        self.host.and_then(|host| host.metadata.name.as_deref())
    }

    /// Whether it has been made part of its cluster.
    pub fn is_provisioned(&self) -> bool {
        is_provisioned(self.machine)
    }

    /// Where its removal stands.
    pub fn deleting_reason(&self) -> Option<&'a str> {
        let deleting = self.machine.condition(names::condition::DELETING)?;
        (deleting.status == "True").then_some(deleting.reason.as_str())
    }

    pub fn is_ready(&self) -> bool {
        self.condition(names::condition::READY).is_some_and(|status| status == "True")
    }

    pub fn condition(&self, type_: &str) -> Option<&'a str> {
        let status = self.machine.status.as_ref()?;
        conditions::find(&status.conditions, type_).map(|condition| condition.status.as_str())
    }

    pub fn ready_reason(&self) -> &'a str {
        let ready = self.machine.condition(names::condition::READY);
        ready.map_or(Reason::Unknown.as_str(), |ready| ready.reason.as_str())
    }

    pub fn says(&self) -> &'a str {
        let status = self.machine.status.as_ref();
        status.and_then(|status| status.message.as_deref()).unwrap_or("not looked at yet")
    }

    /// `prod-a-workers-x7k2 (rack3-node07)`.
    pub fn title(&self) -> String {
        match self.host_name() {
            Some(host) => format!("{} ({host})", self.name()),
            None => self.name().to_owned(),
        }
    }
}

/// The Machines that stay and those that are being deleted, each by role, ordinal and name. A Host is a Machine's when
/// both sides say so; one that leaves lets go of what it holds.
pub(crate) fn gather<'a>(
    machines: &[&'a Machine],
    hosts: &[&'a Host],
) -> (Vec<ClusterMachine<'a>>, Vec<ClusterMachine<'a>>) {
    let mut holders: BTreeMap<&str, &'a Host> = BTreeMap::new();
    for host in hosts.iter().copied() {
        if let Some(claim) = &host.spec.claim_ref {
            holders.insert(&claim.uid, host);
        }
    }
    let with_host = |machine: &'a Machine| {
        let host = holders.get(machine.uid()).copied();
        let named = machine.spec.host_ref.as_ref().map(|host| host.name.as_str());
        let agrees = |host: &&Host| {
            claims::holds(machine, host) && (machine.is_deleting() || named == host.metadata.name.as_deref())
        };
        ClusterMachine { machine, host: host.filter(agrees) }
    };
    let mut all: Vec<ClusterMachine<'a>> = machines.iter().copied().map(with_host).collect();
    all.sort_by_key(|member| (member.machine.spec.role, machine_set::ordinal_of(member.machine), member.name()));
    all.into_iter().partition(|member| !member.machine.is_deleting())
}

/// The role whose machines go now, where a whole cluster is deleted; those of others wait for them.
pub(crate) fn first_role_to_leave(leaving: &[ClusterMachine<'_>]) -> Option<Role> {
    let order = |role: &Role| match role {
        Role::Worker => 0,
        Role::ControlPlane => 1,
        Role::Etcd => 2,
    };
    leaving.iter().map(|member| member.machine.spec.role).min_by_key(order)
}
