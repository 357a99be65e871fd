//! Canaries: the first workers that get a change. The others follow once those have been well with it for as long as
//! the rollout pauses. Since when they are is read from their runs and their Nodes, so that nothing need be remembered.

use crds::Conditions;
use crds::names::condition;
use crds::step::Role;
use jiff::{SignedDuration, Timestamp};

use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::cluster_deployment::tried::Tried;
use crate::departure::is_healthy;
use crate::message::count;
use crate::moment::{after, clock};

/// How far the canaries are.
pub(in crate::cluster_deployment) enum Canaries<'a> {
    /// So many may be under way at once.
    Begin(usize),
    /// One has it, and is not well.
    Unwell(ClusterMachine<'a>),
    /// So many have it, and others follow then, if they stay well.
    Watched(usize, Timestamp),
    /// The others may follow.
    Passed,
}

impl<'a> Canaries<'a> {
    /// Of a change that these runs bring, and these workers lack.
    pub fn look(
        state: &ClusterState<'a>,
        tried: &Tried<'_>,
        lacks: impl Fn(&ClusterMachine<'a>) -> bool,
    ) -> Canaries<'a> {
        let rollout = &state.deployment.spec.rollout;
        let wanted = usize::try_from(rollout.canaries).unwrap_or_default().max(1);
        let pause = SignedDuration::from_secs(i64::from(rollout.pause_seconds));
        let ends = tried.ends();
        let workers = state.of_role(Role::Worker).filter(|worker| worker.is_provisioned() && !lacks(worker));
        let (well, unwell): (Vec<_>, Vec<_>) = workers.partition(|worker| is_healthy(worker.machine));
        let since = |worker: &ClusterMachine<'_>| {
            let ready = worker.machine.condition(condition::NODE_READY).map(|ready| ready.last_transition_time.0);
            ready.max(ends.get(worker.uid()).copied()).unwrap_or(Timestamp::MIN)
        };
        let mut passes: Vec<Timestamp> = well.iter().map(|worker| after(since(worker), pause)).collect();
        passes.sort_unstable();
        if let Some(last) = passes.get(wanted - 1) {
            return match *last > state.observed.now {
                true => Canaries::Watched(wanted, *last),
                false => Canaries::Passed,
            };
        }
        // One that had it from the beginning, and is not well, says nothing of the change.
        let unwell: Vec<_> = unwell.into_iter().filter(|worker| ends.contains_key(worker.uid())).collect();
        match (well.len() + unwell.len(), unwell.first()) {
            (_, Some(first)) => Canaries::Unwell(*first),
            (0, None) => Canaries::Begin(1),
            (brought, None) => Canaries::Begin(wanted - brought),
        }
    }

    /// How many may be under way at once.
    pub fn most(&self) -> usize {
        match self {
            Canaries::Begin(most) => *most,
            Canaries::Unwell(_) | Canaries::Watched(..) => 0,
            Canaries::Passed => usize::MAX,
        }
    }

    /// What is waited for, and when to look again; none: not for them.
    pub fn waits(&self) -> Option<(String, Option<Timestamp>)> {
        match self {
            Canaries::Unwell(worker) => {
                Some((format!("waits for {} to be well ({})", worker.title(), worker.says()), None))
            }
            Canaries::Watched(number, until) => {
                let message = format!("{} watched until {}", count(*number, "worker"), clock(*until));
                Some((message, Some(*until)))
            }
            Canaries::Begin(_) | Canaries::Passed => None,
        }
    }
}
