//! Real clusters on one machine: programs, images, artifact bundle, metadata cluster and machines.
//!
//! The demo, the tests and the benchmarks all stand on this crate; `lab` is its command.

pub mod build;
pub mod bundle;
pub mod cache;
pub mod cargo;
pub mod cgroups;
pub mod command;
pub mod emulation;
pub mod endpoint;
pub mod images;
pub mod logged;
pub mod machines;
pub mod manifests;
pub mod metadata;
pub mod network;
pub mod operator;
pub mod place;
pub mod prerequisites;
pub mod processes;
pub mod programs;
pub mod progress;
pub mod project;
pub mod rootfs;
pub mod serve;
pub mod ssh;
pub mod upstream;
mod whole;

pub use whole::{BUNDLE_PORT, BUNDLE_SERVER, Lab, Temporary, down};
