//! What a KarmadaDeployment's PKI has to know of it.

use crds::KarmadaDeployment;
use plan::karmada_deployment::LeafWanted;
use plan::karmada_deployment::pki::{TABLE, missing};

use crate::kubeconfig::Administrator;
use crate::pki::PkiOwner;
use crate::pki::authority::Leaf;
use crate::pki::leaves::LeafRow;

/// Who administers a plane. What it may do beside all else is bound to this very name.
pub(super) const ADMINISTRATOR: Administrator = Administrator { common_name: "system:admin", user: "admin" };

/// The KarmadaDeployment as the owner of its PKI.
pub(crate) fn pki_owner(object: &KarmadaDeployment) -> PkiOwner {
    let certificates = &object.spec.certificates;
    PkiOwner {
        missing: missing(object),
        own_authorities: certificates.ca_ref.as_ref().map(|reference| reference.name.clone()),
        ..PkiOwner::new("plane", object, TABLE, certificates.into())
    }
}

/// A certificate as the PKI issues it.
pub(super) fn row(wanted: &LeafWanted) -> LeafRow {
    LeafRow {
        stem: wanted.stem.clone(),
        signer: wanted.signer,
        leaf: Leaf {
            common_name: wanted.common_name.clone(),
            organization: wanted.organization,
            dns_names: wanted.dns_names.clone(),
            addresses: wanted.addresses.clone(),
            serves: wanted.serves,
        },
    }
}
