//! A machine that does not have the settings that are wanted.

use std::collections::BTreeSet;

use crds::step::Step;

use crate::cluster_machine::ClusterMachine;
use crate::settings::Difference;

/// The order in which steps are played.
const ORDER: [Step; 14] = [
    Step::Prepare,
    Step::ContainerRuntime,
    Step::Etcd,
    Step::ControlPlane,
    Step::EtcdEndpoints,
    Step::ControlPlaneConfiguration,
    Step::KubeletConfiguration,
    Step::KmsPlugin,
    Step::CertificateAuthorities,
    Step::RestartPods,
    Step::RewriteSecrets,
    Step::Network,
    Step::Addons,
    Step::Coredns,
];

/// A machine on which something is due.
#[derive(Clone)]
pub(super) struct Outdated<'a> {
    pub machine: ClusterMachine<'a>,
    /// Known differences, each with a step.
    pub due: Vec<Difference>,
}

impl Outdated<'_> {
    /// What is played, in its order.
    pub fn steps(&self) -> Vec<Step> {
        let due: BTreeSet<Step> = self.due.iter().filter_map(Difference::due).collect();
        ORDER.into_iter().filter(|step| due.contains(step)).collect()
    }

    /// Each difference, and whether something restarts when it is brought: all that a step brings is brought at once.
    pub fn effects(&self) -> impl Iterator<Item = (&Difference, bool)> {
        let restarts = self.due.iter().filter(|difference| difference.is_disruptive);
        let restarts: BTreeSet<Step> = restarts.filter_map(Difference::due).collect();
        self.due.iter().map(move |due| (due, due.due().is_some_and(|step| restarts.contains(&step))))
    }

    /// The same without what disrupts the machine; none: nothing else is due.
    pub fn undisruptive(self) -> Option<Self> {
        let due: Vec<Difference> =
            self.effects().filter(|(_, restarts)| !restarts).map(|(difference, _)| difference.clone()).collect();
        (!due.is_empty()).then_some(Self { due, ..self })
    }

    /// Whether Pods would not outlive it.
    pub fn drains(&self) -> bool {
        self.due.iter().any(|difference| difference.drains)
    }

    /// `containerRuntime.registryMirrors, controlPlane.certSANs`.
    pub fn fields(&self) -> String {
        self.due.iter().map(|difference| difference.field.as_str()).collect::<Vec<_>>().join(", ")
    }

    pub fn title(&self) -> String {
        self.machine.title()
    }
}
