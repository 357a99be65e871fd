//! What the planner of KarmadaDeployments looks at.

use std::collections::BTreeMap;

use crds::cluster::ComponentHealth;
use crds::{Cluster, EtcdBackup, EtcdBackupSchedule, EtcdRestore, KarmadaDeployment};
use jiff::Timestamp;
use serde_json::Value;

use super::component::Component;
use super::contact::Contact;
use super::etcd::EtcdSeen;
use super::host_seen::HostSeen;
use super::material::Material;
use super::members;
use super::probe_seen::ProbeSeen;
use super::restore_seen::RestoreSeen;
use super::seats::{MachinesSeen, Seats};
use crate::addon::Problem;
use crate::cluster_addon::State;
use crate::cluster_addon::documents::Document;

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// The KarmadaDeployment.
    pub object: &'a KarmadaDeployment,
    /// The Cluster of `spec.hostClusterRef`.
    pub host_cluster: Option<&'a Cluster>,
    /// All other KarmadaDeployments, of every namespace.
    pub others: &'a [&'a KarmadaDeployment],
    /// A ClusterDeployment of this name in the namespace, or a Cluster that was not made for the plane, in words: their
    /// Secrets would have the same names.
    pub namesake: Option<&'a str>,
    /// What is secret.
    pub material: &'a Material,
    /// The CustomResourceDefinitions of the bundle's entry; or why they cannot be had.
    pub crds: Result<&'a [Document], &'a Problem>,
    /// What the host cluster says of how the API server is reached.
    pub facts: &'a HostFacts,
    /// The server of the kubeconfig in the Secret `<name>-kubeconfig`, if it is still good.
    pub kubeconfig: Option<&'a str>,
    /// What was seen on the host cluster.
    pub host: &'a Contact<HostSeen>,
    /// What was seen in the plane.
    pub plane: &'a Contact<PlaneSeen>,
    /// The Cluster of this name in the namespace, if it was made for the plane, as `is_cluster_of` says.
    pub cluster: Option<&'a Cluster>,
    /// The EtcdBackups that refer to it.
    pub backups: &'a [&'a EtcdBackup],
    /// The EtcdBackupSchedules that refer to it.
    pub schedules: &'a [&'a EtcdBackupSchedule],
    /// The EtcdRestores that refer to it.
    pub restores: &'a [&'a EtcdRestore],
    /// What was seen of the backup that it begins with, or is set back to.
    pub restore: &'a RestoreSeen,
    /// What was seen of its members.
    pub members: members::Seen<'a>,
    /// What was observed of its machines, where it is on machines.
    pub machines: MachinesSeen<'a>,
}

/// What the host cluster says of how the API server is reached, and of what runs there. Read before certificates are
/// made, and before it is known what is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostFacts {
    /// The Service `names::api_server_service` in the host namespace, as it is; `None`: it is not there.
    pub service: Option<Value>,
    /// The versions of the workloads in the host namespace, as `running_versions` reads them; of a plane on machines
    /// those of its seats.
    pub versions: BTreeMap<Component, String>,
    /// The machines of a plane on machines.
    pub seats: Seats,
    /// What is seen of an etcd in Pods.
    pub etcd: EtcdSeen,
}

impl HostFacts {
    /// Those of a plane on machines.
    pub fn of_machines(seats: Seats) -> Self {
        Self { versions: seats.versions.clone(), seats, ..Self::default() }
    }
}

/// What was seen in the plane.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlaneSeen {
    /// How each object of `wanted()` is whose place is the plane, in their order, as a dry run says.
    pub states: Vec<State>,
    /// All objects of `removal::KINDS_OF_PLANE` with the label `names::selector`, of every namespace. `apiVersion` and
    /// `kind` are set.
    pub listed: Vec<Value>,
    /// The leaders of `leases()`, by `cluster::components::from_lease`.
    pub leaders: Vec<ComponentHealth>,
    /// Why the policy of `trial_policy()` is refused when it is created by a dry run; `None`: it is admitted.
    pub policy_refused: Option<String>,
    /// What is propagated; `None`: nobody has asked, which is so while `is_upgrading()` says no.
    pub propagated: Option<Propagated>,
    /// What was seen of the probe; `None`: nobody has asked, which is so while `is_probed()` says no.
    pub probe: Option<ProbeSeen>,
    /// The namespace of the probe, of a plane that it is to be removed from, as `is_left_without_probe()` says.
    pub left: Option<Value>,
}

/// What a plane propagates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Propagated {
    /// How many Works there are, of all members.
    pub works: usize,
    /// How many Works, ResourceBindings and ClusterResourceBindings are being deleted.
    pub terminating: usize,
    /// The first of them: `Work karmada-es-m1/nginx`.
    pub first_terminating: Option<String>,
}
