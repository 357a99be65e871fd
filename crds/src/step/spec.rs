//! What a step and an intent may do: one table, read by the schema, the planners and the executor alike.

use super::{CustomStep, Intent, Step};
use Intent::{
    Backup, Compare, Configure, Custom, Install, Join, Maintain, Prefetch, Prepare, Probe, Remove, Renew, Repair,
    Reset, Restore, Stage, Upgrade,
};

/// What a step does, and in which runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepSpec {
    /// The intents whose runs may have it.
    pub intents: &'static [Intent],
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

/// What the runs of an intent are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// They bring machines to what their cluster wants, with its keys, artifacts and manifests.
    Provisions,
    /// They take machines out of a cluster, also while it is being deleted.
    Removes,
    /// They copy what the cluster holds, with its keys, to a storage or back beside it.
    Copies,
    /// They renew the certificates that its machines have, with those of etcd that are made for them, and need none of
    /// its artifacts or manifests.
    Renews,
    /// They keep in order what the cluster has, and need none of its keys, artifacts or manifests.
    Maintains,
    /// They play the probes of their steps, and nothing else: what machines have is compared with what their cluster
    /// wants, without its keys.
    Compares,
    /// They change nothing.
    Looks,
}

impl Effect {
    /// Whether the runs are told all that the cluster wants of its machines: components, artifacts, manifests, files.
    pub fn needs_wanted(self) -> bool {
        self == Effect::Provisions || self == Effect::Compares
    }
}

/// How the runs of an intent hold their cluster's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockUse {
    /// Not at all.
    None,
    /// Beside others where all their Hosts are workers', and alone elsewhere. While the cluster is installed, its
    /// workers are no part of it yet: what brings them to it stands beside the install, too.
    SharedOnWorkers,
    /// Beside others that do the same, and those on workers.
    Shared,
    /// Alone.
    Exclusive,
}

/// What the runs of an intent do, and how that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntentSpec {
    /// The intent in lower case, as it stands in names and metrics.
    pub slug: &'static str,
    /// What a run does with machines, in messages: `installing`.
    pub doing: &'static str,
    /// What a machine is when it is done: `installed`.
    pub done: &'static str,
    /// What it works on, one and many: `machine`, `machines`.
    pub things: (&'static str, &'static str),
    /// What the runs are for.
    pub effect: Effect,
    /// How they hold the lock.
    pub lock: LockUse,
    /// They bring the version that is wanted to machines; all others keep to the one whose rollout has begun.
    pub brings_version: bool,
}

impl Step {
    /// What the step does, and in which runs.
    pub const fn spec(&self) -> StepSpec {
        const CHANGES: StepSpec = StepSpec {
            intents: &[],
            read_only: false,
            each_for_itself: false,
            downloads: false,
            always_played: false,
            disruptive: false,
        };
        const LOOKS: StepSpec = StepSpec {
            intents: &[Probe, Custom],
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
            Step::ProbeHost | Step::ProbeEtcd | Step::ProbeCertificates => LOOKS,
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
            Step::PreflightUpgrade => StepSpec {
                intents: &[Prefetch, Custom],
                read_only: true,
                each_for_itself: true,
                downloads: true,
                always_played: true,
                disruptive: false,
            },
            Step::Prefetch => StepSpec { intents: &[Prefetch], each_for_itself: true, downloads: true, ..CHANGES },
            Step::KubeadmUpgrade => StepSpec { intents: &[Upgrade], downloads: true, disruptive: true, ..CHANGES },
            Step::ControlPlaneConfiguration | Step::CertificateAuthorities | Step::RestartPods => {
                StepSpec { intents: &[Configure, Custom], disruptive: true, ..CHANGES }
            }
            Step::KmsPlugin => StepSpec { intents: &[Configure, Custom], read_only: true, ..CHANGES },
            Step::RewriteSecrets => StepSpec { intents: &[Configure, Custom], ..CHANGES },
            Step::Coredns => StepSpec { intents: &[Configure, Custom], downloads: true, disruptive: true, ..CHANGES },
            Step::Custom(_) => StepSpec { intents: &[Install, Join, Upgrade, Remove, Reset, Custom], ..CHANGES },
        }
    }

    /// Whether a run of this intent may have the step.
    pub fn is_allowed_in(&self, intent: Intent) -> bool {
        self.spec().intents.contains(&intent)
    }
}

