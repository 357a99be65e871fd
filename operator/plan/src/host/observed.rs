//! What the planner of Hosts looks at.

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::{Host, PlaybookRun};
use jiff::Timestamp;

use super::schedule::ProbeSchedule;
use crate::inputs::InputsProblem;

/// What was observed.
#[derive(Clone, Copy, Debug)]
pub struct HostObserved<'a> {
    /// The Host.
    pub host: &'a Host,
    /// Now, in whole seconds.
    pub now: Timestamp,
    /// When Hosts are probed.
    pub schedule: ProbeSchedule,
    /// Hosts of the namespace: all of them where [`super::looks_at_pool`], else those that have something in common
    /// with this one that only one machine has ([`crate::claims::identity_keys`]).
    pub hosts: &'a [Arc<Host>],
    /// The operator's probes of the namespace.
    pub probes: &'a [Arc<PlaybookRun>],
    /// Runs that name the Host.
    pub runs: &'a [Arc<PlaybookRun>],
    /// Hosts that no probe can reach for, by name, and why: a Secret or a bastion is missing.
    pub problems: &'a BTreeMap<String, InputsProblem>,
    /// Whether the Machine that has claimed the Host is not there, as the API says and not a cache.
    pub holder_is_gone: bool,
}
