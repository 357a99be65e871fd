//! Where a machine differs from what its cluster's spec wants now.

use std::collections::BTreeMap;

use crds::Machine;
use crds::cluster_deployment::AppliedManifests;
use crds::machine::AppliedSettings;
use crds::step::{Role, Step};

use super::parts;
use super::wanted::Wanted;
use crate::components::pins::COREDNS;
use crate::configuration::PARTS;

/// Where a machine, or what was applied to the cluster, is not as the spec wants it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// `containerRuntime.registryMirrors`.
    pub field: String,
    /// Whether it is known what was applied.
    pub is_known: bool,
    /// What brings it there; none: nothing does.
    pub step: Option<Step>,
    /// What is wanted, as a digest; empty: nothing, or that is not known.
    pub wanted: String,
    /// Whether something that serves restarts when it is brought.
    pub is_disruptive: bool,
    /// Whether the Pods of the machine's Node would not outlive that.
    pub drains: bool,
}

impl Difference {
    /// Of a field that a step brings, with a digest of what is wanted.
    pub fn new(field: &str, step: Step, is_known: bool, wanted: &str) -> Self {
        Self {
            field: field.to_owned(),
            is_known,
            step: Some(step),
            wanted: wanted.to_owned(),
            is_disruptive: step.spec().disruptive,
            drains: false,
        }
    }

    /// How what was applied of a field that a step brings differs from what is wanted, if it does.
    pub fn between(field: &str, step: Step, applied: Option<&String>, wanted: &str) -> Option<Self> {
        let differs = applied.map(String::as_str) != Some(wanted);
        differs.then(|| Self::new(field, step, applied.is_some(), wanted))
    }

    /// The step that is due, where it is known that something differs.
    pub fn due(&self) -> Option<Step> {
        self.step.filter(|_| self.is_known)
    }
}

/// The fields of the spec that differ from what a machine of the cluster was given.
pub fn differences(wanted: &Wanted, machine: &Machine, applied: Option<&AppliedSettings>) -> Vec<Difference> {
    let configured = of_parts(&wanted.configuration, machine, applied);
    let applied = |setting: fn(&AppliedSettings) -> Option<&String>| applied.and_then(setting);
    let mirrors = Difference::between(
        "containerRuntime.registryMirrors",
        Step::ContainerRuntime,
        applied(|applied| applied.registry_mirrors.as_ref()),
        &wanted.registry_mirrors,
    );
    // containerd reads them at each pull.
    let mirrors = mirrors.map(|mirrors| Difference { is_disruptive: false, ..mirrors });
    let names = || {
        let applied = applied(|applied| applied.cert_sans.as_ref());
        Difference::between("controlPlane.certSANs", Step::ControlPlane, applied, &wanted.cert_sans)
    };
    let endpoints = || {
        let applied = applied(|applied| applied.etcd_endpoints.as_ref());
        Difference::between("etcd.endpoints", Step::EtcdEndpoints, applied, wanted.etcd_endpoints.as_ref()?)
    };
    let of_role: Vec<Difference> = match machine.spec.role {
        Role::ControlPlane => names().into_iter().chain(endpoints()).collect(),
        Role::Worker | Role::Etcd => Vec::new(),
    };
    mirrors.into_iter().chain(of_role).chain(configured).collect()
}

/// How CoreDNS, which is the whole cluster's, differs from what is wanted. What was applied to it is not known where
/// nothing is remembered of the cluster.
pub fn of_dns(wanted: &Wanted, applied: Option<&AppliedManifests>) -> Option<Difference> {
    let has = applied.and_then(|applied| applied.coredns.as_ref());
    let wanted = wanted.configuration.get(COREDNS.part);
    let digest = wanted.map(String::as_str).unwrap_or_default();
    (has != wanted).then(|| Difference::new(COREDNS.field, Step::Coredns, applied.is_some(), digest))
}

/// The parts of which a machine has another configuration than it is to have. One to which nothing was ever brought is
/// as it is by itself.
fn of_parts(
    wanted: &BTreeMap<String, String>,
    machine: &Machine,
    applied: Option<&AppliedSettings>,
) -> impl Iterator<Item = Difference> {
    // All machines were brought mirrors, or none: where not even that is remembered, a status was lost.
    let is_remembered = applied.is_some_and(|applied| applied.registry_mirrors.is_some());
    PARTS.iter().filter(|part| part.concerns(machine.spec.role)).filter_map(move |part| {
        let has = applied.and_then(|applied| applied.configuration.get(part.name));
        let wanted = parts::of_machine(wanted, part, machine);
        let is_known = has.is_some() || is_remembered;
        let drains = (part.drains)(has.map(String::as_str), wanted.as_deref());
        let difference = Difference::new(part.field, part.step, is_known, wanted.as_deref().unwrap_or_default());
        let difference = Difference { drains, ..difference };
        (has != wanted.as_ref()).then_some(difference)
    })
}
