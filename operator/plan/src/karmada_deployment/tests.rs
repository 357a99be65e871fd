//! A plane in a world of its own: applied until nothing is left to do.

mod admission;
mod backup_source;
mod deletion;
mod estimators;
mod etcd;
mod faults;
mod fields;
pub(super) mod in_place;
mod lost_volumes;
mod members;
mod probe;
mod refusals;
mod reports;
pub(super) mod restore;
mod rotation;
mod secrets;
mod sequence;
mod sidecars;
mod upgrade;
pub(super) mod world;
