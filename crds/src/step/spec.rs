//! What a step does, and in which runs: one table, read by the schema, the planners and the executor alike.

use super::{Intent, Step};
use crate::ClusterKind::{self, ClusterDeployment, KarmadaDeployment};
use Intent::{
    Backup, Compare, Configure, Custom, Install, Join, Maintain, Prefetch, Prepare, Probe, Remove, Renew, Repair,
    Reset, Restore, Stage, Upgrade,
};

/// What a step does, and in which runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepSpec {
    /// The intents whose runs may have it.
    pub intents: &'static [Intent],
    /// The kinds of clusters on whose machines it has something to do.
    pub kinds: &'static [ClusterKind],
    /// It changes nothing on the machines, so it needs neither the cluster's lock nor a fence.
    pub read_only: bool,
    /// A machine that fails stops no other one, whatever its role.
    pub each_for_itself: bool,
    /// It takes programs or images from the artifact source, or looks what is in it.
    pub downloads: bool,
    /// A run that resumes another plays it in any case: its probe does not prove that it is done.
    pub always_played: bool,
    /// Where it brings an edited setting to a machine that serves, something restarts there that does.
    pub disruptive: bool,
}

impl Step {
    /// What the step does, and in which runs.
    pub const fn spec(&self) -> StepSpec {
        StepSpec { kinds: self.kinds(), ..self.in_runs() }
    }

