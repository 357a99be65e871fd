//! What the tests on real machines share: a place for a scenario, its machines and objects, and waiting with a reason.

pub mod api_server;
pub mod audit;
pub mod backups;
pub mod bundle;
pub mod certificates;
pub mod chaos;
pub mod client;
pub mod eventually;
pub mod external_etcd;
pub mod faults;
pub mod lifecycle;
pub mod object_storage;
pub mod objects;
pub mod operator;
pub mod operator_process;
pub mod own_authorities;
pub mod own_network;
pub mod pod_network;
pub mod report;
pub mod restores;
pub mod rights;
pub mod scenario;
pub mod upgrades;
pub mod variables;
pub mod volume;
pub mod workload;
