//! The machines of a plane with mode `Binary`, as far as what is wanted of it follows from them.

use std::collections::BTreeMap;

use crds::{ClusterDeployment, Host, Machine, MachineSet, PlaybookRun};
use jiff::Timestamp;

use super::component::Component;

/// What was observed of a plane's machines; nothing of a plane in Pods.
#[derive(Clone, Copy, Debug, Default)]
pub struct MachinesSeen<'a> {
    /// When an operator took the metadata cluster up again; `None`: it never was away.
    pub resumed_at: Option<Timestamp>,
    /// Its MachineSets, and others that have a name that it needs.
    pub sets: &'a [&'a MachineSet],
    /// Its Machines.
    pub machines: &'a [&'a Machine],
    /// Hosts of the namespace.
    pub hosts: &'a [&'a Host],
    /// Its runs.
    pub runs: &'a [&'a PlaybookRun],
    /// ClusterDeployments of every namespace: one of them may have the address of its endpoint.
    pub deployments: &'a [&'a ClusterDeployment],
}

/// A machine with all components that has a Host and stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Name of its Machine.
    pub machine: String,
    /// Name of its Host.
    pub host: String,
    /// Its address, for the other machines and for clients.
    pub address: String,
    /// Whether it has been made part of the plane.
    pub is_provisioned: bool,
}

/// What certificates, files and versions follow from. Read before certificates are made, and before it is known what
/// is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seats {
    /// The machines with all components, by ordinal and name.
    pub control_planes: Vec<Seat>,
    /// URLs of the members of an etcd on machines of its own; none: each machine has a member, or etcd is external.
    pub etcd: Vec<String>,
    /// Whether a machine has an API server, and what leads to it from the endpoint: before, nobody answers there.
    pub is_served: bool,
    /// Whether a machine has estimators of members.
    pub has_estimators: bool,
    /// The newest version of each component that a run has brought to a machine.
    pub versions: BTreeMap<Component, String>,
}
