//! Which part of a cluster an operation changes, and without what it is not allowed to.

/// Which part of the cluster an operation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// The lock itself.
    Lock,
    /// Machines that are no part of the cluster any more.
    Fencing,
    /// A cluster all of whose machines are lost.
    Recovery,
    /// Keys, sets and the first run.
    Install,
    /// Control planes and etcd: one change at a time, the first in the table that has something to report.
    ControlPlane,
    /// Workers that join.
    Workers,
    /// Sick machines.
    Remediation,
    /// Machines that leave.
    Leaving,
    /// What is kept of it all.
    Records,
}

/// Without what an operation's actions are not taken; its report is given all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing that all operations know of.
    Nothing,
    /// The cluster is not paused, and its lock is not lost.
    Lock,
    /// And its spec can be met.
    Spec,
}
