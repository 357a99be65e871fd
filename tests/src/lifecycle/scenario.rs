//! What is played: each scenario is one promise, on the cluster of its profile.

mod addons;
mod addons_fleet;
mod beginnings;
mod comeback;
mod control_plane;
mod dedicated;
mod drifted;
mod ended;
mod ends;
mod failover;
mod hooks;
mod large;
mod leaving;
mod losses;
mod metadata;
mod moments;
mod race;
mod requested;
mod restores;
mod rotate;
mod schedule;
mod upgrade;
mod versions;
mod windows;
mod workers;

pub use losses::remediate;

use std::time::{Duration, Instant};

use anyhow::Result;

use super::profile::Profile;
use super::stage::Stage;

/// What was seen of a scenario that held.
pub struct Seen {
    /// From the wish, or the hit, to the end that was promised.
    pub took: Duration,
    /// For the table.
    pub text: String,
}

impl Seen {
    fn since(began: Instant, text: impl Into<String>) -> Self {
        Self { took: began.elapsed(), text: text.into() }
    }
}

/// A scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LifecycleScenario {
    /// Two workers more.
    Expand,
    /// More machines are requested than there are.
    Request,
    /// One worker less, with a PodDisruptionBudget in the way.
    ShrinkWithBudget,
    /// An Addon is applied, kept and removed.
    Addons,
    /// An Addon on two clusters, one of which is dead for a while.
    AddonsFleet,
    /// A machine that was cleaned serves again.
    Reuse,
    /// Hooks around join and remove.
    Hooks,
    /// A worker is killed.
    ReplaceWorker,
    /// A dead machine is removed by a person's word.
    ForceRemove,
    /// Two clusters want the same Hosts.
    Race,
    /// All machines are lost.
    Rebuild,
    /// The machines of a cluster that is deleted are dead.
    DeleteDead,
    /// From one control plane to three.
    Grow,
    /// The first control plane is killed.
    ReplaceFirst,
    /// From three control planes to five, and back to three.
    FiveAndBack,
    /// Back to one control plane.
    ShrinkControlPlane,
    /// Dedicated etcd, from one member to three.
    GrowEtcd,
    /// A machine of dedicated etcd is killed.
    ReplaceEtcd,
    /// The control plane that holds the endpoint's address is killed.
    Failover,
    /// Backups on a schedule, of which two are kept.
    BackupSchedule,
    /// The executor is killed while a restore holds the control plane.
    RestoreInterrupted,
    /// The executor is killed after a restore has replaced the data, and the restore is undone.
    RestoreUndone,
    /// Machines came and went after the backup.
    RestoreAcrossJoin,
    /// Restores of random moments.
    RestoreMoments,
    /// A large database.
    RestoreLarge,
    /// The metadata cluster is set back to a snapshot of before.
    MetadataYesterday,
    /// A restore of dedicated etcd.
    RestoreDedicated,
    /// All machines are lost, and the newest backup is not.
    RestoreLatest,
    /// A cluster moves to other machines, by a backup.
    Migrate,
    /// Another version of etcd alone.
    UpgradeEtcd,
    /// A later patch of Kubernetes.
    UpgradePatch,
    /// The next minor of Kubernetes.
    Upgrade,
    /// And the next.
    UpgradeNewer,
    /// The next minor of a cluster with one control plane and dedicated etcd.
    UpgradeDedicated,
    /// A setting that restarts something, with a window that opens later.
    Windows,
    /// A machine is changed by hand.
    Drift,
    /// All authorities and the service-account key.
    RotateAuthorities,
    /// All leaves of all control planes have ended.
    CertificatesEnded,
    /// Authorities of a cluster with one control plane and dedicated etcd.
    RotateDedicated,
    /// Authorities of control planes that hold the endpoint themselves.
    RotateKeepalived,
}

