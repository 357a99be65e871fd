//! What is wanted of a member, in it and in the plane, in the order in which it is applied.

use crds::karmada_deployment::SyncMode;
use crds::{KarmadaDeployment, ObjectExt};

use super::super::material::Material;
use super::manifest::Wanted;
use super::observed::{AgentCertificate, Facts, PlaneSeen};
use super::target::Target;
use super::{pull, push};

/// The objects of a member; those that need what is not there yet (a token, a certificate) are left out.
/// `plane`: what was seen there; a Cluster that was made anew owns the Secrets anew.
pub fn wanted(
    object: &KarmadaDeployment,
    material: &Material,
    target: &Target,
    facts: &Facts,
    agent: &AgentCertificate,
    plane: &PlaneSeen,
) -> Vec<Wanted> {
    let mut wanted = match target.sync_mode {
        SyncMode::Push => push::wanted(object, target, facts, plane),
        SyncMode::Pull => pull::wanted(object, material, target, facts, agent),
    };
    wanted.sort_by_key(|one| one.stage);
    wanted
}

/// Name of the Secret with the certificate of a member's agent, in the object's namespace.
pub fn agent_secret(object: &KarmadaDeployment, member: &str) -> String {
    format!("{}-agent-{member}", object.name())
}
