//! The balancer of each machine: the plane's API server asks it at `localhost`, and it gives the connection to what
//! serves on any of the machines. So an API server works on when what serves beside it does not, and no name has to be
//! looked up: certificates are for `localhost` as well.

use crds::KarmadaDeploymentSpec;

use super::super::component::Component;

/// Where the balancer of a machine listens, and who is behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frontend {
    /// What serves there.
    pub component: Component,
    /// The port, of 127.0.0.1 alone.
    pub port: u16,
    /// `address:port` of each machine that stays.
    pub backends: Vec<String>,
}

/// The frontends of each machine, with these addresses behind them: those of the machines that are part of the plane
/// and stay. Connections are passed on as they come, since what serves has the certificate.
pub fn frontends(spec: &KarmadaDeploymentSpec, addresses: &[&str]) -> Vec<Frontend> {
    let wanted = Component::ALL.into_iter().filter(|component| component.replicas(spec).is_some());
    let frontend = |component: Component| {
        let ports = component.ports();
        let (serving, port) = ports.serving.zip(ports.balanced)?;
        let backends = addresses.iter().map(|address| format!("{address}:{serving}")).collect();
        Some(Frontend { component, port, backends })
    };
    wanted.filter_map(frontend).collect()
}

/// Where the plane's API server asks a component, as APIs and webhooks name it: host and port. None: it asks it
/// nothing.
pub fn served_at(component: Component) -> Option<(&'static str, u16)> {
    Some(("localhost", component.ports().balanced?))
}
