//! The upgrade of Kubernetes that is wanted: from which version to which, and the machines that do not have it yet.

use crds::KubernetesVersion;
use crds::step::Role;

use crate::cluster_machine::ClusterMachine;

/// An upgrade that is wanted, and not over.
pub(super) struct Upgrade<'a> {
    /// The lowest version on any machine of it.
    pub from: KubernetesVersion,
    /// What machines are brought to now.
    pub to: KubernetesVersion,
    /// What is wanted in the end.
    pub wanted: KubernetesVersion,
    /// Runs bring that version by now: it cannot be taken back.
    pub has_begun: bool,
    /// Machines that do not have it yet, by role: first one that is drained for it, then the one on which the cluster
    /// began.
    pub due: Vec<ClusterMachine<'a>>,
}

impl<'a> Upgrade<'a> {
    /// Whether a machine is to be drained for it: a kubelet's minor may not change under its Pods.
    pub fn drains(&self, machine: &ClusterMachine<'_>) -> bool {
        let version = version_of(machine);
        machine.machine.spec.role != Role::Etcd && version.is_none_or(|version| version.minor() != self.to.minor())
    }

    /// The machines of the control plane and of etcd that do not have it yet.
    pub fn control_planes(&self) -> impl Iterator<Item = &ClusterMachine<'a>> {
        self.due.iter().filter(|machine| machine.machine.spec.role != Role::Worker)
    }

    /// The workers that do not have it yet.
    pub fn workers(&self) -> impl Iterator<Item = &ClusterMachine<'a>> {
        self.due.iter().filter(|machine| machine.machine.spec.role == Role::Worker)
    }

    /// Whether a machine does not have it yet.
    pub fn is_due(&self, machine: &ClusterMachine<'_>) -> bool {
        self.due.iter().any(|due| due.uid() == machine.uid())
    }

    /// `1.34.4 -> 1.35.4`, of a machine that is due, and on a longer way `1.34.4 -> 1.35.4 (then 1.36.2)`.
    pub fn change(&self, machine: &ClusterMachine<'_>) -> String {
        let then = self.then();
        match version_of(machine).filter(|from| *from != self.to) {
            Some(from) => format!("{from} -> {}{then}", self.to),
            // What is left to do there has no other kubelet, or it is not known what it has.
            None => format!("-> {}{then}", self.to),
        }
    }

    /// `upgrading 1.34.4 -> 1.35.4`, and on a longer way `upgrading 1.34.4 -> 1.35.4 (then 1.36.2)`.
    pub fn title(&self) -> String {
        let then = self.then();
        match self.from == self.to {
            // What is left to do has no other kubelet.
            true => format!("upgrading to {}{then}", self.to),
            false => format!("upgrading {} -> {}{then}", self.from, self.to),
        }
    }

    fn then(&self) -> String {
        if self.to == self.wanted { String::new() } else { format!(" (then {})", self.wanted) }
    }
}

/// The version of a machine's kubelet; of one without, the version for which it was brought its etcd.
pub(super) fn version_of(machine: &ClusterMachine<'_>) -> Option<KubernetesVersion> {
    let status = machine.machine.status.as_ref()?;
    let version = match machine.machine.spec.role {
        Role::Etcd => status.applied.as_ref()?.kubernetes_version.as_ref()?,
        Role::ControlPlane | Role::Worker => status.kubernetes_version.as_ref()?,
    };
    version.parse().ok()
}
