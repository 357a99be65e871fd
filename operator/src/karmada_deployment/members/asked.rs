//! For whom members are looked at, and by what.

use crds::KarmadaDeployment;
use jiff::Timestamp;
use plan::karmada_deployment::Material;

use super::super::inventory::Inventory;
use crate::objects::Objects;
use crate::pki::Pki;

/// For whom members are looked at, and by what.
pub(in crate::karmada_deployment) struct Asked<'a> {
    /// The KarmadaDeployment.
    pub object: &'a KarmadaDeployment,
    /// What is secret of it.
    pub material: &'a Material,
    /// Its authorities; none: they are not there.
    pub pki: Option<&'a Pki>,
    /// The objects of the host; none: there is no contact.
    pub on_host: Option<&'a Objects>,
    /// The look at the plane; none: there is no kubeconfig.
    pub in_plane: Option<&'a Inventory<'a>>,
    /// The time.
    pub now: Timestamp,
}
