//! What runs that bring no part know of a plane's services, be they a planner's or an administrator's: which
//! programs there are to be, and where each service says that it works.

use crds::KarmadaDeployment;
use serde_json::{Value, json};

use super::super::component::Component;
use super::super::release::Release;
use super::order::{Part, parts};
use super::placed::{placed, version};
use super::service::{Site, service};
use super::state::PlaneState;
use crate::cluster_machine::ClusterMachine;
use crate::settings::is_stopped;

/// All programs that the machines of a plane are to have: a list of `{name, version}`.
pub(crate) fn programs(object: &KarmadaDeployment, release: &Release) -> Value {
    let program = |part: Part| {
        let component = match part {
            Part::Component(component) => component,
            Part::Estimators => Component::Estimator,
            Part::Balancer | Part::Etcd | Part::LoadBalancer => return None,
        };
        Some(json!({ "name": component.name(), "version": component.version(&object.spec, release) }))
    };
    parts(&object.spec).into_iter().filter_map(|(_, part)| program(part)).collect()
}

/// The services of the machine with this address, in their order: a list of `{name, unit, health}`.
pub(crate) fn services(object: &KarmadaDeployment, release: &Release, address: &str) -> Value {
    let asked = |part: Part| {
        let running = match part {
            Part::Component(component) => component.version(&object.spec, release),
            Part::Balancer | Part::Etcd | Part::LoadBalancer | Part::Estimators => String::new(),
        };
        service_asked(object, release, part, (address, &running))
    };
    parts(&object.spec).into_iter().filter_map(|(_, part)| asked(part)).collect()
}

/// What probes look at on a machine: the parts that it has, in the versions that it has. One that is stopped says
/// nothing of itself.
pub(super) fn probed(state: &PlaneState<'_>, release: &Release, machine: &ClusterMachine<'_>) -> Value {
    let address = machine.host.map(crate::inputs::address_in_cluster).unwrap_or_default();
    let part = |part: Part| {
        let placed = placed(machine, part, state.seen.runs);
        let running = placed.as_ref().and_then(|placed| version(&placed.digest)).unwrap_or_default();
        let mut asked = service_asked(state.object, release, part, (address, running))?;
        if placed.is_some_and(|placed| is_stopped(&placed.digest))
            && let Some(asked) = asked.as_object_mut()
        {
            asked.remove("health");
        }
        Some(asked)
    };
    parts(&state.object.spec).into_iter().filter_map(|(_, one)| part(one)).collect()
}

/// A part, and where it says that it works; none: it is no service of ours.
fn service_asked(
    object: &KarmadaDeployment,
    release: &Release,
    part: Part,
    (address, version): (&str, &str),
) -> Option<Value> {
    let mut asked = json!({ "name": part.name(), "unit": part.unit()? });
    if let Part::Component(component) = part {
        asked["health"] = service(object, release, (component, version), &Site { address, etcd: &[] }, "").health;
    }
    Some(asked)
}
