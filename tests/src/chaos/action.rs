//! What can be done in a walk.

use std::fmt;
use std::time::Duration;

/// One thing that is done to the cluster, its operator or its machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The operator that leads gets SIGKILL.
    KillOperator,
    /// The operator that leads is stopped for so long.
    StopOperator(Duration),
    /// The executor of a run under way gets SIGKILL.
    KillExecutor,
    /// The Pod of a run under way is deleted, with its grace period.
    DeleteExecutor,
    /// A machine in use reboots.
    Reboot,
    /// A machine in use loses its power for so long.
    PowerLoss(Duration),
    /// The cable of a machine in use is pulled for so long.
    CutCable(Duration),
    /// A machine in use loses its power, and is not switched on before it has been forgotten.
    Destroy,
    /// A machine that was destroyed, and forgotten since, gets its power back with all that was on it.
    Return,
    /// A Machine object is deleted.
    DeleteMachine,
    /// The count of control planes changes: to five where three are wanted, and to three where five are.
    ScaleControlPlanes,
    /// So many workers are wanted.
    ScaleWorkers(usize),
    /// The cluster is paused for so long.
    Pause(Duration),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |f: &mut fmt::Formatter<'_>, what: &str, outage: &Duration| {
            write!(f, "{what} for {:.0} s", outage.as_secs_f64())
        };
        match self {
            Self::KillOperator => f.write_str("kill the operator"),
            Self::StopOperator(outage) => seconds(f, "stop the operator", outage),
            Self::KillExecutor => f.write_str("kill an executor"),
            Self::DeleteExecutor => f.write_str("delete the Pod of an executor"),
            Self::Reboot => f.write_str("reboot a machine"),
            Self::PowerLoss(outage) => seconds(f, "cut the power of a machine", outage),
            Self::CutCable(outage) => seconds(f, "pull the cable of a machine", outage),
            Self::Destroy => f.write_str("destroy a machine"),
            Self::Return => f.write_str("bring back a machine that was forgotten"),
            Self::DeleteMachine => f.write_str("delete a Machine"),
            Self::ScaleControlPlanes => f.write_str("scale the control planes to 5, or back to 3"),
            Self::ScaleWorkers(count) => write!(f, "scale the workers to {count}"),
            Self::Pause(outage) => seconds(f, "pause the cluster", outage),
        }
    }
}
