//! What is watched in the metadata cluster: one watch for each kind, whose store every controller reads and whose
//! changes every controller may follow.

mod backup_news;
mod decisive;
mod follow;
mod hold;
mod index;
mod kept;
mod keys;
mod kind;
mod one_machine;
mod register;
mod shares;
mod source;
mod watched;

use std::sync::Arc;

use crds::names::label;
use crds::{
    Addon, BackupStorage, Cluster, ClusterAddon, ClusterDeployment, EtcdBackup, EtcdBackupSchedule, EtcdRestore, Host,
    HostPool, KarmadaDeployment, Machine, MachineRequest, MachineSet, PlaybookRun, RemediationPolicy,
};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::Config;
use plan::claims::Shares;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

pub(crate) use backup_news::BackupNews;
pub(crate) use decisive::Decisive;
use kept::Kept;
pub use keys::{IndexKey, Indexed};
pub use kind::Kind;
pub use register::Register;
pub use source::Source;
pub use watched::Watched;

/// One row for each kind that is watched: its field, its type, and the label that narrows the watch.
macro_rules! watched_kinds {
    ($($(#[$doc:meta])* $field:ident: $kind:ty $(, $label:expr)?;)+) => {
        /// The kinds that are watched. Reads may be behind: what cannot be undone is decided by the API.
        pub struct Cache {
            $($(#[$doc])* pub $field: Watched<$kind>,)+
            /// What is watched and cannot be decoded.
            pub undecodable: Arc<Register>,
            kept: Kept<Shares>,
            listed: OnceCell<()>,
        }

        impl Cache {
            pub(crate) fn new() -> Self {
                let undecodable = Arc::<Register>::default();
                Self {
                    $($field: Watched::new(&undecodable),)+
                    undecodable,
                    kept: Kept::default(),
                    listed: OnceCell::new(),
                }
            }

            /// Starts the watches.
            pub(crate) fn follow(&self, source: &Source, tasks: &mut JoinSet<()>) {
                $(self.$field.follow(source, config()$(.labels($label))?, tasks);)+
            }

            /// Nothing of any kind was seen.
            #[cfg(test)]
            pub(crate) fn fill_with_nothing(&self) {
                $(self.$field.fill(Vec::new());)+
            }

            async fn list_all(&self) {
                // A store whose writer is gone never becomes ready: the program is stopping then.
                $(let _ = self.$field.store().wait_until_ready().await;)+
            }
        }
    };
}

/// A watch of which nothing comes for a little longer is taken up again: its connection may be dead, and what happened
/// meanwhile is seen by nobody. It begins anew so often at no greater cost than a request.
const WATCH_SECONDS: u32 = 60;

fn config() -> Config {
    Config::default().timeout(WATCH_SECONDS)
}

watched_kinds! {
    /// Addons.
    addons: Addon;
    /// ClusterAddons.
    cluster_addons: ClusterAddon;
    /// Clusters.
    clusters: Cluster;
    /// ClusterDeployments.
    cluster_deployments: ClusterDeployment;
    /// Hosts.
    hosts: Host;
    /// HostPools.
    host_pools: HostPool;
    /// KarmadaDeployments.
    karmada_deployments: KarmadaDeployment;
    /// Machines.
    machines: Machine;
    /// MachineRequests.
    machine_requests: MachineRequest;
    /// MachineSets.
    machine_sets: MachineSet;
    /// PlaybookRuns.
    runs: PlaybookRun;
    /// RemediationPolicies.
    policies: RemediationPolicy;
    /// BackupStorages.
    backup_storages: BackupStorage;
    /// EtcdBackups.
    etcd_backups: EtcdBackup;
    /// EtcdBackupSchedules.
    etcd_backup_schedules: EtcdBackupSchedule;
    /// EtcdRestores.
    etcd_restores: EtcdRestore;
    /// Jobs of runs.
    jobs: Job, label::RUN;
    /// Pods of runs.
    pods: Pod, label::RUN;
}

impl Cache {
    /// Waits until every kind has been listed once.
    pub async fn ready(&self) {
        // A store wakes only the last of those who wait for it: one waits for all of us.
        self.listed.get_or_init(|| self.list_all()).await;
    }
}

/// The objects behind shared pointers.
pub fn refs<K>(objects: &[Arc<K>]) -> Vec<&K> {
    objects.iter().map(Arc::as_ref).collect()
}
