//! What makes the objects say what the machines do, once what contradicts was approved. Nothing is reset by that.

use crds::host::{Quarantine, QuarantineReason};
use crds::names::finalizer;
use crds::{ClusterKind, Host, Machine, ObjectExt};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::comparison::{Comparison, path};
use super::contradiction::{Contradiction, Differs};
use crate::message::cut;

/// One change of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Adoption {
    /// Delete this very Machine, whose Host another one has.
    DeleteMachine(Box<Machine>),
    /// Raise the claim epoch of this Host above what its machine knows, if nobody has written the Host since it was
    /// read.
    RaiseEpoch {
        /// The Host, as it was read.
        host: Box<Host>,
        /// `spec.claimEpoch` from now on.
        epoch: i64,
    },
    /// Take the claim off this Host, whose machine has another one, if nobody has written the Host since it was read.
    ReleaseClaim {
        /// The Host, as it was read.
        host: Box<Host>,
        /// `spec.claimEpoch` from now on.
        epoch: i64,
        /// Finalizers of the Host from now on.
        finalizers: Vec<String>,
        /// What keeps it out of the pool until it is known to be clean.
        quarantine: Box<Quarantine>,
    },
}

/// All of them; none while something is yet to be looked at or approved. `object`: of what forms the cluster, which has
/// these machines.
pub fn adopt(comparison: &Comparison<'_>, object: &ObjectMeta, machines: &[&Machine], now: Timestamp) -> Vec<Adoption> {
    if comparison.holds() {
        return Vec::new();
    }
    let differing = comparison.contradictions.iter().filter(|found| found.differs != Differs::Token);
    differing.flat_map(|found| of_host(found, &path(object), machines, now)).collect()
}

fn of_host(found: &Contradiction<'_>, cluster: &str, machines: &[&Machine], now: Timestamp) -> Vec<Adoption> {
    let host = found.host;
    let is_claimed = host.spec.claim_ref.is_some();
    if is_claimed && found.is_of(cluster) {
        // It serves the same cluster under a claim that is not known here: the Machine keeps it, under a later one.
        let epoch = found.fence.epoch.saturating_add(1);
        return vec![Adoption::RaiseEpoch { host: Box::new(host.clone()), epoch }];
    }
    let claim = host.spec.claim_ref.as_ref();
    let machine = claim.and_then(|claim| machines.iter().copied().find(|machine| machine.uid() == claim.uid));
    let leaves = machine.filter(|machine| !machine.is_deleting());
    let finalizers = host.metadata.finalizers.iter().flatten();
    let release = Adoption::ReleaseClaim {
        host: Box::new(host.clone()),
        epoch: host.spec.claim_epoch.max(found.fence.epoch),
        finalizers: finalizers.filter(|there| *there != finalizer::HOST).cloned().collect(),
        quarantine: Box::new(quarantine(found, machine, now)),
    };
    leaves.map(|machine| Adoption::DeleteMachine(Box::new(machine.clone()))).into_iter().chain([release]).collect()
}

/// Neither its cluster nor its role is given: the Node of that name in the cluster may be the machine's own.
fn quarantine(found: &Contradiction<'_>, machine: Option<&Machine>, now: Timestamp) -> Quarantine {
    let name = machine.map(|machine| machine.name().to_owned());
    Quarantine {
        reason: QuarantineReason::StoreIsOlder,
        message: cut(format!("the metadata cluster was older than {}", found.message())),
        machine: name.unwrap_or_else(|| "unknown".into()),
        machine_set: None,
        machine_uid: machine.map(|machine| machine.uid().to_owned()),
        cluster_name: None,
        cluster_kind: ClusterKind::default(),
        role: None,
        fence: None,
        since: Time(now),
    }
}
