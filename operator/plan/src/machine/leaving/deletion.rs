//! How far the deletion of a Machine is.

use crds::Reason;
use crds::conditions::Statement;
use crds::machine::BlockedPod;

use crate::Next;
use crate::machine::action::Action;

pub(super) struct Leaving {
    pub actions: Vec<Action>,
    pub next: Next,
    pub reason: Reason,
    pub message: String,
    /// What is said of its Pods, if that is new.
    pub drained: Option<Statement>,
    /// Those of them that may not be evicted now.
    pub blocked_pods: Vec<BlockedPod>,
}

impl Leaving {
    pub(super) fn waits(reason: Reason, message: String) -> Self {
        Self { actions: Vec::new(), next: Next::OnChange, reason, message, drained: None, blocked_pods: Vec::new() }
    }
}
