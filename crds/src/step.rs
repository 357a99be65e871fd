//! Steps, intents and roles: the words that runs, machines and playbooks share.

use std::borrow::Cow;

use arrayvec::ArrayString;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod intent;
mod spec;

pub use intent::{Effect, Intent, IntentSpec, LockUse};
pub use spec::StepSpec;

/// One step of a run: a playbook and its read-only probe, both of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// keepalived and haproxy on the control planes, where they hold the cluster's endpoint.
    LoadBalancer,
    /// A Pod, a Service and a DNS name answer.
    PostInstall,
    /// A member that leaves is taken out of etcd, by one that stays.
    RemoveEtcdMember,
    /// The API servers are told of the members of a dedicated etcd that changed, one after the other.
    EtcdEndpoints,
    /// One surviving member becomes an etcd of its own, from its own data.
    RecoverEtcd,
    /// kubelet and containerd are restarted.
    RestartServices,
    /// The machine is rebooted, and waited for.
    Reboot,
    /// Undoes all of the above and verifies that the machine is clean.
    Reset,
    /// On a machine that was given up and came back: what serves or speaks for the cluster is stopped and disabled.
    Fence,
    /// Looks at a spare Host: facts and cleanliness.
    ProbeHost,
    /// Looks at the members of etcd: each machine says how its own is, and which others answer it.
    ProbeEtcd,
    /// Looks when the machine's certificates end: those that are served, and those in files and kubeconfigs.
    ProbeCertificates,
    /// The leaf certificates of control planes and etcd members are renewed, one machine after the other.
    RenewCertificates,
    /// What etcd's databases do not use is given back, one member after the other.
    DefragmentEtcd,
    /// One member of etcd is read, and a backup made of it in a storage.
    BackupEtcd,
    /// A backup is checked, and brought to the machines with members, as data beside theirs.
    StageBackup,
    /// API server, controller-manager and scheduler are stopped on all control planes.
    HoldControlPlane,
    /// etcd is stopped, and goes on with the data that was staged.
    RestoreEtcd,
    /// etcd is stopped, and goes on with the data that it had before it was restored.
    UndoRestore,
    /// What the step hold-control-plane stopped is started, over data that was restored.
    ReleaseControlPlane,
    /// What a restore left on the machines is removed.
    RemoveOldData,
    /// Reports all that stands against the version that is wanted; errors block, warnings do not.
    PreflightUpgrade,
    /// Programs and images of the version that is wanted are brought to the machines; what runs there stays as it is.
    Prefetch,
    /// kubeadm brings what it made on a machine to the version that is wanted; the kubelet's program comes later.
    KubeadmUpgrade,
    /// Flags and files that are configured come to the components of a control plane, or what was there before comes
    /// back.
    ControlPlaneConfiguration,
    /// The kubelet is given another configuration, and the former one again if it does not start with it.
    KubeletConfiguration,
    /// The authorities and keys that the cluster has by now come to the machine, and its certificates are from them.
    CertificateAuthorities,
    /// Containers that read the cluster's authority when they began, and not since, are started anew.
    RestartPods,
    /// The KMS plug-ins that are to encrypt answer on the machine.
    KmsPlugin,
    /// All Secrets in etcd, and what else the cluster encrypts, are encrypted as it is wanted by now; what is not to be
    /// encrypted any more is not.
    RewriteSecrets,
    /// CoreDNS is given the image of its version.
    Coredns,
    /// The programs of a Karmada control plane come to a machine, each version beside those of before.
    KarmadaPrograms,
    /// haproxy on a machine of a Karmada control plane, which gives its API server's connections to what serves on any.
    KarmadaBalancer,
    /// One component of a Karmada control plane as a service of a machine, with its files.
    KarmadaService,
    /// Looks at the services of a Karmada control plane: with what each runs, and whether it answers.
    ProbeKarmada,
    /// Reads the administrator's kubeconfig of a cluster on one of its control planes, into the Secret of the run.
    ReadKubeconfig,
    /// A playbook of the user's: `custom-<name>`.
    Custom(CustomStep),
}

impl Step {
    /// All steps of ours, in the order in which they make sense.
    pub const ALL: [Step; 45] = [
        Step::BootstrapOs,
        Step::Preflight,
        Step::Prepare,
        Step::ContainerRuntime,
        Step::Etcd,
        Step::ControlPlane,
        Step::Node,
        Step::Network,
        Step::Addons,
        Step::LoadBalancer,
        Step::PostInstall,
        Step::RemoveEtcdMember,
        Step::EtcdEndpoints,
        Step::RecoverEtcd,
        Step::RestartServices,
        Step::Reboot,
        Step::Reset,
        Step::Fence,
        Step::ProbeHost,
        Step::ProbeEtcd,
        Step::ProbeCertificates,
        Step::RenewCertificates,
        Step::DefragmentEtcd,
        Step::BackupEtcd,
        Step::StageBackup,
        Step::HoldControlPlane,
        Step::RestoreEtcd,
        Step::UndoRestore,
        Step::ReleaseControlPlane,
        Step::RemoveOldData,
        Step::PreflightUpgrade,
        Step::Prefetch,
        Step::KubeadmUpgrade,
        Step::ControlPlaneConfiguration,
        Step::KubeletConfiguration,
        Step::CertificateAuthorities,
        Step::RestartPods,
        Step::KmsPlugin,
        Step::RewriteSecrets,
        Step::Coredns,
        Step::KarmadaPrograms,
        Step::KarmadaBalancer,
        Step::KarmadaService,
        Step::ProbeKarmada,
        Step::ReadKubeconfig,
    ];

