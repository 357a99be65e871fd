//! The order in which parts are brought to machines: that of the stages of a plane in Pods, with the balancer before
//! what it gives connections to.

use crds::KarmadaDeploymentSpec;
use crds::step::Step;

use super::super::component::Component;
use super::super::place::Stage;

/// What a run brings to a machine of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The balancer of the machine.
    Balancer,
    /// A component.
    Component(Component),
}

impl Part {
    /// What messages call it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Balancer => "the balancer",
            Self::Component(component) => component.name(),
        }
    }

    /// Whether what it serves is away for a moment when it is changed. A balancer reads its configuration again.
    pub const fn interrupts(self) -> bool {
        !matches!(self, Self::Balancer)
    }
}

/// The parts of a plane, each with the stage in which it is brought; etcd has operations of its own, as members join
/// and leave one by one.
pub fn parts(spec: &KarmadaDeploymentSpec) -> Vec<(Stage, Part)> {
    let mut parts = vec![(Stage::Foundation, Part::Balancer)];
    let wanted = |component: &Component| *component != Component::Etcd && component.replicas(spec).is_some();
    let components = Component::ALL.into_iter().filter(wanted);
    parts.extend(components.map(|component| (component.stage(), Part::Component(component))));
    parts.sort_by_key(|(stage, _)| *stage);
    parts
}

/// The steps that come before all parts on a machine; with a member of etcd or not.
pub fn steps_to_join(has_member: bool) -> Vec<Step> {
    let mut steps = vec![Step::BootstrapOs, Step::Preflight, Step::Prepare];
    steps.extend(has_member.then_some(Step::Etcd));
    steps
}
