//! A component as a service of one machine: the flags that its Pod would have, with the places of the machine.

use crds::KarmadaDeployment;
use serde_json::{Map, Value, json};

use super::super::component::Component;
use super::super::endpoint::{PORT, url};
use super::super::files::{DIRECTORY, File, Located, digest, files_at, flat};
use super::super::material::Material;
use super::super::programs::container;
use super::super::release::Release;
use super::super::seats::{Seat, Seats};
use super::super::token_restart::restarted_at;
use super::certificates::api_server_stem;
use super::order::Part;
use crate::naming::short_hash;

/// Where the programs of a version are.
pub(super) const PROGRAMS: &str = "/opt/clusterwright/karmada";
/// Where the files of services are, each in a directory of its own: none reads those of another one.
pub(super) const FILES: &str = "/etc/karmada/pki";

/// What a machine's services follow from beside the spec.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The machine's address.
    pub address: &'a str,
    /// Where etcd answers: the machine's own member, or those of a dedicated etcd, as URLs.
    pub etcd: &'a [String],
}

/// A service of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// What it runs.
    pub component: Component,
    /// Its version, without `v`.
    pub version: String,
    /// The name of its unit: `clusterwright-karmada-scheduler.service`.
    pub unit: String,
    /// Its program, by its whole path.
    pub program: String,
    /// Its flags.
    pub arguments: Vec<String>,
    /// The directory of its files.
    pub directory: String,
    /// Where it says that it works.
    pub health: Value,
    /// What changes when any of it does, its files included; its version first: `1.18.2-0123456789abcdef`.
    pub digest: String,
}

impl Service {
    /// What a machine must know to run it: as what it is reported, and which of the run's secrets each file is.
    pub fn variables(&self, name: &str, files: Map<String, Value>) -> Value {
        json!({
            "name": name,
            "unit": self.unit,
            "program": self.program,
            "exec_start": exec_start(self),
            "digest": self.digest,
            "directory": self.directory,
            "files": files,
        })
    }
}

/// The service of a component in this version, whose files have this digest.
pub fn service(
    object: &KarmadaDeployment,
    release: &Release,
    (component, version): (Component, &str),
    site: &Site<'_>,
    files: &str,
) -> Service {
    let command = container(object, release, component).command;
    let (own, external) = (overlay(component, site), object.spec.etcd.external.is_some());
    let own: Vec<(&str, String)> = own.into_iter().filter(|(name, _)| !(external && *name == "etcd-servers")).collect();
    let arguments = arguments_on_machine(&command, &own, &directory(component));
    let program = format!("{PROGRAMS}/{version}/bin/{}", component.name());
    let restarted = restarted_at(object, component).map(|at| at.to_string()).unwrap_or_default();
    let mut parts = vec![program.as_str(), files, &restarted];
    parts.extend(arguments.iter().map(String::as_str));
    let digest = format!("{version}-{}", short_hash(&parts, 16));
    Service {
        component,
        version: version.to_owned(),
        unit: unit(component),
        program,
        arguments,
        directory: directory(component),
        health: health(object, release, component, site.address),
        digest,
    }
}

/// The unit of a component.
fn unit(component: Component) -> String {
    Part::Component(component).unit().unwrap_or_default()
}

fn directory(component: Component) -> String {
    format!("{FILES}/{}", component.suffix())
}

/// The flags of a program in a Pod, with these in place of those of the same names, and its files in this directory.
pub(super) fn arguments_on_machine(command: &[String], own: &[(&str, String)], directory: &str) -> Vec<String> {
    let mut arguments: Vec<String> = Vec::new();
    let mut written: Vec<&str> = Vec::new();
    for argument in command.iter().skip(1) {
        let name = argument.trim_start_matches("--").split_once('=').map_or("", |(name, _)| name);
        match own.iter().find(|(flag, _)| *flag == name) {
            Some((flag, value)) => {
                written.push(flag);
                arguments.push(format!("--{flag}={value}"));
            }
            None => arguments.push(on_machine(argument, directory)),
        }
    }
    let more = own.iter().filter(|(flag, _)| !written.contains(flag));
    arguments.extend(more.map(|(flag, value)| format!("--{flag}={value}")));
    arguments
}