    /// The kinds of clusters on whose machines it has something to do.
    const fn kinds(&self) -> &'static [ClusterKind] {
        match self {
            Step::BootstrapOs
            | Step::Preflight
            | Step::Prepare
            | Step::Etcd
            | Step::LoadBalancer
            | Step::RemoveEtcdMember
            | Step::DefragmentEtcd
            | Step::BackupEtcd
            | Step::StageBackup
            | Step::RestoreEtcd
            | Step::UndoRestore
            | Step::RemoveOldData
            | Step::RestartServices
            | Step::Reboot
            | Step::Reset
            | Step::Fence
            | Step::ProbeHost
            | Step::ProbeEtcd
            | Step::ProbeCertificates
            | Step::ReadKubeconfig
            | Step::Custom(_) => &[ClusterDeployment, KarmadaDeployment],
            Step::KarmadaPrograms | Step::KarmadaBalancer | Step::KarmadaService | Step::ProbeKarmada => {
                &[KarmadaDeployment]
            }
            // They work on Nodes, or on a control plane of kubeadm's; or, of etcd, together with such steps.
            Step::ContainerRuntime
            | Step::ControlPlane
            | Step::Node
            | Step::Network
            | Step::Addons
            | Step::PostInstall
            | Step::EtcdEndpoints
            | Step::RecoverEtcd
            | Step::RenewCertificates
            | Step::HoldControlPlane
            | Step::ReleaseControlPlane
            | Step::PreflightUpgrade
            | Step::Prefetch
            | Step::KubeadmUpgrade
            | Step::ControlPlaneConfiguration
            | Step::KubeletConfiguration
            | Step::CertificateAuthorities
            | Step::RestartPods
            | Step::KmsPlugin
            | Step::RewriteSecrets
            | Step::Coredns => &[ClusterDeployment],
        }
    }

    /// What the step does, and in which runs, whatever the cluster is.
    const fn in_runs(&self) -> StepSpec {
        const CHANGES: StepSpec = StepSpec {
            intents: &[],
            kinds: &[],
            read_only: false,
            each_for_itself: false,
            downloads: false,
            always_played: false,
            disruptive: false,
        };
        const LOOKS: StepSpec = StepSpec {
            intents: &[Probe, Custom],
            kinds: &[],
            read_only: true,
            each_for_itself: true,
            downloads: false,
            always_played: true,
            disruptive: false,
        };
        match self {
            Step::BootstrapOs => StepSpec { intents: &[Install, Prepare, Join, Configure, Compare, Custom], ..CHANGES },
            Step::Prepare => StepSpec { intents: &[Install, Prepare, Join, Configure, Compare, Custom], ..CHANGES },
            Step::KubeletConfiguration => StepSpec { intents: &[Configure, Custom], disruptive: true, ..CHANGES },
            Step::ContainerRuntime => StepSpec {
                intents: &[Install, Prepare, Join, Upgrade, Configure, Compare, Custom],
                downloads: true,
                disruptive: true,
                ..CHANGES
            },
            Step::Preflight => {
                StepSpec { intents: &[Install, Prepare, Join, Custom], read_only: true, downloads: true, ..CHANGES }
            }
            Step::Network => StepSpec { intents: &[Install, Join, Restore, Configure, Compare, Custom], ..CHANGES },
            Step::Etcd => StepSpec {
                intents: &[Install, Join, Upgrade, Configure, Compare, Custom],
                downloads: true,
                disruptive: true,
                ..CHANGES
            },
            Step::ControlPlane => {
                StepSpec { intents: &[Install, Join, Upgrade, Configure, Compare, Custom], downloads: true, ..CHANGES }
            }
            Step::Node => StepSpec {
                intents: &[Join, Upgrade, Configure, Compare, Custom],
                downloads: true,
                disruptive: true,
                ..CHANGES
            },
            Step::Addons => StepSpec { intents: &[Install, Upgrade, Configure, Custom], ..CHANGES },
            Step::LoadBalancer => StepSpec { intents: &[Install, Join, Repair, Configure, Compare, Custom], ..CHANGES },
            Step::PostInstall => {
                let intents = &[Install, Join, Upgrade, Restore, Custom];
                StepSpec { intents, downloads: true, always_played: true, ..CHANGES }
            }
            // These destroy data, or a member's vote: only a planner knows when that is right.
            Step::RemoveEtcdMember => StepSpec { intents: &[Remove], ..CHANGES },
            Step::RecoverEtcd => StepSpec { intents: &[Repair], ..CHANGES },
            Step::Reset => {
                StepSpec { intents: &[Remove, Reset], each_for_itself: true, always_played: true, ..CHANGES }
            }
            Step::Fence => StepSpec { intents: &[Remove], each_for_itself: true, ..CHANGES },
            Step::EtcdEndpoints => {
                StepSpec { intents: &[Repair, Configure, Compare, Custom], disruptive: true, ..CHANGES }
            }
            Step::RestartServices => {
                StepSpec { intents: &[Repair, Restore, Custom], always_played: true, disruptive: true, ..CHANGES }
            }
            Step::Reboot => StepSpec { intents: &[Repair, Custom], always_played: true, disruptive: true, ..CHANGES },
            Step::ProbeHost | Step::ProbeEtcd | Step::ProbeCertificates | Step::ProbeKarmada => LOOKS,
            // What it reads is nobody's but the operator's: only the run that it makes for that has it.
            Step::ReadKubeconfig => StepSpec { intents: &[Probe], ..LOOKS },
            Step::RenewCertificates => StepSpec { intents: &[Renew], ..CHANGES },
            // Each member stands still for a while: only a planner knows that all others are well.
            Step::DefragmentEtcd => StepSpec { intents: &[Maintain], always_played: true, ..CHANGES },
            // It reads with the cluster's keys, and nothing may change the members meanwhile: it needs the lock.
            Step::BackupEtcd => StepSpec { intents: &[Backup], each_for_itself: true, always_played: true, ..CHANGES },
            // All machines with a member, or none: what one of them has beside its data is of no use.
            Step::StageBackup => StepSpec { intents: &[Install, Stage], downloads: true, ..CHANGES },
            // These replace data: only a planner knows when that is right.
            Step::HoldControlPlane
            | Step::RestoreEtcd
            | Step::UndoRestore
            | Step::ReleaseControlPlane
            | Step::RemoveOldData => StepSpec { intents: &[Restore], ..CHANGES },
            Step::PreflightUpgrade => StepSpec { intents: &[Prefetch, Custom], downloads: true, ..LOOKS },
            Step::Prefetch => StepSpec { intents: &[Prefetch], each_for_itself: true, downloads: true, ..CHANGES },
            Step::KubeadmUpgrade => StepSpec { intents: &[Upgrade], downloads: true, disruptive: true, ..CHANGES },
            Step::ControlPlaneConfiguration | Step::CertificateAuthorities | Step::RestartPods => {
                StepSpec { intents: &[Configure, Custom], disruptive: true, ..CHANGES }
            }
            Step::KmsPlugin => StepSpec { intents: &[Configure, Custom], read_only: true, ..CHANGES },
            Step::RewriteSecrets => StepSpec { intents: &[Configure, Custom], ..CHANGES },
            Step::Coredns => StepSpec { intents: &[Configure, Custom], downloads: true, disruptive: true, ..CHANGES },
            // What runs is left as it is: another version lies beside it, so that it may be brought ahead.
            Step::KarmadaPrograms => StepSpec {
                intents: &[Install, Join, Prefetch, Upgrade, Configure, Repair, Custom],
                downloads: true,
                ..CHANGES
            },
            // Only a planner knows what a machine is to have of a part.
            Step::KarmadaBalancer => StepSpec { intents: &[Install, Join, Upgrade, Configure, Repair], ..CHANGES },
            Step::KarmadaService => {
                let intents = &[Install, Join, Upgrade, Configure, Repair, Restore];
                StepSpec { intents, disruptive: true, ..CHANGES }
            }
            Step::Custom(_) => StepSpec { intents: &[Install, Join, Upgrade, Remove, Reset, Custom], ..CHANGES },
        }
    }

    /// Whether it has something to do on machines of such a cluster.
    pub fn is_for(&self, kind: ClusterKind) -> bool {
        self.spec().kinds.contains(&kind)
    }

    /// Whether a run of this intent may have the step.
    pub fn is_allowed_in(&self, intent: Intent) -> bool {
        self.spec().intents.contains(&intent)
    }
}
