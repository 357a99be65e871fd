//! Where each component listens on a machine. All of them share it, so no two have the same port.

use super::super::component::Component;

/// The ports of a component on a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// At the machine's address, for clients and for the balancers of all machines.
    pub serving: Option<u16>,
    /// On this machine alone: how it is.
    pub health: Option<u16>,
    /// On this machine alone: its metrics.
    pub metrics: Option<u16>,
    /// On this machine alone: where its balancer gives connections to the components of all machines.
    pub balanced: Option<u16>,
}

impl Component {
    /// Where it listens; nothing of etcd, which has a role of its own, and of estimators, of which each member has one.
    pub const fn ports(self) -> Ports {
        const NONE: Ports = Ports { serving: None, health: None, metrics: None, balanced: None };
        match self {
            Self::Etcd | Self::Estimator => NONE,
            Self::ApiServer => Ports { serving: Some(5443), ..NONE },
            Self::KubeControllerManager => Ports { health: Some(10257), ..NONE },
            Self::AggregatedApiServer => Ports { serving: Some(7443), balanced: Some(17443), ..NONE },
            Self::Webhook => {
                Ports { serving: Some(8443), health: Some(18000), metrics: Some(18080), balanced: Some(18443) }
            }
            Self::Scheduler => Ports { health: Some(10351), metrics: Some(18351), ..NONE },
            Self::ControllerManager => Ports { health: Some(10357), metrics: Some(18357), ..NONE },
            Self::Descheduler => Ports { health: Some(10358), metrics: Some(18358), ..NONE },
            Self::Search => Ports { serving: Some(9443), balanced: Some(19443), ..NONE },
            Self::MetricsAdapter => Ports { serving: Some(9444), metrics: Some(18081), balanced: Some(19444), ..NONE },
        }
    }
}