impl Intent {
    /// All intents.
    pub const ALL: [Intent; 17] = [
        Intent::Install,
        Intent::Prepare,
        Intent::Join,
        Intent::Remove,
        Intent::Reset,
        Intent::Repair,
        Intent::Prefetch,
        Intent::Upgrade,
        Intent::Renew,
        Intent::Configure,
        Intent::Maintain,
        Intent::Backup,
        Intent::Stage,
        Intent::Restore,
        Intent::Compare,
        Intent::Probe,
        Intent::Custom,
    ];

    /// What the runs of the intent do.
    pub const fn spec(self) -> IntentSpec {
        /// Alone on a cluster.
        const ALONE: IntentSpec = IntentSpec {
            slug: "",
            doing: "",
            done: "done",
            things: ("machine", "machines"),
            effect: Effect::Provisions,
            lock: LockUse::Exclusive,
            brings_version: false,
        };
        /// Beside others, where it works on workers.
        const BESIDE: IntentSpec = IntentSpec { lock: LockUse::SharedOnWorkers, ..ALONE };
        const HOSTS: (&str, &str) = ("host", "hosts");
        match self {
            Intent::Install => {
                IntentSpec { slug: "install", doing: "installing", done: "installed", brings_version: true, ..ALONE }
            }
            Intent::Prefetch => {
                IntentSpec { slug: "prefetch", doing: "prefetching on", done: "ready", lock: LockUse::Shared, ..ALONE }
            }
            Intent::Upgrade => {
                IntentSpec { slug: "upgrade", doing: "upgrading", done: "upgraded", brings_version: true, ..BESIDE }
            }
            Intent::Renew => IntentSpec {
                slug: "renew",
                doing: "renewing certificates of",
                done: "renewed",
                things: HOSTS,
                effect: Effect::Renews,
                ..ALONE
            },
            Intent::Configure => IntentSpec { slug: "configure", doing: "configuring", done: "configured", ..BESIDE },
            Intent::Maintain => IntentSpec {
                slug: "maintain",
                doing: "defragmenting etcd of",
                done: "defragmented",
                things: HOSTS,
                effect: Effect::Maintains,
                ..ALONE
            },
            Intent::Backup => IntentSpec {
                slug: "backup",
                doing: "backing up etcd of",
                done: "read",
                things: HOSTS,
                effect: Effect::Copies,
                lock: LockUse::Shared,
                ..ALONE
            },
            Intent::Stage => IntentSpec {
                slug: "stage",
                doing: "staging a backup on",
                done: "ready",
                things: HOSTS,
                effect: Effect::Copies,
                lock: LockUse::Shared,
                ..ALONE
            },
            Intent::Restore => {
                IntentSpec { slug: "restore", doing: "restoring etcd of", done: "restored", things: HOSTS, ..ALONE }
            }
            Intent::Prepare => IntentSpec { slug: "prepare", doing: "preparing", done: "prepared", ..BESIDE },
            Intent::Join => IntentSpec { slug: "join", doing: "joining", done: "joined", ..BESIDE },
            Intent::Repair => IntentSpec { slug: "repair", doing: "repairing", done: "repaired", ..BESIDE },
            Intent::Custom => IntentSpec { slug: "custom", doing: "running steps on", things: HOSTS, ..BESIDE },
            // What comes before a machine is removed removes none: its hooks, or its member of etcd.
            Intent::Remove => {
                IntentSpec { slug: "remove", doing: "removing", things: HOSTS, effect: Effect::Removes, ..BESIDE }
            }
            Intent::Reset => {
                IntentSpec { slug: "reset", doing: "cleaning", done: "clean", effect: Effect::Removes, ..BESIDE }
            }
            Intent::Compare => IntentSpec {
                slug: "compare",
                doing: "comparing",
                done: "compared",
                effect: Effect::Compares,
                lock: LockUse::Shared,
                ..ALONE
            },
            Intent::Probe => IntentSpec {
                slug: "probe",
                doing: "probing",
                done: "answered",
                things: HOSTS,
                effect: Effect::Looks,
                lock: LockUse::None,
                ..ALONE
            },
        }
    }

    /// Whether its runs leave machines as they are: they only look at them.
    pub fn changes_nothing(self) -> bool {
        let effect = self.spec().effect;
        effect == Effect::Looks || effect == Effect::Compares
    }

    /// The names of our steps that a run of the intent may have.
    pub fn step_names(self) -> Vec<&'static str> {
        let ours = Step::ALL.iter().filter(|step| step.is_allowed_in(self));
        ours.map(Step::name).collect()
    }

    /// Whether its runs may have playbooks of the user's.
    pub fn allows_custom(self) -> bool {
        CustomStep::new("x").is_some_and(|step| Step::Custom(step).is_allowed_in(self))
    }
}
