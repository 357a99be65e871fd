//! What may be under way with the machines of a plane, as data. Each operation is one file that looks at the state and
//! proposes; the table says their order. Parts are no operations: each belongs to its stage.

mod fence_returned;
mod hold_runs;
mod install;
mod join;
mod machine_sets;
mod observe_etcd;
mod observe_parts;
mod remember_forgotten;
mod remove_etcd_member;
pub(super) mod reset;
mod withdraw_runs;

use crds::Reason;
use crds::cluster_deployment::ForgottenMachine;
use jiff::Timestamp;

use super::act::Act;
use super::state::PlaneState;
use super::wanted_parts::Basis;
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
enum Needs {
    /// Nothing.
    Nothing,
    /// A lock that is known, in a plane that is not paused.
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
    is_paused: bool,
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
            is_paused: state.object.spec.paused,
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
        let is_open = !self.is_paused && self.lock_is_known();
        match needs {
            Needs::Nothing => true,
            Needs::Lock => is_open,
            Needs::Spec => is_open && self.has_spec,
        }
    }

    fn take(&mut self, needs: Needs, proposal: Proposal) {
        if self.allows(needs) {
            self.acts.extend(proposal.acts);
            self.next = self.next.or_sooner(proposal.next);
        }
        self.is_busy |= proposal.holds;
        self.problems.extend(proposal.problem);
        if let Some(forgotten) = proposal.forgotten {
            self.forgotten = forgotten;
        }
    }
}

/// One row of the table.
struct Operation {
    /// Whether it changes machines that stay: one of these at a time.
    is_change: bool,
    needs: Needs,
    propose: fn(&PlaneState<'_>, &Basis<'_>, &Round) -> Proposal,
}

const fn change(needs: Needs, propose: fn(&PlaneState<'_>, &Basis<'_>, &Round) -> Proposal) -> Operation {
    Operation { is_change: true, needs, propose }
}

const fn beside(needs: Needs, propose: fn(&PlaneState<'_>, &Basis<'_>, &Round) -> Proposal) -> Operation {
    Operation { is_change: false, needs, propose }
}

/// All of them, in their order.
const OPERATIONS: &[Operation] = &[
    beside(Needs::Lock, fence_returned::propose),
    change(Needs::Spec, install::propose),
    change(Needs::Lock, remove_etcd_member::propose),
    change(Needs::Spec, join::propose),
    beside(Needs::Spec, machine_sets::propose),
    beside(Needs::Lock, observe_etcd::propose),
    beside(Needs::Lock, observe_parts::propose),
    beside(Needs::Lock, reset::propose),
    beside(Needs::Lock, withdraw_runs::propose),
    beside(Needs::Nothing, remember_forgotten::propose),
    beside(Needs::Nothing, hold_runs::propose),
];

/// Asks them all.
pub(in super::super) fn propose(state: &PlaneState<'_>, basis: &Basis<'_>, mut round: Round) -> Round {
    if let Some(lost) = round.tokens.lost().cloned() {
        round.next = round.next.or_sooner(lost.next);
        round.acts.extend(lost.probe.map(Act::CreateRun));
        round.problems.push(Problem { reason: lost.reason, message: lost.message });
    }
    for operation in OPERATIONS {
        if !(operation.is_change && round.is_busy) {
            let proposal = (operation.propose)(state, basis, &round);
            round.take(operation.needs, proposal);
        }
    }
    round
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    /// A file that no row calls would never do anything.
    #[test]
    fn every_operation_has_its_row() {
        let source = Path::new("src/karmada_deployment/machines");
        let text = fs::read_to_string(source.join("operations.rs")).unwrap();
        let table = text.split("#[cfg(test)]").next().unwrap();
        let calls = table.split("::propose)").filter_map(|before| {
            let name = before.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
            (!name.is_empty()).then(|| name.to_owned())
        });
        let rows: BTreeSet<String> = calls.collect();
        let files = fs::read_dir(source.join("operations")).unwrap();
        let files = files.filter_map(|file| {
            let name = file.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".rs").map(str::to_owned)
        });
        assert_eq!(rows, files.collect());
    }
}
