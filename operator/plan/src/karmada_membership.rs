//! A cluster that is a member of Karmada control planes: who deletes it waits until it has left them.

use crds::commands::{self, Target};
use crds::karmada_deployment::KarmadaMemberStatus;
use crds::names::annotation;
use crds::{KarmadaDeployment, ObjectExt};

use crate::message::quote;

/// The first of these planes that has begun to make a Cluster its member, of the namespace and the name, and how that
/// stands. `None`: it is no member.
pub fn membership<'a>(
    planes: impl IntoIterator<Item = &'a KarmadaDeployment>,
    namespace: &str,
    cluster: &str,
) -> Option<(&'a KarmadaDeployment, &'a KarmadaMemberStatus)> {
    let is_it = |member: &&KarmadaMemberStatus| {
        let is_reference = member.cluster_ref.as_ref().is_some_and(|reference| reference.name == cluster);
        is_reference && member.cluster_uid.is_some()
    };
    planes.into_iter().filter(|plane| plane.namespace() == namespace).find_map(|plane| {
        let members = &plane.status.as_ref()?.members;
        Some((plane, members.iter().find(is_it)?))
    })
}

/// What is waited for until it has left, and the command that gives it up.
pub(crate) fn waits_for((plane, member): (&KarmadaDeployment, &KarmadaMemberStatus)) -> String {
    let give_up = commands::annotate(
        Target::KarmadaDeployment,
        &plane.metadata,
        annotation::FORCE_REMOVE,
        format!("member.{}", member.name),
    );
    format!(
        "waiting for member {} of KarmadaDeployment {} to leave: {}; to give it up there, {give_up}",
        member.name,
        plane.name(),
        quote(member.message.clone())
    )
}
