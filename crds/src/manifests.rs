//! The CustomResourceDefinitions, as they are installed.

mod decodable;

pub use decodable::DATE_TIME;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::{Cluster, ClusterDeployment, Host, Machine, MachineSet, PlaybookRun, RemediationPolicy};

mod meanings;

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
    let meanings = meanings::all();
    for version in definitions
        .iter_mut()
        .flat_map(|definition| &mut definition.spec.versions)
    {
        let schema = version.schema.as_mut();
        if let Some(schema) = schema.and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            meanings::explain(schema, &meanings);
        }
    }
    definitions.iter_mut().for_each(decodable::narrow);
    definitions
}
