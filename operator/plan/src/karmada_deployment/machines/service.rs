//! A component as a service of one machine: the flags that its Pod would have, with the places of the machine.

use crds::KarmadaDeployment;

use super::super::component::Component;
use super::super::files::DIRECTORY;
use super::super::programs::container;
use super::super::release::Release;
use crate::naming::short_hash;

/// Where the programs of a version are.
const PROGRAMS: &str = "/opt/clusterwright/karmada";

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
    /// What changes when any of it does, its files included.
    pub digest: String,
}

/// The service of a component in this version, whose files have this digest.
pub fn service(
    object: &KarmadaDeployment,
    release: &Release,
    (component, version): (Component, &str),
    site: &Site<'_>,
    files: &str,
) -> Service {
    let suffix = component.suffix();
    let command = container(object, release, component).command;
    let (own, external) = (overlay(component, site), object.spec.etcd.external.is_some());
    let is_kept = |name: &str| external && name == "etcd-servers";
    let mut arguments: Vec<String> = Vec::new();
    let mut written: Vec<&str> = Vec::new();
    for argument in command.iter().skip(1) {
        let name = argument.trim_start_matches("--").split_once('=').map_or("", |(name, _)| name);
        match own.iter().find(|(flag, _)| *flag == name && !is_kept(name)) {
            Some((flag, value)) => {
                written.push(flag);
                arguments.push(format!("--{flag}={value}"));
            }
            // Each has a directory of its own: none reads the files of another one.
            None => arguments.push(argument.replace(&format!("{DIRECTORY}/"), &format!("{DIRECTORY}/{suffix}/"))),
        }
    }
    let more = own.iter().filter(|(flag, _)| !written.contains(flag) && !is_kept(flag));
    arguments.extend(more.map(|(flag, value)| format!("--{flag}={value}")));
    let program = format!("{PROGRAMS}/{version}/bin/{}", component.name());
    let mut parts = vec![program.as_str(), files];
    parts.extend(arguments.iter().map(String::as_str));
    let digest = short_hash(&parts, 16);
    let unit = format!("clusterwright-karmada-{suffix}.service");
    Service { component, version: version.to_owned(), unit, program, arguments, digest }
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

/// The line of a unit that starts it. systemd reads `%`, `$`, quotes and backslashes for itself.
pub fn exec_start(service: &Service) -> String {
    let quoted = |text: &String| {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
        format!("\"{text}\"")
    };
    let arguments: Vec<String> = service.arguments.iter().map(quoted).collect();
    format!("ExecStart={} {}", service.program, arguments.join(" "))
}
