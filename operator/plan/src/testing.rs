//! One simulated world for the planners' tests: a namespace with any number of clusters, what the API server,
//! executors, machines and people do there, and promises that are checked after every write.

mod api;
pub mod authorities;
pub mod backup_keys;
mod certificates;
mod cluster;
mod etcd;
mod executor;
mod fate;
mod machines;
mod mishap;
pub mod node_metadata;
mod objects;
mod observers;
pub mod operations;
mod outcome;
mod people;
mod pods;
mod profile;
mod promises;
mod reconcile;
mod report;
mod results;
mod set_back;
mod steps;
mod turns;
mod versions;
mod world;

pub use fate::Fate;
pub use mishap::{Kind, Mishap};
pub use world::World;
