//! The order in which parts are brought to machines: that of the stages of a plane in Pods, with the balancer before
//! what it gives connections to, and the endpoint's after the API server.

use crds::KarmadaDeploymentSpec;
use crds::cluster_deployment::EtcdTopology;
use crds::networking::EndpointProvider;
use crds::step::{Role, Step};

use super::super::component::Component;
use super::super::place::Stage;

/// What a run brings to a machine of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The balancer of the machine.
    Balancer,
    /// Its member of etcd, in another version: the member itself comes and goes with the machine.
    Etcd,
    /// A component.
    Component(Component),
    /// What holds the plane's endpoint on the machine.
    LoadBalancer,
    /// The estimators of all members.
    Estimators,
}

impl Part {
    /// The part that brings a component.
    pub const fn of(component: Component) -> Self {
        match component {
            Component::Etcd => Self::Etcd,
            Component::Estimator => Self::Estimators,
            _ => Self::Component(component),
        }
    }

    /// What messages call it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Balancer => "the balancer",
            Self::Etcd => "etcd",
            Self::Component(component) => component.name(),
            Self::LoadBalancer => "the endpoint's load balancer",
            Self::Estimators => "the estimators of members",
        }
    }

    /// Its name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Balancer => "balancer",
            Self::Etcd => "etcd",
            Self::Component(component) => component.suffix(),
            Self::LoadBalancer => "load-balancer",
            Self::Estimators => "estimators",
        }
    }

    /// Whether what it serves is away for a moment when it is changed. A balancer reads its configuration again; of
    /// estimators those alone are away that are others than before, and a scheduler asks none but those beside it.
    pub const fn interrupts(self) -> bool {
        !matches!(self, Self::Balancer | Self::Estimators)
    }

    /// Whether it is waited for where it does not work. An estimator whose member is away does not.
    pub const fn is_waited_for(self) -> bool {
        !matches!(self, Self::Estimators)
    }

    /// Whether it is programs of a plane's own version.
    pub fn has_programs(self) -> bool {
        self.steps().contains(&Step::KarmadaPrograms)
    }

    /// Whether the machines that have it must know of another one before it has it, too. Who holds the endpoint's
    /// address announces it to those that it knows; to others that address is taken.
    pub const fn is_told_to_peers_first(self) -> bool {
        matches!(self, Self::LoadBalancer)
    }

    /// Whether it comes in a run of its own. A member of etcd takes its vote with it while it is changed: nothing else
    /// is away on its machine meanwhile.
    pub const fn is_alone(self) -> bool {
        matches!(self, Self::Etcd)
    }

    /// The unit that a probe looks at; none: it has no one unit.
    pub fn unit(self) -> Option<String> {
        match self {
            Self::Balancer | Self::Component(_) => Some(format!("clusterwright-karmada-{}.service", self.name())),
            Self::Etcd | Self::LoadBalancer | Self::Estimators => None,
        }
    }

    /// The role whose machines have it.
    pub fn role(self, spec: &KarmadaDeploymentSpec) -> Role {
        match (self, spec.etcd_topology()) {
            (Self::Etcd, EtcdTopology::Dedicated) => Role::Etcd,
            _ => Role::ControlPlane,
        }
    }

    /// The steps that bring it.
    const fn steps(self) -> &'static [Step] {
        match self {
            Self::Balancer => &[Step::KarmadaBalancer],
            Self::Etcd => &[Step::Etcd],
            Self::Component(_) | Self::Estimators => &[Step::KarmadaPrograms, Step::KarmadaService],
            Self::LoadBalancer => &[Step::LoadBalancer],
        }
    }
}

/// The order of the steps that bring parts.
const STEPS: [Step; 5] =
    [Step::KarmadaBalancer, Step::Etcd, Step::KarmadaPrograms, Step::KarmadaService, Step::LoadBalancer];

/// The steps that bring these parts.
pub(super) fn steps(parts: &[Part]) -> Vec<Step> {
    STEPS.into_iter().filter(|step| parts.iter().any(|part| part.steps().contains(step))).collect()
}

/// What parts are ordered by in a run that brings several: its steps.
pub(super) fn in_order(part: Part) -> Option<usize> {
    part.steps().last().and_then(|last| STEPS.iter().position(|step| step == last))
}

/// The parts of a plane, each with the stage in which it is brought.
pub fn parts(spec: &KarmadaDeploymentSpec) -> Vec<(Stage, Part)> {
    let mut parts = vec![(Stage::Foundation, Part::Balancer)];
    parts.extend(spec.etcd.external.is_none().then_some((Stage::Etcd, Part::Etcd)));
    let wanted = |component: &Component| *component != Component::Etcd && component.replicas(spec).is_some();
    let components = Component::ALL.into_iter().filter(wanted);
    parts.extend(components.map(|component| (component.stage(), Part::Component(component))));
    let endpoint = spec.binary.as_ref().and_then(|binary| binary.endpoint.as_ref());
    let is_held = endpoint.is_some_and(|endpoint| endpoint.provider == EndpointProvider::Keepalived);
    parts.extend(is_held.then_some((Stage::ApiServer, Part::LoadBalancer)));
    parts.extend(spec.estimator.as_ref().map(|_| (Stage::Estimators, Part::Estimators)));
    parts.sort_by_key(|(stage, part)| (*stage, *part));
    parts
}

/// The steps that come before all parts on a machine; with a member of etcd or not.
pub fn steps_to_join(has_member: bool) -> Vec<Step> {
    let mut steps = vec![Step::BootstrapOs, Step::Preflight, Step::Prepare];
    steps.extend(has_member.then_some(Step::Etcd));
    steps
}
