//! Whether the cluster's lock lets a run start.

use crds::PlaybookRun;
use crds::lock::{LockMode, LockView};
use crds::step::LockUse;

/// Whether a run may start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Nobody looked.
    NotLookedAt,
    /// It may, with this token.
    Given {
        /// The second half of the fence; 0 where there is no lock.
        token: i64,
    },
    /// Not yet.
    Waits {
        /// For what.
        message: String,
    },
}

/// Reads the lock of the object that forms the run's cluster, which must have been read just now; none: it is not
/// there, and would be of this kind. A probe needs none: it changes nothing. Nor does what is of no cluster, and
/// touches no machine.
pub fn grant(run: &PlaybookRun, kind: &str, lock: Option<LockView<'_>>) -> Grant {
    let read_only = run.spec.steps.iter().all(|step| step.spec().read_only);
    if run.spec.intent.spec().lock == LockUse::None && read_only {
        return Grant::Given { token: 0 };
    }
    if run.spec.cluster_name.is_none() && run.spec.hosts.is_empty() {
        return Grant::Given { token: 0 };
    }
    let cluster = run.spec.cluster_name.as_deref().unwrap_or_default();
    let Some(LockView { operations, paused }) = lock else {
        return Grant::Waits { message: format!("waits for {kind} {cluster}, which is not there") };
    };
    let name = run.metadata.name.as_deref();
    if let Some(ours) = operations.iter().find(|operation| Some(operation.run.as_str()) == name) {
        return Grant::Given { token: ours.token };
    }
    let mode = |mode: LockMode| match mode {
        LockMode::Exclusive => "Exclusive",
        LockMode::Shared => "Shared",
        LockMode::Separate => "Separate",
    };
    let holders: Vec<String> =
        operations.iter().take(3).map(|held| format!("{} ({})", held.run, mode(held.mode))).collect();
    let more = operations.len().saturating_sub(holders.len());
    let message = match (holders.is_empty(), more) {
        (true, _) if paused => {
            format!("waits for the lock of {kind} {cluster}, which is paused")
        }
        (true, _) => format!("waits for the lock of {kind} {cluster}"),
        (false, 0) => format!("waits for the lock of {kind} {cluster}: held by {}", holders.join(", ")),
        (false, more) => {
            format!("waits for the lock of {kind} {cluster}: held by {} and {more} more", holders.join(", "))
        }
    };
    Grant::Waits { message }
}
