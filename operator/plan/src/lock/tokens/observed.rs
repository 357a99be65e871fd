//! What is looked at to find a lost token.

use std::collections::BTreeMap;

use crds::lock::Operation;
use crds::{Host, PlaybookRun};
use jiff::Timestamp;

use crate::run_owner::RunOwner;

/// What is known of a lock whose status does not have its last token, and of those that may know it.
#[derive(Clone, Debug)]
pub struct TokensObserved<'a> {
    /// The time.
    pub now: Timestamp,
    /// The runs that hold the lock.
    pub operations: &'a [Operation],
    /// Since when the status says that the lock is closed; none: it does not say so.
    pub closed_since: Option<Timestamp>,
    /// All runs of the cluster.
    pub runs: &'a [&'a PlaybookRun],
    /// Hosts that the cluster's machines hold and on which a run may begin under their present claims, by name.
    pub claimed: BTreeMap<&'a str, &'a Host>,
    /// Whether a person lets the lock open without those that do not answer.
    pub is_unlocked: bool,
    /// What a person types for that.
    pub unlock: String,
    /// The object that the lock is of: the probes are its runs.
    pub owner: &'a RunOwner,
}
