//! The CustomResourceDefinitions, as they are installed.

mod decodable;

pub use decodable::DATE_TIME;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::for_every_kind;

mod meanings;

/// The kustomization that names the files of all definitions, `<plural>.yaml`.
pub fn kustomization() -> String {
    let mut text = String::from(
        "# Written with the definitions by `make crds`: do not edit it here.\n\
         apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n",
    );
    let mut plurals: Vec<String> = all().into_iter().map(|definition| definition.spec.names.plural).collect();
    plurals.sort();
    for plural in plurals {
        text.push_str(&format!("- {plural}.yaml\n"));
    }
    text
}

macro_rules! definitions {
    ($($kind:ty),+) => { vec![$(<$kind>::crd()),+] };
}

/// Every CustomResourceDefinition of the group.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut definitions = for_every_kind!(definitions);
    let meanings = meanings::all();
    for version in definitions.iter_mut().flat_map(|definition| &mut definition.spec.versions) {
        let schema = version.schema.as_mut();
        if let Some(schema) = schema.and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            meanings::explain(schema, &meanings);
        }
    }
    definitions.iter_mut().for_each(decodable::narrow);
    definitions
}
