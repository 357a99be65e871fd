//! All objects that are wanted, on the host and in the plane, in the order in which they are applied.

mod api_services;
pub(super) mod definitions;
mod host;
mod namespaces;
mod roles;
mod webhooks;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::KarmadaDeployment;

use super::component::Component;
use super::material::{Material, sources};
use super::names::{MEMBERS_NAMESPACE, PLANE_NAMESPACE};
use super::place::{Stage, Wanted};
use super::release::Release;
use crate::cluster_addon::documents::Document;
use namespaces::namespace;

/// All objects that are wanted. While keys or certificates are missing: those that need none, without which it is not
/// known what certificates are for.
pub fn wanted(object: &KarmadaDeployment, material: &Material, definitions: &[Document]) -> Vec<Wanted> {
    let mut wanted = host::foundation(object);
    let (Some(release), Some(authority)) = (Release::wanted(&object.spec), authority(material)) else {
        return wanted;
    };
    let missing = |source: &super::material::Source| !material.secrets.contains_key(&source.name);
    let Some(components) = host::components(object, release, material).filter(|_| !sources(object).iter().any(missing))
    else {
        return wanted;
    };
    wanted.extend(host::pull_secrets(object, material));
    wanted.extend(components);
    wanted.extend(
        [PLANE_NAMESPACE, MEMBERS_NAMESPACE].map(|name| Wanted::in_plane(Stage::Namespaces, namespace(object, name))),
    );
    wanted.extend(definitions::definitions(object, definitions, &authority));
    wanted.extend(roles::roles(object));
    let served = [Component::AggregatedApiServer, Component::Search, Component::MetricsAdapter];
    for component in served.into_iter().filter(|component| component.replicas(&object.spec).is_some()) {
        wanted.extend(api_services::api_services(object, component, &authority));
    }
    wanted.extend(webhooks::configurations(object, &authority));
    wanted.sort_by_key(|one| one.stage);
    wanted
}

/// The trusted authorities in base64, as the API server is given them; none: they are not there.
fn authority(material: &Material) -> Option<String> {
    material.keys.as_ref()?.get("ca.crt").map(|pem| STANDARD.encode(pem))
}
