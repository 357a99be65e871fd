//! What a ClusterDeployment's PKI has to know of it.

use crds::ClusterDeployment;
use plan::cluster_deployment::pki::{TABLE, missing};
use plan::encryption::Scheme;

use crate::pki::PkiOwner;

/// The ClusterDeployment as the owner of its PKI.
pub(crate) fn pki_owner(deployment: &ClusterDeployment) -> PkiOwner {
    let certificates = &deployment.spec.certificates;
    PkiOwner {
        encryption: Scheme::wanted(deployment.spec.encryption.as_ref()),
        own_authorities: certificates.ca_ref.as_ref().map(|reference| reference.name.clone()),
        missing: missing(deployment),
        ..PkiOwner::new("cluster", deployment, TABLE, certificates.into())
    }
}
