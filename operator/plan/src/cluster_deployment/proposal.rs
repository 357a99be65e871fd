//! What an operation proposes, and what all of them come to in one pass.

use crds::Reason;
use crds::cluster_deployment::{EtcdStatus, ForgottenMachine, Repair, RestoredFrom};
use crds::conditions::Statement;
use crds::step::Role;
use crds::{ClusterDeploymentStatus, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::action::Action;
use super::lane::{Lane, Needs};
use super::problem::Problem;
use super::state::ClusterState;
use crate::Next;
use crate::lock::Lock;
use crate::lock::tokens::Tokens;
use crate::remediation::Removals;

/// What one operation wants now.
#[derive(Default)]
pub(super) struct Proposal {
    /// What to do, if the operation's needs are met.
    pub actions: Vec<Action>,
    /// When to look again, if they are.
    pub requeue: Next,
    /// It goes on by itself later, although no run is under way.
    pub pending: bool,
    /// What goes on, or why it does not.
    pub report: Option<Report>,
    /// It only waits, and holds up nothing else in its lane.
    pub stands_aside: bool,
    /// Lanes whose actions are not taken beside this.
    pub blocks: &'static [Lane],
    /// Conditions that the operation states.
    pub conditions: Vec<Statement>,
    /// Types of conditions that are over.
    pub ended: Vec<&'static str>,
    /// What it records in the status.
    pub records: Vec<Record>,
    /// Whether healthy machines may be taken away, from whoever judges that.
    pub removals: Option<Removals>,
}

/// What goes on with some part of the cluster.
#[derive(Clone, Debug)]
pub(super) struct Report {
    /// What it is about.
    pub area: Area,
    /// CamelCase.
    pub reason: Reason,
    /// One sentence.
    pub message: String,
    pub severity: Severity,
}

/// What a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Area {
    /// The store that says how the cluster is, and is older than its machines.
    Store,
    /// The cluster as a whole, which is built anew.
    Rebuild,
    /// A cluster that does not stand yet.
    Install,
    /// The machines of a role.
    Machines(Role),
    /// What is done about sick machines.
    Remediation,
    /// Settings that were changed.
    Configuration,
    /// Another Kubernetes version.
    Upgrade,
    /// Certificates, which are renewed while all works on.
    Certificates,
    /// Machines that differ from what is wanted.
    Drift,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Severity {
    /// It is on its way.
    Progressing,
    /// Something went wrong and is tried again.
    Failing,
    /// Nothing is tried again before somebody acts.
    Stalled,
    /// etcd has lost its majority.
    Lost,
}

/// What an operation remembers in the status.
pub(super) enum Record {
    /// What is done about sick machines.
    Repairs { entries: Vec<Repair>, calm_since: Option<Time>, approval: Option<String> },
    /// What is still owed to machines that are gone.
    Forgotten(Vec<ForgottenMachine>),
    /// What is seen of etcd.
    Etcd(Box<EtcdStatus>),
    /// A condition that was lost with the status, as it stood.
    Condition(Condition),
    /// The backup that the cluster begins with.
    RestoredFrom(Box<RestoredFrom>),
}

impl Proposal {
    /// Nothing but a report.
    pub fn report(area: Area, reason: Reason, message: String, severity: Severity) -> Self {
        Self { report: Some(Report { area, reason, message, severity }), ..Self::default() }
    }

    /// Nothing but actions.
    pub fn actions(actions: Vec<Action>) -> Self {
        Self { actions, ..Self::default() }
    }

    /// The same, which holds up nothing else in its lane.
    pub fn standing_aside(self) -> Self {
        Self { stands_aside: true, ..self }
    }

    /// The same, and this is done.
    pub fn and(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    /// The same, looked at again then.
    pub fn at(mut self, state: &ClusterState<'_>, at: Timestamp) -> Self {
        self.requeue = self.requeue.or_sooner(state.until(at));
        self
    }

    /// States the condition, or ends it where there is nothing to state.
    pub fn condition(mut self, type_: &'static str, statement: Option<Statement>) -> Self {
        match statement {
            Some(statement) => self.conditions.push(statement),
            None => self.ended.push(type_),
        }
        self
    }
}

/// One pass over all operations: what they are given, and what they have come to so far.
pub(super) struct Round {
    pub lock: Lock,
    pub tokens: Tokens,
    /// Why the spec cannot be met.
    pub problem: Option<Problem>,
    pub paused: bool,
    pub actions: Vec<Action>,
    pub requeue: Next,
    pub pending: bool,
    pub reports: Vec<Report>,
    pub conditions: Vec<Statement>,
    pub ended: Vec<&'static str>,
    pub records: Vec<Record>,
    pub removals: Removals,
    blocked: Vec<Lane>,
    /// Lanes in which something is under way.
    busy: Vec<Lane>,
    begins: Option<PlaybookRun>,
}

impl Round {
    pub fn new(state: &ClusterState<'_>, lock: Lock, tokens: Tokens, problem: Option<Problem>) -> Self {
        Self {
            lock,
            tokens,
            problem,
            paused: state.deployment.spec.paused,
            actions: Vec::new(),
            requeue: Next::OnChange,
            pending: false,
            reports: Vec::new(),
            conditions: Vec::new(),
            ended: Vec::new(),
            records: Vec::new(),
            removals: Removals::Unknown,
            blocked: Vec::new(),
            busy: Vec::new(),
            begins: None,
        }
    }

    /// Whether the lock is there: with it a new cluster is told from one whose status was lost.
    pub fn lock_is_known(&self) -> bool {
        matches!(self.tokens, Tokens::Known(_))
    }

    /// Whether an operation of this lane and with these needs may act.
    pub fn allows(&self, lane: Lane, needs: Needs) -> bool {
        let met = match needs {
            Needs::Nothing => true,
            Needs::Lock => !self.paused && self.lock_is_known(),
            Needs::Spec => self.may_work() && self.lock_is_known(),
        };
        met && !self.is_blocked(lane)
    }

    /// Whether an operation has stopped the lane.
    pub fn is_blocked(&self, lane: Lane) -> bool {
        self.blocked.contains(&lane)
    }

    /// Whether the cluster is neither paused nor wanted as it cannot be.
    pub fn may_work(&self) -> bool {
        !self.paused && self.problem.is_none()
    }

    /// Whether a change of this lane is under way, where they go one at a time.
    pub fn is_taken(&self, lane: Lane) -> bool {
        lane == Lane::ControlPlane && self.busy.contains(&lane)
    }

    /// What was reported of an area first.
    pub fn report(&self, area: Area) -> Option<&Report> {
        self.reports.iter().find(|report| report.area == area)
    }

    /// The change of the control plane or etcd that begins now.
    pub fn begins(&self) -> Option<&PlaybookRun> {
        self.begins.as_ref()
    }

    /// Whether a run is made in this round that works on a Host.
    pub fn works_on(&self, host: &str) -> bool {
        self.actions.iter().any(|action| match action {
            Action::CreateRun(run) => {
                !run.spec.intent.changes_nothing() && run.spec.hosts.iter().any(|named| named == host)
            }
            _ => false,
        })
    }

    /// Whether a run is made in this round that changes something.
    pub fn begins_any(&self) -> bool {
        changes(&self.actions).is_some()
    }

    /// Takes what an operation proposes.
    pub fn take(&mut self, lane: Lane, needs: Needs, proposal: Proposal) {
        if self.allows(lane, needs) {
            self.begins = self.begins.take().or_else(|| match lane {
                Lane::ControlPlane => changes(&proposal.actions),
                _ => None,
            });
            self.actions.extend(proposal.actions);
            self.requeue = self.requeue.or_sooner(proposal.requeue);
        }
        if let Some(report) = proposal.report {
            self.busy.extend((!proposal.stands_aside).then_some(lane));
            self.reports.push(report);
        }
        self.pending |= proposal.pending;
        self.blocked.extend(proposal.blocks);
        self.conditions.extend(proposal.conditions);
        self.ended.extend(proposal.ended);
        self.records.extend(proposal.records);
        if let Some(removals) = proposal.removals {
            self.removals = removals;
        }
    }

    /// Puts what was recorded into the status, and ends the conditions that are over.
    pub fn record(&self, status: &mut ClusterDeploymentStatus) {
        status.conditions.retain(|there| !self.ended.contains(&there.type_.as_str()));
        for record in &self.records {
            match record {
                Record::Repairs { entries, calm_since, approval } => {
                    status.repairs = entries.clone();
                    status.calm_since = calm_since.clone();
                    status.repair_approval = approval.clone();
                }
                Record::RestoredFrom(restored) => status.restored_from = Some((**restored).clone()),
                Record::Forgotten(machines) => status.forgotten = machines.clone(),
                Record::Etcd(etcd) => status.etcd = Some((**etcd).clone()),
                Record::Condition(condition) => {
                    status.conditions.retain(|there| there.type_ != condition.type_);
                    status.conditions.push(condition.clone());
                }
            }
        }
    }
}

/// The run among them that changes machines.
fn changes(actions: &[Action]) -> Option<PlaybookRun> {
    actions.iter().find_map(|action| match action {
        Action::CreateRun(run) if !run.spec.intent.changes_nothing() => Some((**run).clone()),
        _ => None,
    })
}
