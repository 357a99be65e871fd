//! What is wanted of a member, in it, in the plane, and on the host, in the order in which it is applied.

use crds::KarmadaDeployment;
use crds::karmada_deployment::SyncMode;

use super::super::leaves::LeafWanted;
use super::leaf::{Certificates, Leaf};
use super::manifest::Wanted;
use super::observed::{Basis, Facts, PlaneSeen};
use super::target::Target;
use super::{estimator, pull, push};

/// The objects of a member; those that need what is not there yet (a token, a certificate) are left out.
/// `plane`: what was seen there; a Cluster that was made anew owns the Secrets anew.
pub fn wanted(
    basis: &Basis<'_>,
    target: &Target,
    facts: &Facts,
    certificates: &Certificates,
    plane: &PlaneSeen,
) -> Vec<Wanted> {
    let mut wanted = match target.sync_mode {
        SyncMode::Push => push::wanted(basis.object, target, facts, plane),
        SyncMode::Pull => pull::wanted(basis.object, basis.material, target, facts, &certificates.agent),
    };
    // The namespace of a Pull member's is that of its agent.
    if target.sync_mode == SyncMode::Push || certificates.agent.files.is_some() {
        wanted.extend(estimator::wanted(basis, target, facts, &certificates.estimator));
    }
    wanted.sort_by_key(|one| one.stage);
    wanted
}

/// The certificate that is wanted for a member.
pub fn leaf_wanted(object: &KarmadaDeployment, leaf: Leaf, member: &str) -> LeafWanted {
    match leaf {
        Leaf::Agent => pull::leaf(member),
        Leaf::Estimator => estimator::leaf(object, member),
    }
}
