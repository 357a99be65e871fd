//! What is looked at: the machines of a cluster, and what goes on around them.

use std::collections::BTreeMap;

use crds::remediation_policy::Remediation;
use crds::step::Role;
use jiff::{SignedDuration, Timestamp};

use super::effort::{Effort, EffortResult};
use super::{Rule, Spares};

/// How a machine is, as far as its repair is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Its node is Ready, or its member of a dedicated etcd is well.
    Well,
    /// It is on its way into the cluster, or nobody has said how it is.
    NotJudged,
    /// Its node, or member, was well, or should be, and is not.
    Sick {
        /// Since when that has been seen without a gap.
        since: Timestamp,
        /// What is wrong: `its kubelet is silent`.
        what: String,
    },
    /// It has a Host, was tried, and is no part of the cluster yet.
    NeverStarted {
        /// When its Host was claimed.
        since: Timestamp,
        /// What is wrong.
        what: String,
    },
    /// The API of the cluster is out of reach.
    Unknown,
}

/// A machine that stays, as remediation sees it.
#[derive(Clone, Debug)]
pub struct MachineHealth {
    /// Name of the Machine.
    pub name: String,
    /// Its Host.
    pub host: String,
    /// What it is in its cluster.
    pub role: Role,
    /// How it is.
    pub state: State,
    /// When that was seen; none: it is watched.
    pub seen_at: Option<Timestamp>,
    /// Its MachineSet.
    pub set: Option<String>,
    /// It is part of the cluster.
    pub joined: bool,
    /// What is to be done about it; none: nothing ever.
    pub rule: Option<Rule>,
    /// By what a person asks to leave it alone: `the Machine has ...`; none: nobody asks.
    pub skipped: Option<String>,
    /// Another run works on its Host.
    pub busy: Option<String>,
    /// What was tried, oldest first.
    pub efforts: Vec<Effort>,
    /// The retry that a person asks for now.
    pub retry: Option<String>,
    /// Why no other Machine would come in its place; none: its set makes one.
    pub irreplaceable: Option<String>,
    /// Spare Hosts that would do in its place.
    pub fitting: usize,
    /// Something was said of it before.
    pub told: bool,
}

/// Everything that is looked at.
#[derive(Clone, Debug)]
pub struct RemediationInput {
    /// The time.
    pub now: Timestamp,
    /// The machines of the cluster that stay, the well ones too.
    pub machines: Vec<MachineHealth>,
    /// Why nothing is known of the nodes: the API is out of reach.
    pub unreachable: Option<String>,
    /// Why etcd is not well.
    pub etcd: Option<String>,
    /// The cluster is paused.
    pub paused: bool,
    /// The cluster's last token is known, so that runs may begin.
    pub lock_known: bool,
    /// What else goes on with a control plane or etcd machine: one is made, leaves, or a run works there.
    pub change: Option<String>,
    /// Members of etcd stand on the control planes.
    pub stacked: bool,
    /// Machines of the namespace's other clusters, and replaced ones of this one, that something is being done about.
    pub elsewhere: usize,
    /// More than allowed were sick at once when last looked.
    pub was_too_many: bool,
    /// When it was last seen that too many are so no more.
    pub calm_since: Option<Timestamp>,
    /// The pool that replacements come from.
    pub spares: Spares,
    /// MachineSets of the cluster, by name.
    pub sets: BTreeMap<String, SetSeen>,
    /// A person's word: machines are repaired although too many are sick.
    pub approved: bool,
    /// How a person gives it: a command.
    pub approve: String,
}

/// A MachineSet, as remediation sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetSeen {
    /// How many of its machines may be out of service at once for our own doing.
    pub most: usize,
    /// Those that are being replaced, may have served until then, and are not out of the cluster yet.
    pub replaced: usize,
}

impl MachineHealth {
    /// Whether anybody may still be served by it: a node that is not Ready may run its Pods on, but not one that never
    /// joined, nor a machine that SSH does not reach either.
    pub(super) fn may_serve(&self) -> bool {
        let last = self.efforts.last().map(|last| &last.result);
        self.joined && !matches!(last, Some(EffortResult::Failed(failure)) if failure.is_silence())
    }

    /// Since when it is not well.
    pub(super) fn since(&self) -> Option<Timestamp> {
        match &self.state {
            State::Sick { since, .. } | State::NeverStarted { since, .. } => Some(*since),
            State::Well | State::NotJudged | State::Unknown => None,
        }
    }

    /// What is wrong with it.
    pub(super) fn what(&self) -> &str {
        match &self.state {
            State::Sick { what, .. } | State::NeverStarted { what, .. } => what,
            State::Well | State::NotJudged | State::Unknown => "",
        }
    }

    /// How long it must have been sick before anything is done.
    pub(super) fn patience(&self, remediation: &Remediation) -> SignedDuration {
        let seconds = match self.state {
            State::NeverStarted { .. } => remediation.never_started_after_seconds,
            _ => remediation.unhealthy_after_seconds,
        };
        SignedDuration::from_secs(i64::from(seconds))
    }
}
