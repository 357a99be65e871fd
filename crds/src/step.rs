//! Steps, intents and roles: the words that runs, machines and playbooks share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One step of a run: a playbook and its read-only probe, both of this name.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Python, packages, user, time sync checked.
    BootstrapOs,
    /// Reports all findings; errors block, warnings do not.
    Preflight,
    /// sysctl, modules, swap, hosts file.
    Prepare,
    /// containerd, runc, CNI plugins, registry mirrors, images of the bundle.
    ContainerRuntime,
    /// etcd members as systemd units.
    Etcd,
    /// kubeadm, the first control plane and the further ones.
    ControlPlane,
    /// kubeadm join of a worker.
    Node,
    /// The network plugin.
    Network,
    /// CoreDNS and kube-proxy rolled out; manifests of the user.
    Addons,
    /// Labels, taints, roles; a Pod, a Service and a DNS name answer.
    PostInstall,
    /// Undoes all of the above and verifies that the machine is clean.
    Reset,
    /// Looks at a spare Host: facts and cleanliness.
    ProbeHost,
}

impl Step {
    /// All steps, in the order in which they make sense.
    pub const ALL: [Step; 12] = [
        Step::BootstrapOs,
        Step::Preflight,
        Step::Prepare,
        Step::ContainerRuntime,
        Step::Etcd,
        Step::ControlPlane,
        Step::Node,
        Step::Network,
        Step::Addons,
        Step::PostInstall,
        Step::Reset,
        Step::ProbeHost,
    ];

    /// The step's name, which is its playbook's file name without `.yml`.
    pub fn name(self) -> &'static str {
        match self {
            Step::BootstrapOs => "bootstrap-os",
            Step::Preflight => "preflight",
            Step::Prepare => "prepare",
            Step::ContainerRuntime => "container-runtime",
            Step::Etcd => "etcd",
            Step::ControlPlane => "control-plane",
            Step::Node => "node",
            Step::Network => "network",
            Step::Addons => "addons",
            Step::PostInstall => "post-install",
            Step::Reset => "reset",
            Step::ProbeHost => "probe-host",
        }
    }

    /// The step of this name.
    pub fn from_name(name: &str) -> Option<Step> {
        Step::ALL.into_iter().find(|step| step.name() == name)
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What a run is for.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
pub enum Intent {
    /// Infrastructure and control plane of a new cluster.
    Install,
    /// Workers join.
    Join,
    /// Machines leave a cluster that goes on.
    Remove,
    /// Machines are cleaned.
    Reset,
    /// A newer Kubernetes version.
    Upgrade,
    /// Certificates are renewed.
    Renew,
    /// An etcd snapshot is taken.
    Backup,
    /// etcd is restored.
    Restore,
    /// Spare Hosts are looked at.
    Probe,
    /// A one-off of an administrator.
    Custom,
}

impl Intent {
    /// The intent in lower case, as it stands in names and metrics.
    pub fn slug(self) -> &'static str {
        match self {
            Intent::Install => "install",
            Intent::Join => "join",
            Intent::Remove => "remove",
            Intent::Reset => "reset",
            Intent::Upgrade => "upgrade",
            Intent::Renew => "renew",
            Intent::Backup => "backup",
            Intent::Restore => "restore",
            Intent::Probe => "probe",
            Intent::Custom => "custom",
        }
    }
}

/// What a machine is in its cluster.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Runs the API server, controller-manager and scheduler (and etcd, when it is stacked).
    ControlPlane,
    /// Runs a dedicated etcd member and nothing else.
    Etcd,
    /// Runs workloads.
    Worker,
}

impl Role {
    /// The role's name as in the API.
    pub fn name(self) -> &'static str {
        match self {
            Role::ControlPlane => "control-plane",
            Role::Etcd => "etcd",
            Role::Worker => "worker",
        }
    }
}
