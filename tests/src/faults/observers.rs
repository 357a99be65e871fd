//! Observers of an install while it goes on: which step each machine's guard is in, what the status says, which
//! `kubeadm init` run.

mod cluster;
mod guard_log;
mod inits;

pub use cluster::{ClusterObserver, Said, View};
pub use guard_log::{GuardLog, Mark};
pub use inits::Inits;
