//! The machine's member of etcd: its ID, and, on a machine that is no Node, as those of a dedicated etcd, how it is.

use crds::Reason;
use crds::conditions::Statement;
use crds::names::condition;

use super::observed::Observed;
use crate::departure;
use crate::etcd::{self, Health};

/// The ID that was told last; none once the member is out of etcd.
pub(super) fn id(observed: &Observed<'_>) -> Option<String> {
    let machine = observed.machine;
    let host = machine.spec.host_ref.as_ref();
    let told = host.and_then(|host| etcd::member_id(machine, &host.name, observed.runs));
    let out = observed
        .formed
        .and_then(|cluster| departure::out_of_etcd_at(machine, observed.machines, cluster, observed.runs));
    match out {
        Some(out) => told.filter(|(at, _)| *at > out).map(|(_, id)| id),
        None => {
            let before = machine.status.as_ref();
            let before = || before.and_then(|status| status.etcd_member_id.clone());
            told.map(|(_, id)| id).or_else(before)
        }
    }
}

/// `Ready` of a machine that is no Node, and whose member of etcd is not well.
pub(super) fn not_well(observed: &Observed<'_>) -> Option<Statement> {
    if observed.has_node() {
        return None;
    }
    match etcd::look(observed.machine, observed.runs, observed.now).health {
        Health::Sick(what) => Some(Statement::new(condition::READY, false, Reason::EtcdMemberUnhealthy, what)),
        // Not to know is not to be ill.
        Health::Well | Health::Unknown => None,
    }
}
