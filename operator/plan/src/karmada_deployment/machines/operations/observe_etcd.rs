//! Looks at the members of etcd by a run that changes nothing: how each of them is decides who may leave and who joins.

use crds::step::Step;

use super::super::part_wanted::Basis;
use super::super::proposal::{Proposal, Round};
use super::super::state::PlaneState;
use super::observe_parts::look;
use crate::cluster_machine::ClusterMachine;
use crate::etcd;

pub(super) fn propose(state: &PlaneState<'_>, _: &Basis<'_>, _: &Round) -> Proposal {
    let Some(role) = state.cluster.etcd_role else { return Proposal::default() };
    let machines: Vec<ClusterMachine<'_>> = state.working(role).collect();
    if state.installed.is_none() || machines.is_empty() {
        return Proposal::default();
    }
    look(state, &machines, &etcd::is_probe, |hosts, number| {
        let mut run = state.owner.probe(Step::ProbeEtcd, hosts, &["probe-etcd"], number);
        let members: Vec<_> = machines.iter().map(|machine| machine.machine).collect();
        run.spec.vars = state.etcd_variables(&members);
        run
    })
}
