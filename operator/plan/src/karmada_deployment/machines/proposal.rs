//! What an operation on the machines of a plane proposes, and what all of them come to in one pass.

use crds::Reason;
use crds::cluster_deployment::ForgottenMachine;
use crds::conditions::Statement;
use jiff::Timestamp;

use super::act::Act;
use super::state::PlaneState;
use crate::Next;
use crate::addon::Problem;
use crate::lock::Lock;
use crate::lock::tokens::Tokens;

/// What an operation wants now.
#[derive(Default)]
pub(super) struct Proposal {
    pub acts: Vec<Act>,
    pub next: Next,
    /// What goes on, or why it does not.
    pub problem: Option<Problem>,
    /// Whether nothing else of the machines' lane begins beside it.
    pub holds: bool,
    /// Machines that are gone, and that something is still owed to.
    pub forgotten: Option<Vec<ForgottenMachine>>,
    /// What is said of it in a condition of its own.
    pub statement: Option<Statement>,
}

impl Proposal {
    /// Nothing but acts.
    pub fn acts(acts: Vec<Act>) -> Self {
        Self { acts, ..Self::default() }
    }

    /// Something is under way, which others wait for.
    pub fn under_way(reason: Reason, message: String) -> Self {
        Self { problem: Some(Problem { reason, message }), holds: true, ..Self::default() }
    }

    /// It does not go on by itself, and nothing waits for it.
    pub fn stuck(reason: Reason, message: String) -> Self {
        Self { holds: false, ..Self::under_way(reason, message) }
    }

    pub fn and(mut self, act: Act) -> Self {
        self.acts.push(act);
        self
    }

    pub fn at(mut self, state: &PlaneState<'_>, at: Timestamp) -> Self {
        self.next = self.next.or_sooner(state.until(at));
        self
    }
}

/// What an operation needs for its acts to be taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing.
    Nothing,
    /// A lock that is known, in a plane that is not paused, and whose machines do not contradict the store.
    Lock,
    /// Beside that a spec that can be met.
    Spec,
}

/// What all of them come to.
pub(in super::super) struct Round {
    pub lock: Lock,
    pub tokens: Tokens,
    pub acts: Vec<Act>,
    pub next: Next,
    /// What is said, the first first.
    pub problems: Vec<Problem>,
    /// Whether a change of the machines is under way or begins, so that none of the parts does.
    pub is_busy: bool,
    pub forgotten: Vec<ForgottenMachine>,
    /// What is said in conditions of their own.
    pub statements: Vec<Statement>,
    /// Whether nothing is done to machines: it is paused, or they are yet to be compared with the store.
    is_held: bool,
    has_spec: bool,
}

impl Round {
    /// Nothing yet; `has_spec`: whether the spec can be met.
    pub fn new(state: &PlaneState<'_>, lock: Lock, tokens: Tokens, has_spec: bool) -> Self {
        let status = state.object.status.as_ref();
        Self {
            lock,
            tokens,
            acts: Vec::new(),
            next: Next::OnChange,
            problems: Vec::new(),
            is_busy: false,
            forgotten: status.map(|status| status.forgotten.clone()).unwrap_or_default(),
            statements: Vec::new(),
            is_held: state.object.spec.paused || state.comparison.holds(),
            has_spec,
        }
    }

    /// Whether the lock is there.
    pub fn lock_is_known(&self) -> bool {
        matches!(self.tokens, Tokens::Known(_))
    }

    /// Whether they may be, or might if the plane were not paused.
    pub fn might_work(&self) -> bool {
        self.lock_is_known() && self.has_spec && !self.is_busy
    }

    fn allows(&self, needs: Needs) -> bool {
        let is_open = !self.is_held && self.lock_is_known();
        match needs {
            Needs::Nothing => true,
            Needs::Lock => is_open,
            Needs::Spec => is_open && self.has_spec,
        }
    }

    /// Takes what an operation proposes.
    pub(super) fn take(&mut self, needs: Needs, proposal: Proposal) {
        if self.allows(needs) {
            self.acts.extend(proposal.acts);
            self.next = self.next.or_sooner(proposal.next);
        }
        self.is_busy |= proposal.holds;
        self.problems.extend(proposal.problem);
        self.statements.extend(proposal.statement);
        if let Some(forgotten) = proposal.forgotten {
            self.forgotten = forgotten;
        }
    }
}
