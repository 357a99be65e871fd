//! What runs are for, and what an intent's runs may do: one table, read by the schema, the planners and the executor
//! alike.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CustomStep, Step};

/// What a run is for.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
pub enum Intent {
    /// Infrastructure and control plane of a new cluster.
    Install,
    /// Workers are made ready to join, while the control plane of their new cluster is installed.
    Prepare,
    /// Workers join.
    Join,
    /// Machines leave a cluster that goes on.
    Remove,
    /// Machines are cleaned.
    Reset,
    /// Something is done to a sick machine, or to an etcd without a majority.
    Repair,
    /// What a newer Kubernetes version needs is brought to machines; what runs there stays as it is.
    Prefetch,
    /// Machines are brought to a newer Kubernetes version.
    Upgrade,
    /// Certificates are renewed.
    Renew,
    /// Machines, or the cluster's manifests, are brought to settings that were changed.
    Configure,
    /// etcd's databases are defragmented.
    Maintain,
    /// A backup of etcd is taken.
    Backup,
    /// A backup is checked and laid ready on the machines; what they serve stays as it is.
    Stage,
    /// etcd is set back to a backup that lies ready, or to what it had before.
    Restore,
    /// Machines are compared with what their cluster wants: only the probes of the steps are played.
    Compare,
    /// Spare Hosts are looked at, or machines of a cluster whose API does not tell how they are.
    Probe,
    /// A one-off of an administrator.
    Custom,
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
    /// Whether the runs have all that the cluster wants of its machines: components, artifacts, manifests, files.
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
