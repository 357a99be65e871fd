//! For whom members are looked at, and by what.

use crds::KarmadaDeployment;
use jiff::Timestamp;
use plan::karmada_deployment::members::{Basis, EstimatorDue};
use plan::karmada_deployment::{HostSeen, Material};

use super::super::inventory::Inventory;
use crate::pki::Pki;

/// For whom members are looked at, and by what.
pub(in crate::karmada_deployment) struct Asked<'a> {
    /// The KarmadaDeployment.
    pub object: &'a KarmadaDeployment,
    /// What is secret of it.
    pub material: &'a Material,
    /// Its authorities; none: they are not there.
    pub pki: Option<&'a Pki>,
    /// The look at the host; none: there is no contact.
    pub on_host: Option<&'a Inventory<'a>>,
    /// What was seen there; none: it does not answer.
    pub host: Option<&'a HostSeen>,
    /// In which version estimators are.
    pub estimators: EstimatorDue,
    /// The look at the plane; none: there is no kubeconfig.
    pub in_plane: Option<&'a Inventory<'a>>,
    /// The time.
    pub now: Timestamp,
}

impl<'a> Asked<'a> {
    /// What follows from the plane for every member.
    pub fn basis(&'a self) -> Basis<'a> {
        let Self { object, material, host, estimators, .. } = self;
        Basis { object, material, host: *host, estimators }
    }
}
