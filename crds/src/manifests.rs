//! The CustomResourceDefinitions, as they are installed.

mod decodable;

pub use decodable::DATE_TIME;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::{Cluster, ClusterDeployment, Host, Machine, MachineSet, PlaybookRun, RemediationPolicy};

/// Every CustomResourceDefinition of the group.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut definitions = vec![
        Host::crd(),
        ClusterDeployment::crd(),
        MachineSet::crd(),
        Machine::crd(),
        Cluster::crd(),
        PlaybookRun::crd(),
        RemediationPolicy::crd(),
    ];
    definitions.iter_mut().for_each(decodable::narrow);
    definitions
}
