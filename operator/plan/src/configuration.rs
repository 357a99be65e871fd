//! `spec.configuration` in parts: what of it a machine is to have, what steps bring it, and with which variable. A part
//! more is a row of [`PARTS`], and a file that says what it is made of.

mod containerd;
mod control_plane;
mod etcd;
pub mod files;
mod kubelet;
mod machine;
mod merge;
mod proxy;
mod versions;

use std::collections::BTreeMap;

use crds::step::{Role, Step};
use crds::{ClusterDeployment, Machine};
use serde_json::Value;

use crate::claims;
use crate::components::pins::{CNI_PLUGINS, CONTAINERD, COREDNS, ETCD, Pin, RUNC};

/// A part of the configuration that is brought to machines as a whole.
pub struct Part {
    /// Its name in statuses, e.g. `kubelet`.
    pub name: &'static str,
    /// The field of the spec, for messages.
    pub field: &'static str,
    /// The machines that have it.
    pub roles: &'static [Role],
    /// The step that brings an edit to a machine.
    pub step: Step,
    /// Further steps after which a machine has it.
    pub steps_beside: &'static [Step],
    /// What a MachineSet's machines are to have of it, as the spec says it; none: nothing is configured. Machines of no
    /// set have what the cluster says. A digest of this is what statuses remember: it changes with the spec alone.
    pub wanted: fn(&ClusterDeployment, Option<&str>) -> Option<Value>,
    /// Whether the Pods of a machine's Node would not outlive that it goes from what it has to what is wanted. Both are
    /// digests, or numbers as they are; none: nothing is configured.
    pub drains: fn(Option<&str>, Option<&str>) -> bool,
    /// The variable by which a run's steps get it, one for several parts; none: they get it with what all machines of
    /// the cluster are given. A machine for which nothing is configured has none.
    pub variable: Option<&'static str>,
    /// The variable's value.
    pub lower: fn(&ClusterDeployment, Value) -> Value,
}

/// All parts.
pub const PARTS: &[Part] = &[
    Part {
        name: "machine",
        field: "configuration.machine",
        roles: &[Role::ControlPlane, Role::Etcd, Role::Worker],
        step: Step::Prepare,
        steps_beside: &[],
        wanted: machine::wanted,
        drains: never,
        variable: Some("machine_settings"),
        lower: proxy::lower,
    },
    Part {
        name: "containerd",
        field: "configuration.containerd",
        roles: &[Role::ControlPlane, Role::Worker],
        step: Step::ContainerRuntime,
        steps_beside: &[],
        wanted: containerd::wanted,
        drains: never,
        variable: Some("containerd_settings"),
        lower: proxy::lower,
    },
    Part { name: "kubelet", field: "configuration.kubelet", wanted: kubelet::wanted, ..KUBELET },
    Part {
        name: "kubelet-max-pods",
        field: "configuration.kubelet.maxPods",
        wanted: kubelet::max_pods,
        drains: kubelet::has_fewer_pods,
        lower: kubelet::lower_max_pods,
        ..KUBELET
    },
    Part {
        name: "kubelet-policies",
        field: "configuration.kubelet (cpuManagerPolicy, topologyManagerPolicy)",
        wanted: kubelet::policies,
        drains: always,
        ..KUBELET
    },
    Part {
        name: "control-plane",
        field: "configuration.{apiServer,controllerManager,scheduler}",
        roles: &[Role::ControlPlane],
        step: Step::ControlPlaneConfiguration,
        // It makes a control plane, and gives one that is there its configuration.
        steps_beside: &[Step::ControlPlane],
        wanted: control_plane::wanted,
        drains: never,
        variable: Some("control_plane_settings"),
        lower: control_plane::lower,
    },
    Part {
        name: "etcd",
        field: "configuration.etcd",
        roles: &[Role::ControlPlane, Role::Etcd],
        step: Step::Etcd,
        steps_beside: &[],
        wanted: etcd::wanted,
        drains: never,
        variable: Some("etcd_extra_environment"),
        lower: etcd::lower,
    },
    Part { wanted: |deployment, _| versions::wanted(deployment, &CONTAINERD), ..version_of(&CONTAINERD) },
    Part { wanted: |deployment, _| versions::wanted(deployment, &RUNC), ..version_of(&RUNC) },
    Part { wanted: |deployment, _| versions::wanted(deployment, &CNI_PLUGINS), ..version_of(&CNI_PLUGINS) },
    // Its image: another step gives it to CoreDNS, once all machines have it.
    Part { wanted: |deployment, _| versions::wanted(deployment, &COREDNS), ..version_of(&COREDNS) },
    Part { roles: &[Role::ControlPlane, Role::Etcd], step: Step::Etcd, wanted: etcd::version, ..version_of(&ETCD) },
];

/// What all parts of the kubelet have in common.
const KUBELET: Part = Part {
    name: "",
    field: "",
    roles: &[Role::ControlPlane, Role::Worker],
    step: Step::KubeletConfiguration,
    // They make a kubelet, and give one that is there its configuration.
    steps_beside: &[Step::ControlPlane, Step::Node],
    wanted: kubelet::wanted,
    drains: never,
    variable: Some("kubelet_settings"),
    lower: kubelet::lower,
};

/// The version of a component, here of one that `container-runtime` brings. Steps get it with what is frozen of all
/// components.
const fn version_of(pin: &Pin) -> Part {
    Part {
        name: pin.part,
        field: pin.field,
        roles: &[Role::ControlPlane, Role::Worker],
        step: Step::ContainerRuntime,
        steps_beside: &[],
        wanted: |_, _| None,
        drains: never,
        variable: None,
        lower: as_it_is,
    }
}

impl Part {
    /// Whether machines of the role have it.
    pub fn concerns(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// All steps after which a machine has it.
    pub fn steps(&self) -> impl Iterator<Item = Step> {
        self.steps_beside.iter().copied().chain([self.step])
    }
}

/// The variables that configure a machine in a run.
pub fn variables(deployment: &ClusterDeployment, machine: &Machine) -> BTreeMap<String, Value> {
    let parts = PARTS.iter().filter(|part| part.concerns(machine.spec.role));
    let set = claims::set_of(machine);
    let mut variables = BTreeMap::new();
    for part in parts {
        if let (Some(variable), Some(wanted)) = (part.variable, (part.wanted)(deployment, set)) {
            let variable = variables.entry(variable.to_owned()).or_insert(Value::Null);
            merge::over(variable, (part.lower)(deployment, wanted));
        }
    }
    variables
}

fn never(_: Option<&str>, _: Option<&str>) -> bool {
    false
}

fn always(_: Option<&str>, _: Option<&str>) -> bool {
    true
}

fn as_it_is(_: &ClusterDeployment, wanted: Value) -> Value {
    wanted
}

#[cfg(test)]
mod tests;