impl LifecycleScenario {
    /// All, in the order in which those of a profile are played.
    pub const ALL: [LifecycleScenario; 40] = [
        LifecycleScenario::Expand,
        LifecycleScenario::Request,
        LifecycleScenario::ShrinkWithBudget,
        LifecycleScenario::Addons,
        LifecycleScenario::AddonsFleet,
        LifecycleScenario::Reuse,
        LifecycleScenario::Hooks,
        LifecycleScenario::ReplaceWorker,
        LifecycleScenario::ForceRemove,
        LifecycleScenario::Race,
        LifecycleScenario::Rebuild,
        LifecycleScenario::DeleteDead,
        LifecycleScenario::Grow,
        LifecycleScenario::ReplaceFirst,
        LifecycleScenario::FiveAndBack,
        LifecycleScenario::ShrinkControlPlane,
        LifecycleScenario::GrowEtcd,
        LifecycleScenario::ReplaceEtcd,
        LifecycleScenario::Failover,
        LifecycleScenario::BackupSchedule,
        LifecycleScenario::RestoreInterrupted,
        LifecycleScenario::RestoreUndone,
        LifecycleScenario::RestoreAcrossJoin,
        LifecycleScenario::RestoreMoments,
        LifecycleScenario::RestoreLarge,
        LifecycleScenario::MetadataYesterday,
        LifecycleScenario::RestoreDedicated,
        LifecycleScenario::RestoreLatest,
        LifecycleScenario::Migrate,
        LifecycleScenario::UpgradeEtcd,
        LifecycleScenario::UpgradePatch,
        LifecycleScenario::Upgrade,
        LifecycleScenario::UpgradeNewer,
        LifecycleScenario::UpgradeDedicated,
        LifecycleScenario::RotateDedicated,
        LifecycleScenario::Windows,
        LifecycleScenario::Drift,
        LifecycleScenario::RotateAuthorities,
        LifecycleScenario::CertificatesEnded,
        LifecycleScenario::RotateKeepalived,
    ];

    /// Those that every run of all tests has.
    pub const SAMPLE: [LifecycleScenario; 4] = [
        LifecycleScenario::Expand,
        LifecycleScenario::ShrinkWithBudget,
        LifecycleScenario::ReplaceWorker,
        LifecycleScenario::Grow,
    ];

