//! A Machine of a cluster, with the Host that it holds.

use crate::lifecycle::is_provisioned;
use crds::Conditions;
use crds::ObjectExt;
use crds::Reason;
use crds::{Host, Machine, conditions, names};
use jiff::Timestamp;

/// A Machine with the Host that it holds.
#[derive(Clone, Copy)]
pub(super) struct ClusterMachine<'a> {
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
