//! Why a set neither makes nor deletes Machines now.

use crds::machine_set::MachineSetMode;
use crds::{ObjectExt, Reason};

use super::observed::Observed;
use crate::formed_cluster::{Standstill, standstill};

/// Why a set neither makes nor deletes Machines now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub reason: Reason,
    pub message: String,
}

pub(super) fn hold(observed: &Observed<'_>) -> Option<Hold> {
    let set = observed.set;
    let because = |reason, message: String| Some(Hold { reason, message });
    if set.is_deleting() {
        return because(Reason::Deleting, "the set is being deleted".into());
    }
    if set.spec.mode == MachineSetMode::Manual {
        return because(Reason::Manual, "its Machines are made and deleted by a platform".into());
    }
    let cluster = &set.spec.cluster_name;
    match standstill(observed.formed, None)? {
        Standstill::NotThere => {
            let message = format!("there is no {} in this namespace: make it, or delete the set", set.spec.former());
            because(Reason::ClusterNotFound, message)
        }
        Standstill::Deleting => because(Reason::ClusterDeleting, format!("cluster {cluster} is being deleted")),
        Standstill::Paused => because(Reason::Paused, format!("cluster {cluster} is paused")),
        // What the set makes claims nothing until then.
        Standstill::NotBelieved => None,
    }
}
