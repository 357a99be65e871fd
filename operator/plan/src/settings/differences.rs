//! Where a machine differs from what its cluster's spec wants now.

use crds::Machine;
use crds::machine::AppliedSettings;
use crds::step::{Role, Step};

use super::wanted::Wanted;

/// Where a machine, or what was applied to the cluster, is not as the spec wants it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// `containerRuntime.registryMirrors`.
    pub field: String,
    /// Whether it is known what was applied.
    pub is_known: bool,
    /// What brings it there; none: nothing does.
    pub step: Option<Step>,
    /// What is wanted, as a digest; empty: that is not known.
    pub wanted: String,
    /// Whether something that serves restarts when it is brought.
    pub is_disruptive: bool,
}

impl Difference {
    /// How what was applied of a field that a step brings differs from what is wanted, if it does.
    pub fn between(field: &str, step: Step, applied: Option<&String>, wanted: &str) -> Option<Self> {
        let difference = Self {
            field: field.to_owned(),
            is_known: applied.is_some(),
            step: Some(step),
            wanted: wanted.to_owned(),
            is_disruptive: step.spec().disruptive,
        };
        (applied.map(String::as_str) != Some(wanted)).then_some(difference)
    }

    /// The step that is due, where it is known that something differs.
    pub fn due(&self) -> Option<Step> {
        self.step.filter(|_| self.is_known)
    }
}

/// The fields of the spec that differ from what a machine of the cluster was given.
pub fn differences(wanted: &Wanted, machine: &Machine, applied: Option<&AppliedSettings>) -> Vec<Difference> {
    let applied = |setting: fn(&AppliedSettings) -> Option<&String>| applied.and_then(setting);
    let mirrors = Difference::between(
        "containerRuntime.registryMirrors",
        Step::ContainerRuntime,
        applied(|applied| applied.registry_mirrors.as_ref()),
        &wanted.registry_mirrors,
    );
    let names = || {
        let applied = applied(|applied| applied.cert_sans.as_ref());
        Difference::between("controlPlane.certSANs", Step::ControlPlane, applied, &wanted.cert_sans)
    };
    let endpoints = || {
        let applied = applied(|applied| applied.etcd_endpoints.as_ref());
        Difference::between("etcd.endpoints", Step::EtcdEndpoints, applied, wanted.etcd_endpoints.as_ref()?)
    };
    match machine.spec.role {
        Role::ControlPlane => mirrors.into_iter().chain(names()).chain(endpoints()).collect(),
        Role::Worker | Role::Etcd => mirrors.into_iter().collect(),
    }
}
