//! Machines of a former ClusterDeployment of the same name are reported: nothing is done with them.

use crds::ObjectExt;
use crds::Reason;
use crds::commands::{self, Target};
use crds::conditions::{self, Statement};
use crds::names::condition;
use crds::{ClusterDeploymentStatus, Machine};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observed::Observed;
use crate::message::{count, cut};

/// Machines that are named.
const NAMED: usize = 3;

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