    /// Its name on the command line and in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Expand => "expand",
            Self::Request => "request",
            Self::ShrinkWithBudget => "shrink-with-budget",
            Self::Addons => "addons",
            Self::AddonsFleet => "addons-fleet",
            Self::Reuse => "reuse",
            Self::Hooks => "hooks",
            Self::ReplaceWorker => "replace-worker",
            Self::ForceRemove => "force-remove",
            Self::Race => "race",
            Self::Rebuild => "rebuild",
            Self::DeleteDead => "delete-dead",
            Self::Grow => "grow",
            Self::ReplaceFirst => "replace-first",
            Self::FiveAndBack => "five-and-back",
            Self::ShrinkControlPlane => "shrink-control-plane",
            Self::GrowEtcd => "grow-etcd",
            Self::ReplaceEtcd => "replace-etcd",
            Self::Failover => "failover",
            Self::BackupSchedule => "backup-schedule",
            Self::RestoreInterrupted => "restore-interrupted",
            Self::RestoreUndone => "restore-undone",
            Self::RestoreAcrossJoin => "restore-across-join",
            Self::RestoreMoments => "restore-moments",
            Self::RestoreLarge => "restore-large",
            Self::MetadataYesterday => "metadata-yesterday",
            Self::RestoreDedicated => "restore-dedicated",
            Self::RestoreLatest => "restore-latest",
            Self::Migrate => "migrate",
            Self::UpgradeEtcd => "upgrade-etcd",
            Self::UpgradePatch => "upgrade-patch",
            Self::Upgrade => "upgrade",
            Self::UpgradeNewer => "upgrade-newer",
            Self::UpgradeDedicated => "upgrade-dedicated",
            Self::Windows => "windows",
            Self::Drift => "drift",
            Self::RotateAuthorities => "rotate-authorities",
            Self::CertificatesEnded => "certificates-ended",
            Self::RotateDedicated => "rotate-dedicated",
            Self::RotateKeepalived => "rotate-keepalived",
        }
    }

    /// The scenario of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scenario| scenario.name() == name)
    }

    /// What must hold.
    pub fn promise(self) -> &'static str {
        match self {
            Self::Expand => "two workers more are Ready, and no other machine was touched",
            Self::Request => "what is requested beside the count joins as far as there are Hosts, and is given back",
            Self::ShrinkWithBudget => {
                "a worker leaves once its Pods may, says what is in the way until then, and is clean in the pool"
            }
            Self::Addons => "an Addon runs on the cluster in two versions, is put back, and goes with all it had",
            Self::AddonsFleet => {
                "metrics-server serves on two clusters, a bad version stops, and a dead cluster holds up nobody"
            }
            Self::Reuse => "a machine that left is clean, and serves again",
            Self::Hooks => "custom playbooks run before and after join, drain and remove, with their variables",
            Self::ReplaceWorker => "a spare machine takes the place of a worker that was killed",
            Self::ForceRemove => {
                "a dead machine is forgotten without SSH, and its Host is quarantined until it proves clean"
            }
            Self::Race => "each Host has one owner, and the cluster that lacks one says so and gets the next",
            Self::Rebuild => {
                "a cluster all of whose machines are lost says so, and is installed anew with the same authorities"
            }
            Self::DeleteDead => "a cluster whose machines are all dead can be deleted",
            Self::Grow => {
                "three control planes serve, and a client that wrote meanwhile waited for an election at most"
            }
            Self::ReplaceFirst => "another machine takes the place of the first control plane that was killed",
            Self::FiveAndBack => {
                "five control planes serve, then three again without anybody's approval, under a client that writes"
            }
            Self::ShrinkControlPlane => "two control planes leave after an approval, members first, and one serves",
            Self::GrowEtcd => {
                "dedicated etcd grows to three members, and three API servers learn of each under a client that writes"
            }
            Self::ReplaceEtcd => "another machine takes the place of a machine of dedicated etcd that was killed",
            Self::Failover => "with the holder of the endpoint killed, the API answers again within 10 s",
            Self::BackupSchedule => "a cluster is backed up each minute, and the oldest backup goes from the bucket",
            Self::RestoreInterrupted => "a restore whose executor is killed waits for an approval, and goes on",
            Self::RestoreUndone => "a restore whose executor is killed goes back to the data of before by an approval",
            Self::RestoreAcrossJoin => "after a restore exactly the machines of today are Nodes, all Ready",
            Self::RestoreMoments => {
                "all that was acknowledged before a backup is there after its restore, and nothing that came later"
            }
            Self::RestoreLarge => "a large database is backed up and restored; its figures are beside those by hand",
            Self::MetadataYesterday => {
                "a metadata cluster that is set back touches no machine until what contradicts it is approved"
            }
            Self::RestoreDedicated => "dedicated etcd of three members is restored under a client that writes",
            Self::RestoreLatest => "a cluster all of whose machines are lost is there again with its newest backup",
            Self::Migrate => {
                "a cluster of another name in another namespace, on other machines, goes on from a backup once approved"
            }
            Self::UpgradeEtcd => {
                "etcd alone has the version that the spec names, a version that the bundle lacks touches nothing, and what is taken back goes"
            }
            Self::UpgradePatch => "every machine has a later patch of Kubernetes, and no Pod was moved or restarted",
            Self::Upgrade => {
                "every machine has the next minor of Kubernetes, and a client and a budget had what they may ask for"
            }
            Self::UpgradeNewer => "every machine has the minor after that",
            Self::UpgradeDedicated => {
                "one control plane, a worker and three machines of etcd have what goes with the next minor"
            }
            Self::Windows => "what restarts an API server waits for its window, and is done in it",
            Self::Drift => "what somebody changed on a machine is named, and changed back where that is wanted",
            Self::CertificatesEnded => "certificates that have all ended are renewed, though no API is reached",
            Self::RotateDedicated => {
                "the authorities of etcd on machines of its own and of one control plane are rotated"
            }
            Self::RotateKeepalived => {
                "the authority is rotated under an endpoint that the control planes hold themselves"
            }
            Self::RotateAuthorities => {
                "each authority and key is rotated, what the former one signed is refused, and Secrets are encrypted with the next one, then ConfigMaps too, and by a KMS plug-in"
            }
        }
    }

    /// The cluster that it is played on.
    pub fn profile(self) -> Profile {
        match self {
            Self::Expand
            | Self::Request
            | Self::ShrinkWithBudget
            | Self::Addons
            | Self::Reuse
            | Self::Hooks
            | Self::ReplaceWorker
            | Self::ForceRemove => Profile::Workers,
            Self::Race => Profile::Race,
            Self::AddonsFleet => Profile::Addons,
            Self::Rebuild | Self::DeleteDead => Profile::Loss,
            Self::Grow | Self::ReplaceFirst | Self::FiveAndBack | Self::ShrinkControlPlane => Profile::ControlPlane,
            Self::GrowEtcd | Self::ReplaceEtcd => Profile::Dedicated,
            Self::Failover => Profile::Keepalived,
            Self::BackupSchedule
            | Self::RestoreInterrupted
            | Self::RestoreUndone
            | Self::RestoreAcrossJoin
            | Self::RestoreMoments
            | Self::RestoreLarge
            | Self::MetadataYesterday => Profile::Restores,
            Self::RestoreDedicated => Profile::DedicatedRestores,
            Self::RestoreLatest | Self::Migrate => Profile::Beginnings,
            Self::UpgradeEtcd | Self::UpgradePatch | Self::Upgrade | Self::UpgradeNewer => Profile::OlderMinor,
            Self::UpgradeDedicated | Self::RotateDedicated => Profile::OlderDedicated,
            Self::Windows | Self::Drift | Self::RotateAuthorities | Self::CertificatesEnded => Profile::Changes,
            Self::RotateKeepalived => Profile::KeepalivedChanges,
        }
    }

    /// Plays it.
    pub async fn play(self, stage: &mut Stage<'_>) -> Result<Seen> {
        match self {
            Self::Expand => workers::expand(stage).await,
            Self::Request => requested::partly(stage).await,
            Self::ShrinkWithBudget => leaving::shrink_with_budget(stage).await,
            Self::Addons => addons::kept(stage).await,
            Self::AddonsFleet => addons_fleet::across_clusters(stage).await,
            Self::Reuse => workers::reuse(stage).await,
            Self::Hooks => hooks::around_join_and_remove(stage).await,
            Self::ReplaceWorker => losses::replace_worker(stage).await,
            Self::ForceRemove => losses::force_remove(stage).await,
            Self::Race => race::two_for_three(stage).await,
            Self::Rebuild => ends::rebuild(stage).await,
            Self::DeleteDead => ends::delete_dead(stage).await,
            Self::Grow => control_plane::grow(stage).await,
            Self::ReplaceFirst => control_plane::replace_first(stage).await,
            Self::FiveAndBack => control_plane::five_and_back(stage).await,
            Self::ShrinkControlPlane => control_plane::shrink(stage).await,
            Self::GrowEtcd => dedicated::grow(stage).await,
            Self::ReplaceEtcd => dedicated::replace(stage).await,
            Self::Failover => failover::failover(stage).await,
            Self::BackupSchedule => schedule::keeps_two(stage).await,
            Self::RestoreInterrupted => restores::interrupted(stage).await,
            Self::RestoreUndone => restores::undone(stage).await,
            Self::RestoreAcrossJoin => restores::across_join(stage).await,
            Self::RestoreMoments => moments::at_random(stage).await,
            Self::RestoreLarge => large::backup_and_restore(stage).await,
            Self::MetadataYesterday => metadata::yesterday(stage).await,
            Self::RestoreDedicated => restores::dedicated(stage).await,
            Self::RestoreLatest => beginnings::restore_latest(stage).await,
            Self::Migrate => beginnings::migrate(stage).await,
            Self::UpgradeEtcd => versions::etcd(stage).await,
            Self::UpgradePatch => upgrade::patch(stage).await,
            Self::Upgrade | Self::UpgradeDedicated => upgrade::next_minor(stage).await,
            Self::UpgradeNewer => upgrade::newer_minor(stage).await,
            Self::Windows => windows::waited_for(stage).await,
            Self::Drift => drifted::repaired(stage).await,
            Self::RotateAuthorities => rotate::all(stage).await,
            Self::CertificatesEnded => ended::renewed(stage).await,
            Self::RotateDedicated => rotate::of_etcd_and_cluster(stage).await,
            Self::RotateKeepalived => rotate::of_cluster(stage).await,
        }
    }
}
