//! Machines of a former ClusterDeployment of the same name: one that was let go without its Machines, by taking
//! finalizers off. They name this cluster and are no part of it: nothing is done with them, and they are reported.

use crds::ObjectExt;
use crds::Reason;
use crds::commands::{self, Target};
use crds::conditions::{self, Statement};
use crds::names::{annotation, condition};
use crds::{ClusterDeployment, ClusterDeploymentStatus, Machine, MachineSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observed::Observed;
use crate::message::{count, cut};

/// Machines that are named.
const NAMED: usize = 3;

/// Whether the Machine was made for another ClusterDeployment than this one. One that a set made is never older than
/// the cluster, and its set is the cluster's. One that no set made is a platform's, which may have made it first: it
/// was part of another cluster if it joined before there was this one.
pub fn is_former(machine: &Machine, deployment: &ClusterDeployment, sets: &[&MachineSet]) -> bool {
    let metadata = &machine.metadata;
    let owner = metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    let ordinal = metadata.annotations.as_ref().is_some_and(|all| all.contains_key(annotation::ORDINAL));
    let since = deployment.created_at();
    let is_before = |time: Option<&Time>| time.zip(since).is_some_and(|(time, since)| time < since);
    if owner.is_none() && !ordinal {
        let status = machine.status.as_ref();
        return is_before(status.and_then(|status| status.provisioned_at.as_ref()));
    }
    let set = owner.and_then(|owner| {
        let mut sets = sets.iter();
        sets.find(|set| set.metadata.uid.as_ref() == Some(&owner.uid))
    });
    let of_another = set.is_some_and(|set| {
        let mut owners = set.metadata.owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.controller == Some(true));
        owner.is_some_and(|owner| Some(&owner.uid) != deployment.metadata.uid.as_ref())
    });
    of_another || is_before(metadata.creation_timestamp.as_ref())
}

/// States which there are, while there are any.
pub(super) fn tell(observed: &Observed<'_>, former: &[&Machine], status: &mut ClusterDeploymentStatus) {
    let metadata = &observed.deployment.metadata;
    let Some(first) = former.first() else {
        status.conditions.retain(|there| there.type_ != condition::FORMER_MACHINES);
        return;
    };
    let name = |machine: &Machine| machine.name().to_owned();
    let all: Vec<String> = former.iter().map(|machine| name(machine)).collect();
    let mut names: Vec<&str> = all.iter().map(String::as_str).collect();
    let namespace = first.namespace();
    names.sort_unstable();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.truncate(NAMED);
    let message = format!(
        "{} of a former ClusterDeployment {} (another UID): {}{more}; they are not part of this cluster, and nothing is done with them. Delete them, which gives their Hosts back without cleaning them: {}",
        count(former.len(), "Machine"),
        metadata.name.as_deref().unwrap_or_default(),
        names.join(", "),
        commands::delete_all(Target::Machine, namespace, &names)
    );
    let statement = Statement::new(condition::FORMER_MACHINES, true, Reason::MachinesOfFormerCluster, cut(message));
    status.conditions = conditions::state(&status.conditions, &[statement], metadata.generation, &Time(observed.now));
}
