//! Where the plane's API server is reached from outside of the host cluster.

use crds::KarmadaDeployment;
use crds::karmada_deployment::{PlaneBinary, ServiceType};
use serde_json::Value;

use super::names::{api_server_service, full_host_name};
use super::observed::HostFacts;

/// The port of the API server.
pub(super) const PORT: u16 = 5443;

/// `https://host:port`; or what it waits for.
pub fn endpoint(object: &KarmadaDeployment, facts: &HostFacts) -> Result<String, String> {
    if let Some(binary) = object.spec.binary.as_ref() {
        return of_machines(binary, facts);
    }
    let wanted = &object.spec.api_server;
    let service = api_server_service(object);
    let (host, port) = match wanted.service_type {
        ServiceType::ClusterIP => (full_host_name(object, &service), i64::from(PORT)),
        ServiceType::NodePort => {
            let port =
                node_port(facts).ok_or_else(|| format!("waiting for Service {service} to get a port of nodes"))?;
            (wanted.load_balancer_apiserver_ip.clone().unwrap_or_default(), port)
        }
        ServiceType::LoadBalancer => {
            let given = wanted.load_balancer_apiserver_ip.clone().or_else(|| addresses(facts).next());
            let host =
                given.ok_or_else(|| format!("waiting for Service {service} to get an address of a load balancer"))?;
            (host, i64::from(PORT))
        }
    };
    Ok(url(&host, port))
}

/// `https://host:port`.
pub(super) fn url(host: &str, port: i64) -> String {
    if host.contains(':') { format!("https://[{host}]:{port}") } else { format!("https://{host}:{port}") }
}

/// The endpoint of a plane on machines; without one its only machine.
fn of_machines(binary: &PlaneBinary, facts: &HostFacts) -> Result<String, String> {
    if let Some(endpoint) = &binary.endpoint {
        return Ok(url(&endpoint.host, i64::from(endpoint.port)));
    }
    let first = facts.seats.control_planes.first();
    let first = first.ok_or_else(|| "waiting for the plane's machine to have a Host".to_owned())?;
    Ok(url(&first.address, i64::from(PORT)))
}

/// IP addresses and names of the Service that clients may use, as far as they are known.
pub(super) fn service_names(facts: &HostFacts) -> Vec<String> {
    let own = facts.service.as_ref().and_then(|service| service["spec"]["clusterIP"].as_str());
    own.filter(|address| *address != "None").map(str::to_owned).into_iter().chain(addresses(facts)).collect()
}

fn node_port(facts: &HostFacts) -> Option<i64> {
    facts.service.as_ref()?["spec"]["ports"][0]["nodePort"].as_i64().filter(|port| *port > 0)
}

/// What the load balancer says.
fn addresses(facts: &HostFacts) -> impl Iterator<Item = String> {
    let ingress = facts.service.as_ref().and_then(|service| service["status"]["loadBalancer"]["ingress"].as_array());
    let address = |one: &Value| one["ip"].as_str().or(one["hostname"].as_str()).map(str::to_owned);
    ingress.into_iter().flatten().filter_map(address)
}
