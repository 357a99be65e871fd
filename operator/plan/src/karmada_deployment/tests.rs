//! A plane in a world of its own: applied until nothing is left to do.

mod admission;
mod backup_source;
mod deletion;
mod estimators;
mod etcd;
mod faults;
mod fields;
mod members;
mod refusals;
mod reports;
mod restore;
mod rotation;
mod secrets;
mod sequence;
mod upgrade;
pub(super) mod world;
