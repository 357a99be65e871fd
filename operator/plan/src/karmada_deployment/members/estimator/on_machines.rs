//! The estimator of a member of a plane on machines: what its services are given, and the Service in the plane by which
//! the scheduler finds the one beside it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::super::contents::Files;
use super::super::super::files::File;
use super::super::super::given_estimator::{GivenEstimator, ports};
use super::super::super::machines::estimators::path;
use super::super::super::names::PLANE_NAMESPACE;
use super::super::super::programs::ESTIMATOR_PORT;
use super::super::leaf::Certificate;
use super::super::manifest::metadata;
use super::super::observed::{Basis, Facts};
use super::super::target::Target;
use super::files::files;
use super::wish::{is_wanted, name};

/// The Service, once it is known at which port the estimator is asked. The scheduler reads it in the plane before it
/// looks any name up: an ExternalName, with the port that it asks for, leads to another port.
pub(super) fn service(basis: &Basis<'_>, target: &Target) -> Option<Value> {
    let (object, given) = (basis.object, basis.material.estimators.get(&target.name)?);
    let port = json!({ "name": "grpc", "port": ESTIMATOR_PORT, "targetPort": given.port, "protocol": "TCP" });
    Some(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": metadata(object, target, &name(object, &target.name), Some(PLANE_NAMESPACE)),
        "spec": { "type": "ExternalName", "externalName": "localhost", "ports": [port] },
    }))
}

/// What it is to be given; none: its token or its certificate is not there yet, or all ports are taken.
pub(in super::super) fn given(
    basis: &Basis<'_>,
    (roster, target): (&[Target], &Target),
    facts: &Facts,
    certificate: &Certificate,
) -> Option<GivenEstimator> {
    let (object, kept) = (basis.object, &basis.material.estimators);
    let names = roster.iter().filter(|one| is_wanted(object, one)).map(|one| one.name.as_str());
    let port = *ports(names, kept).get(target.name.as_str())?;
    let files = files(basis, facts, certificate, |file| path(&target.name, file))?;
    let named = |file: File| (file.flat_name(), file.into_content());
    let files: BTreeMap<String, Vec<u8>> = files.into_iter().map(named).collect();
    Some(GivenEstimator { port, files: Files(files) })
}
