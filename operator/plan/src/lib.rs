//! What to do next, decided from what was observed. Pure functions: no client, no clock, no chance, no waiting.

mod next;

pub use next::{Next, Plan};

// One line for each planner, in alphabetical order.
pub mod addon;
pub mod approval;
pub mod attempts;
pub(crate) mod backed_up;
pub mod backup_storage;
pub(crate) mod catalogue;
pub mod certificates;
pub mod claims;
pub(crate) mod cleaning;
pub mod cluster;
pub mod cluster_addon;
pub mod cluster_deployment;
pub(crate) mod cluster_machine;
pub mod components;
pub mod configuration;
mod cron;
pub mod departure;
pub mod disruption;
pub mod drain;
pub mod drift;
pub mod encryption;
pub mod endpoint_claims;
pub mod etcd;
pub mod etcd_backup;
pub mod etcd_backup_schedule;
pub(crate) mod etcd_removal;
pub mod etcd_restore;
pub(crate) mod forgotten;
pub mod formed_cluster;
pub mod former;
pub mod hooks;
pub mod host;
pub mod host_pool;
pub mod inputs;
pub(crate) mod install_backup;
pub mod int_or_percent;
pub mod job;
pub mod karmada_deployment;
pub mod karmada_membership;
pub(crate) mod key_progress;
pub mod key_transfer;
pub mod leader;
pub mod lifecycle;
pub mod lock;
pub mod machine;
pub mod machine_request;
pub mod machine_set;
pub mod message;
pub mod moment;
pub mod naming;
pub mod node_metadata;
pub(crate) mod owned_run;
pub mod pki;
pub mod playbook_run;
pub mod provisioning;
pub(crate) mod recent_backup;
pub mod remediation;
pub mod remediation_policy;
pub mod rotation;
pub mod run_owner;
pub(crate) mod run_request;
pub mod settings;
#[cfg(test)]
pub mod settles;
pub mod size;
pub(crate) mod storage_job;
pub mod store;
pub(crate) mod template;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod transitions;
pub mod undecodable;
pub(crate) mod withdrawal;
