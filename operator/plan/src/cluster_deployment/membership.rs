//! A cluster that is a member of Karmada control planes leaves them before it is deleted: later nobody could take the
//! plane's rights and its agent away, and the plane would go on counting on it.

use crds::commands::{self, Target};
use crds::karmada_deployment::KarmadaMemberStatus;
use crds::names::annotation;
use crds::{KarmadaDeployment, ObjectExt};

use super::observed::Observed;
use crate::message::quote;

/// The first plane that the cluster is still a member of, and what it says of that; none: it is no member.
pub(super) fn waits_for(observed: &Observed<'_>) -> Option<String> {
    let (plane, member) = observed.planes.iter().find_map(|plane| Some((*plane, member(plane, observed)?)))?;
    let give_up = commands::annotate(
        Target::KarmadaDeployment,
        &plane.metadata,
        annotation::FORCE_REMOVE,
        format!("member.{}", member.name),
    );
    Some(format!(
        "waiting for member {} of KarmadaDeployment {} to leave: {}; to give it up there, {give_up}",
        member.name,
        plane.name(),
        quote(member.message.clone())
    ))
}

/// What a plane of the same namespace has made of the cluster, if it has begun to.
fn member<'a>(plane: &'a KarmadaDeployment, observed: &Observed<'_>) -> Option<&'a KarmadaMemberStatus> {
    let (namespace, name) = (observed.deployment.namespace(), observed.deployment.name());
    let status = plane.status.as_ref().filter(|_| plane.namespace() == namespace)?;
    status.members.iter().find(|member| {
        let is_it = member.cluster_ref.as_ref().is_some_and(|cluster| cluster.name == name);
        is_it && member.cluster_uid.is_some()
    })
}
