//! A random walk: for some minutes the operator, executors and machines of a cluster are hit and the cluster is
//! changed, at random moments that follow from a seed; then everything is healed, and the cluster must match its spec
//! without any manual action.

pub mod action;
pub mod converged;
pub mod inject;
pub mod schedule;
pub mod walk;
