//! In what the worlds of the suites differ on purpose.

use jiff::SignedDuration;

/// How a world is played.
#[derive(Clone, Copy, Debug)]
pub(super) struct Profile {
    /// Time between two turns.
    pub tick: SignedDuration,
    /// It has come to rest after so many turns without a change.
    pub rest: usize,
    /// It comes to rest before so many turns.
    pub patience: usize,
    pub observers: Observers,
    pub fates: FatePer,
    /// Whether `recover-etcd` looks for a majority itself. Where machines do not come back on their own it does not: a
    /// planner that asks for it in vain is found out.
    pub recovery_looks_first: bool,
    /// Whether no platform makes Machines: such a one may name any Host, also one that another Machine has.
    pub only_sets_make_machines: bool,
    /// `maxUnhealthy` of the clusters' specs, in percent, where the limits of remediation are checked.
    pub max_unhealthy: Option<usize>,
}

/// Who says how Hosts and clusters are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Observers {
    /// They are as they are at once, without the controllers of Host and Cluster.
    Instant,
    /// The planners of Host and Cluster, by probes and by what the clusters' APIs answer.
    Planned,
}

/// What one fate is of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FatePer {
    /// Each host of a run has its own.
    Host,
    /// Each run has one: it befalls its first host.
    Run,
}

impl Profile {
    /// One cluster, whose controllers alone are played: nothing changes between turns but by them and by runs.
    pub const CLUSTER: Self = Self {
        tick: SignedDuration::from_secs(700),
        rest: 1,
        patience: 200,
        observers: Observers::Instant,
        fates: FatePer::Host,
        recovery_looks_first: false,
        only_sets_make_machines: false,
        max_unhealthy: None,
    };

    /// A namespace in which all controllers are played. Nothing waits longer than it takes to rest.
    pub const FLEET: Self = Self {
        tick: SignedDuration::from_secs(45),
        rest: 50,
        patience: 2500,
        observers: Observers::Planned,
        fates: FatePer::Run,
        recovery_looks_first: true,
        only_sets_make_machines: true,
        max_unhealthy: Some(40),
    };
}
