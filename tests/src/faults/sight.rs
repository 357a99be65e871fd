//! What can be seen of an install while it goes on: which step each machine's guard is in, what the status says, which
//! `kubeadm init` run.

mod cluster;
mod inits;
mod trail;

pub use cluster::{Said, Sight, View};
pub use inits::Inits;
pub use trail::{Mark, Trail};