/// The flag with the paths of the machine.
fn on_machine(argument: &str, directory: &str) -> String {
    let Some((before, file)) = argument.split_once(&format!("{DIRECTORY}/")) else { return argument.to_owned() };
    match file {
        "pki" => format!("{before}{directory}"),
        file => format!("{before}{directory}/{}", flat(file)),
    }
}

/// The flags that are others on a machine than in a Pod.
fn overlay(component: Component, site: &Site<'_>) -> Vec<(&'static str, String)> {
    let (ports, address) = (component.ports(), site.address);
    let local = |port: u16| format!("127.0.0.1:{port}");
    let mut own: Vec<(&'static str, String)> = Vec::new();
    if let Some(port) = ports.serving {
        own.extend([("bind-address", address.to_owned()), ("secure-port", port.to_string())]);
    }
    match component {
        Component::ApiServer => own.push(("advertise-address", address.to_owned())),
        Component::KubeControllerManager => own.push(("bind-address", "127.0.0.1".to_owned())),
        _ => own.extend(ports.health.map(|port| ("health-probe-bind-address", local(port)))),
    }
    own.extend(ports.metrics.map(|port| ("metrics-bind-address", local(port))));
    if component.uses_etcd() {
        own.push(("etcd-servers", site.etcd.join(",")));
    }
    own
}

/// Where a component says that it works. What it serves says it, where it serves; the certificate of the API server
/// alone is for the machine's address, so that of the others is not verified.
fn health(object: &KarmadaDeployment, release: &Release, component: Component, address: &str) -> Value {
    let (ports, probe) = (component.ports(), container(object, release, component).probe);
    let at = match (ports.serving, ports.health) {
        (Some(port), _) => url(address, i64::from(port)),
        (None, port) => url("127.0.0.1", i64::from(port.unwrap_or(probe.port))),
    };
    let at = match probe.scheme {
        "HTTP" => at.replacen("https", "http", 1),
        _ => at,
    };
    let mut health = json!({ "url": format!("{at}{}", probe.ready) });
    if component == Component::ApiServer {
        health["authority"] = json!(format!("{}/ca.crt", directory(component)));
    }
    health
}

/// The right side of the line of a unit that starts it. systemd reads `%`, `$`, quotes and backslashes for itself.
pub fn exec_start(service: &Service) -> String {
    let quoted = |text: &String| {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
        format!("\"{text}\"")
    };
    let arguments: Vec<String> = service.arguments.iter().map(quoted).collect();
    format!("{} {}", service.program, arguments.join(" "))
}

/// The files of a component on a machine; none: one of them is not there yet.
pub(super) fn files_on(
    object: &KarmadaDeployment,
    material: &Material,
    seat: &Seat,
    component: Component,
) -> Option<Vec<File>> {
    let located = Located {
        directory: directory(component),
        is_flat: true,
        server: url(&seat.address, i64::from(PORT)),
        api_server: api_server_stem(&seat.host),
    };
    files_at(object, material, component, &located)
}

/// What changes when one of these files does.
pub(super) fn digest_of(files: &[File]) -> String {
    digest(files)
}

/// The key by which a run's secrets have a file of a component on a machine.
pub(super) fn secret_key(host: &str, component: Component, name: &str) -> String {
    format!("karmada.{host}.{}.{name}", component.suffix())
}

/// Whether the files of all components are there for all machines.
pub(in super::super) fn has_all_files(object: &KarmadaDeployment, material: &Material, seats: &Seats) -> bool {
    let wanted = Component::ALL.into_iter().filter(|component| *component != Component::Etcd);
    let mut wanted = wanted.filter(|component| component.replicas(&object.spec).is_some());
    let has = |component: Component| {
        seats.control_planes.iter().all(|seat| files_on(object, material, seat, component).is_some())
    };
    !seats.control_planes.is_empty() && wanted.all(has)
}
