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
use crds::karmada_deployment::KarmadaRestoreStep;

use super::component::Component;
use super::machines;
use super::material::{Material, sources};
use super::names::{MEMBERS_NAMESPACE, PLANE_NAMESPACE};
use super::observed::HostFacts;
use super::place::{Hold, Stage, Wanted};
use super::probe;
use super::release::Release;
use super::restore::data;
use super::restoring::{Restoring, is_later, restoring};
use super::upgrade::{Due, Upgrade, find};
use crate::cluster_addon::documents::Document;
pub(super) use namespaces::namespace;

/// All objects that are wanted. While keys or certificates are missing: those that need none, without which it is not
/// known what certificates are for. During an upgrade each is as the step wants it that is under way.
pub fn wanted(
    object: &KarmadaDeployment,
    material: &Material,
    facts: &HostFacts,
    definitions: &[Document],
) -> Vec<Wanted> {
    let is_on_machines = object.spec.binary.as_ref().is_some();
    let mut wanted = if is_on_machines { Vec::new() } else { host::foundation(object) };
    let (Some(release), Some(authority)) = (Release::wanted(&object.spec), authority(material)) else {
        return wanted;
    };
    if let Some(Restoring::Under(record, step @ (KarmadaRestoreStep::Stop | KarmadaRestoreStep::Data))) =
        restoring(object, &facts.versions)
    {
        if is_on_machines {
            return wanted;
        }
        wanted.extend(host::pull_secrets(object, material));
        let given = material.restore.as_ref().filter(|_| step == KarmadaRestoreStep::Data);
        let data = given.map(|given| data::wanted(object, release, given, record));
        wanted.extend(data.into_iter().flatten());
        wanted.sort_by_key(|one| one.stage);
        return wanted;
    }
    let upgrade = find(object, facts);
    let due = |component: Component| match is_later(object, &facts.versions, component) {
        true => Due::Later,
        false => upgrade.as_ref().map_or(Due::Now, |upgrade| upgrade.due(object, component)),
    };
    let missing = |source: &super::material::Source| !material.secrets.contains_key(&source.name);
    if sources(object).iter().any(missing) {
        return wanted;
    }
    match is_on_machines {
        true if !machines::has_all_files(object, material, &facts.seats) => return wanted,
        true => {}
        false => {
            let Some(components) = host::components(object, release, (material, facts), due) else { return wanted };
            wanted.extend(host::pull_secrets(object, material));
            wanted.extend(components);
        }
    }
    wanted.extend(
        [PLANE_NAMESPACE, MEMBERS_NAMESPACE].map(|name| Wanted::in_plane(Stage::Namespaces, namespace(object, name))),
    );
    let hold = upgrade.as_ref().map_or(Hold::Free, Upgrade::definitions);
    wanted.extend(definitions::definitions(object, definitions, &authority).into_iter().map(|one| one.held(hold)));
    wanted.extend(roles::roles(object));
    let served = [Component::AggregatedApiServer, Component::Search, Component::MetricsAdapter];
    let is_there = |component: &Component| component.replicas(&object.spec).is_some() && due(*component) != Due::Later;
    for component in served.into_iter().filter(is_there) {
        wanted.extend(api_services::api_services(object, component, &authority));
    }
    let (asked, hold) = upgrade.as_ref().map_or((vec![release], Hold::Free), |upgrade| upgrade.webhooks(release));
    wanted.extend(webhooks::configurations(object, &authority, &asked).into_iter().map(|one| one.held(hold)));
    if probe::is_probed(object, facts) {
        wanted.extend(probe::wanted(object));
    }
    wanted.sort_by_key(|one| one.stage);
    wanted
}

/// The trusted authorities in base64, as the API server is given them; none: they are not there.
fn authority(material: &Material) -> Option<String> {
    material.keys.as_ref()?.get("ca.crt").map(|pem| STANDARD.encode(pem))
}
