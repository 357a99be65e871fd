//! What may be under way with the machines of a plane, as data. Each operation is one file that looks at the state and
//! proposes; the table says their order. Parts are no operations: each belongs to its stage.

pub(super) mod compare_store;
pub(super) mod defragment_etcd;
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
mod set_back;
mod withdraw_runs;

use super::act::Act;
use super::part_wanted::Basis;
use super::proposal::{Needs, Proposal, Round};
use super::state::PlaneState;
use crate::addon::Problem;

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
    beside(Needs::Nothing, compare_store::propose),
    beside(Needs::Lock, fence_returned::propose),
    change(Needs::Spec, install::propose),
    change(Needs::Spec, set_back::propose),
    change(Needs::Lock, remove_etcd_member::propose),
    change(Needs::Spec, join::propose),
    // It says what it waits for, also while something else is under way.
    beside(Needs::Lock, defragment_etcd::propose),
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
    #[test]
    fn every_operation_has_its_row() {
        crate::testing::operations::every_file_has_its_row("karmada_deployment/machines");
    }
}
