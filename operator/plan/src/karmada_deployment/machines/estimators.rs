//! The estimators of all members as one part of each machine: a service for each member, the same on all machines. A
//! scheduler asks those beside it, at `localhost`, each at a port of its own. One run brings them all, and touches
//! those alone that are others than before: what it takes is the same whether one member changes or fifty.

use crds::KarmadaDeployment;
use serde_json::{Map, Value, json};

use super::super::component::Component;
use super::super::files::flat;
use super::super::given_estimator::GivenEstimator;
use super::super::material::Material;
use super::super::place::Stage;
use super::super::programs::container;
use super::super::release::Release;
use super::super::upgrade::Due;
use super::order::Part;
use super::part_wanted::{Basis, PartWanted, working};
use super::placed::placed;
use super::service::{FILES, PROGRAMS, Service, arguments_on_machine};
use super::state::PlaneState;
use crate::naming::short_hash;

/// The variable of a run that has them.
pub(super) const VARIABLE: &str = "karmada_estimators";

/// The directory of the files of a member's estimator on a machine.
pub(in super::super) fn directory(member: &str) -> String {
    format!("{FILES}/estimator-{member}")
}

/// The name of a member's unit.
fn unit(member: &str) -> String {
    format!("clusterwright-karmada-estimator-{member}.service")
}

/// Where a machine has a file of a member's estimator.
pub(in super::super) fn path(member: &str, file: &str) -> String {
    format!("{}/{}", directory(member), flat(file))
}

/// The part, as it is wanted; none: no member has an estimator, and no machine one that is to go, or an upgrade comes
/// to them later.
pub(super) fn part(state: &PlaneState<'_>, basis: &Basis<'_>) -> Option<PartWanted> {
    let (object, component) = (basis.object, Component::Estimator);
    let due = basis.upgrade.map_or(Due::Now, |upgrade| upgrade.due(object, component));
    let (version, is_held) = match due {
        Due::Now => (component.version(&object.spec, basis.release), false),
        Due::Kept(version) | Due::Stopped(version) => (version, true),
        Due::Later => return None,
    };
    let services = services(object, basis.release, &version, basis.material);
    let digest = digest(&version, &services);
    let mut wanted = PartWanted { is_held, ..PartWanted::new(Stage::Estimators, Part::Estimators) };
    let mut is_there = false;
    for seat in working(basis) {
        let machine = state.live.iter().find(|member| member.name() == seat.machine);
        let now = machine.and_then(|machine| placed(machine, Part::Estimators, state.seen.runs));
        is_there |= now.is_some();
        // What an upgrade has yet to come to stays as it is.
        let digest = now.filter(|_| is_held).map_or_else(|| digest.clone(), |placed| placed.digest);
        wanted.digests.insert(seat.machine.clone(), digest);
    }
    if services.is_empty() && !is_there {
        return None;
    }
    wanted.program = Some(json!({ "name": component.name(), "version": version }));
    wanted.vars.insert(VARIABLE.to_owned(), json!({ "digest": digest, "services": variables(&services) }));
    Some(wanted)
}

/// The digest that machines are to have of them in this version.
pub(super) fn wanted_digest(
    object: &KarmadaDeployment,
    release: &Release,
    version: &str,
    material: &Material,
) -> String {
    digest(version, &services(object, release, version, material))
}

fn digest(version: &str, services: &[(String, Service, Map<String, Value>)]) -> String {
    let words: Vec<&str> =
        services.iter().flat_map(|(member, service, _)| [member.as_str(), service.digest.as_str()]).collect();
    format!("{version}-{}", short_hash(&words, 16))
}

/// The service of each member, with its files: which of the run's secrets each is.
fn services(
    object: &KarmadaDeployment,
    release: &Release,
    version: &str,
    material: &Material,
) -> Vec<(String, Service, Map<String, Value>)> {
    let service = |(member, given): (&String, &GivenEstimator)| {
        let files = given.files.0.keys().map(|name| (name.clone(), json!(secret_key(member, name))));
        (member.clone(), service(object, release, version, (member, given)), files.collect())
    };
    material.estimators.iter().map(service).collect()
}

fn service(
    object: &KarmadaDeployment,
    release: &Release,
    version: &str,
    (member, given): (&str, &GivenEstimator),
) -> Service {
    let (component, directory) = (Component::Estimator, directory(member));
    let local = format!("127.0.0.1:{}", given.health_port());
    let own = [
        ("cluster-name", member.to_owned()),
        ("server-port", given.port.to_string()),
        // At the same address it serves both.
        ("health-probe-bind-address", local.clone()),
        ("metrics-bind-address", local),
    ];
    let command = container(object, release, component).command;
    let arguments = arguments_on_machine(&command, &own, &directory);
    let program = format!("{PROGRAMS}/{version}/bin/{}", component.name());
    let contents: Vec<String> = given.files.0.iter().map(|(name, content)| short_of(name, content)).collect();
    let mut words = vec![program.as_str()];
    words.extend(contents.iter().chain(&arguments).map(String::as_str));
    let digest = format!("{version}-{}", short_hash(&words, 16));
    Service {
        component,
        version: version.to_owned(),
        unit: unit(member),
        program,
        arguments,
        directory,
        health: health(given),
        digest,
    }
}

fn short_of(name: &str, content: &[u8]) -> String {
    format!("{name} {}", short_hash(&[&String::from_utf8_lossy(content)], 16))
}

/// It says that it is well before it has seen its member, and is asked only afterwards.
fn health(given: &GivenEstimator) -> Value {
    json!({ "url": format!("http://127.0.0.1:{}/healthz", given.health_port()), "opens": given.port })
}

fn variables(services: &[(String, Service, Map<String, Value>)]) -> Vec<Value> {
    let variables = |(member, service, files): &(String, Service, Map<String, Value>)| {
        service.variables(&format!("estimator-{member}"), files.clone())
    };
    services.iter().map(variables).collect()
}

/// What a probe looks at: of each member the unit, and where it says how it is.
pub(super) fn probed(material: &Material) -> Value {
    let asked = |(member, given): (&String, &GivenEstimator)| json!({ "name": member, "unit": unit(member), "health": health(given) });
    let services: Vec<Value> = material.estimators.iter().map(asked).collect();
    json!({ "services": services })
}

/// None of them, for machines that they are taken off.
pub(super) fn none() -> Value {
    json!({ "digest": "", "services": [] })
}

/// The key by which a run's secrets have a file of a member's estimator: the same on all machines.
pub(super) fn secret_key(member: &str, name: &str) -> String {
    format!("karmada-estimator.{member}.{name}")
}