    /// The step's name, which is its playbook's file name without `.yml`.
    pub fn name(&self) -> &str {
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
            Step::LoadBalancer => "load-balancer",
            Step::PostInstall => "post-install",
            Step::RemoveEtcdMember => "remove-etcd-member",
            Step::EtcdEndpoints => "etcd-endpoints",
            Step::RecoverEtcd => "recover-etcd",
            Step::RestartServices => "restart-services",
            Step::Reboot => "reboot",
            Step::Reset => "reset",
            Step::Fence => "fence",
            Step::ProbeHost => "probe-host",
            Step::ProbeEtcd => "probe-etcd",
            Step::ProbeCertificates => "probe-certificates",
            Step::RenewCertificates => "renew-certificates",
            Step::DefragmentEtcd => "defragment-etcd",
            Step::BackupEtcd => "backup-etcd",
            Step::StageBackup => "stage-backup",
            Step::HoldControlPlane => "hold-control-plane",
            Step::RestoreEtcd => "restore-etcd",
            Step::UndoRestore => "undo-restore",
            Step::ReleaseControlPlane => "release-control-plane",
            Step::RemoveOldData => "remove-old-data",
            Step::PreflightUpgrade => "preflight-upgrade",
            Step::Prefetch => "prefetch",
            Step::KubeadmUpgrade => "kubeadm-upgrade",
            Step::ControlPlaneConfiguration => "control-plane-configuration",
            Step::KubeletConfiguration => "kubelet-configuration",
            Step::CertificateAuthorities => "certificate-authorities",
            Step::RestartPods => "restart-pods",
            Step::KmsPlugin => "kms-plugin",
            Step::RewriteSecrets => "rewrite-secrets",
            Step::Coredns => "coredns",
            Step::KarmadaPrograms => "karmada-programs",
            Step::KarmadaBalancer => "karmada-balancer",
            Step::KarmadaService => "karmada-service",
            Step::ProbeKarmada => "probe-karmada",
            Step::ReadKubeconfig => "read-kubeconfig",
            Step::Custom(custom) => &custom.0,
        }
    }

    /// The playbook of the user's that the step is; none for a step of ours.
    pub fn custom(&self) -> Option<&CustomStep> {
        if let Step::Custom(custom) = self {
            return Some(custom);
        }
        None
    }

    /// The step of this name.
    pub fn from_name(name: &str) -> Option<Step> {
        match name.strip_prefix(CustomStep::PREFIX) {
            Some(playbook) => CustomStep::new(playbook).map(Step::Custom),
            None => Step::ALL.into_iter().find(|step| step.name() == name),
        }
    }
}

/// A step that is a playbook of the user's: its name, with the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CustomStep(ArrayString<48>);

impl CustomStep {
    /// What every such step's name begins with.
    pub const PREFIX: &str = "custom-";
    /// The longest name of a playbook.
    pub const NAME_LIMIT: usize = 40;

    /// The step of the playbook of this name: an RFC 1123 label of at most 40 characters.
    pub fn new(playbook: &str) -> Option<Self> {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let fits = (1..=Self::NAME_LIMIT).contains(&playbook.len());
        if !fits || !playbook.chars().all(legal) || playbook.starts_with('-') || playbook.ends_with('-') {
            return None;
        }
        let mut name = ArrayString::new();
        name.try_push_str(Self::PREFIX).ok()?;
        name.try_push_str(playbook).ok()?;
        Some(Self(name))
    }

    /// Name of the playbook.
    pub fn playbook(&self) -> &str {
        self.0.strip_prefix(Self::PREFIX).unwrap_or(&self.0)
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Step::from_name(&name).ok_or_else(|| D::Error::custom(format!("there is no step {name:?}")))
    }
}

impl JsonSchema for Step {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Step".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = Step::ALL.iter().map(|step| step.name().to_owned());
        let names: Vec<String> = names.collect();
        json_schema!({
            "type": "string",
            "maxLength": 48,
            "pattern": format!("^({}|custom-[a-z0-9]([-a-z0-9]{{0,38}}[a-z0-9])?)$", names.join("|")),
            "description": format!("`{}`, or `custom-<name>` for a playbook of the user's.", names.join("`, `"))
        })
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
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

#[cfg(test)]
mod tests {
    use super::{CustomStep, Step};

    #[test]
    fn every_name_leads_back_to_its_step() {
        let custom = CustomStep::new("check-disks").map(Step::Custom);
        assert_eq!(custom.unwrap().name(), "custom-check-disks");
        for step in Step::ALL.into_iter().chain(custom) {
            assert_eq!(Step::from_name(step.name()), Some(step));
            let text = serde_json::to_string(&step).unwrap();
            assert_eq!(serde_json::from_str::<Step>(&text).unwrap(), step);
        }
    }

    #[test]
    fn a_name_that_is_no_label_is_no_step() {
        let long = "a".repeat(41);
        for name in ["", "-a", "a-", "A", "a/b", "../a", "a.b", "a b", &long] {
            assert_eq!(CustomStep::new(name), None, "{name}");
            assert_eq!(Step::from_name(&format!("custom-{name}")), None, "{name}");
        }
    }
}
