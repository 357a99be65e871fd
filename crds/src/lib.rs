//! The API of Clusterwright (group `clusterwright.dev/v1alpha1`): what users write, what the operator says back, and
//! the frozen inputs that a run's executor reads. No client, no clock, no I/O.
#![deny(missing_docs)]
// Printer columns repeat `type_` and the like; the lint takes each for one attribute.
#![allow(clippy::duplicated_attributes)]

pub mod addon;
pub mod backup;
pub mod backup_storage;
pub mod certificates;
pub mod chart;
pub mod cluster;
pub mod cluster_addon;
pub mod cluster_deployment;
mod cluster_kind;
pub mod cluster_selector;
pub mod commands;
pub mod component;
mod component_version;
pub mod conditions;
pub mod configuration;
pub mod drift;
pub mod encryption_entry;
pub mod etcd_backup;
pub mod etcd_backup_schedule;
pub mod etcd_restore;
pub mod host;
pub mod host_pool;
pub mod inputs;
pub mod karmada_deployment;
mod kinds;
pub mod kstatus;
mod kubernetes_version;
pub mod lock;
pub mod machine;
pub mod machine_request;
pub mod machine_set;
pub mod manifests;
pub mod names;
pub mod networking;
pub mod node_metadata;
pub mod object;
pub mod placement;
pub mod playbook_run;
pub mod reason;
pub mod references;
pub mod remediation_policy;
mod schedule;
pub mod step;
mod store_comparison;

pub use addon::{Addon, AddonSpec, AddonStatus};
pub use backup_storage::{BackupStorage, BackupStorageSpec, BackupStorageStatus};
pub use cluster::{Cluster, ClusterSpec, ClusterStatus};
pub use cluster_addon::{ClusterAddon, ClusterAddonSpec, ClusterAddonStatus};
pub use cluster_deployment::{ClusterDeployment, ClusterDeploymentSpec, ClusterDeploymentStatus};
pub use cluster_kind::{ClusterKind, FormerRef};
pub use component::{ClusterComponent, Component};
pub use component_version::{ComponentVersion, InvalidComponentVersion};
pub use etcd_backup::{EtcdBackup, EtcdBackupSpec, EtcdBackupStatus};
pub use etcd_backup_schedule::{EtcdBackupSchedule, EtcdBackupScheduleSpec, EtcdBackupScheduleStatus};
pub use etcd_restore::{EtcdRestore, EtcdRestoreSpec, EtcdRestoreStatus};
pub use host::{Host, HostSpec, HostStatus};
pub use host_pool::{HostPool, HostPoolSpec, HostPoolStatus};
pub use karmada_deployment::{KarmadaDeployment, KarmadaDeploymentSpec, KarmadaDeploymentStatus};
pub use kubernetes_version::{InvalidKubernetesVersion, KubernetesVersion};
pub use machine::{Machine, MachineSpec, MachineStatus};
pub use machine_request::{MachineRequest, MachineRequestSpec, MachineRequestStatus};
pub use machine_set::{MachineSet, MachineSetSpec, MachineSetStatus};
pub use object::{Conditions, ObjectExt};
pub use playbook_run::{PlaybookRun, PlaybookRunSpec, PlaybookRunStatus};
pub use reason::Reason;
pub use remediation_policy::{RemediationPolicy, RemediationPolicySpec, RemediationPolicyStatus};
pub use step::{Intent, Role, Step};
pub use store_comparison::StoreComparison;
