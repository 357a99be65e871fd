//! Blockers: why a cluster is not as wanted, as a reason for programs and a sentence for people.

use crds::step::Role;
use crds::{MachineSet, ObjectExt};

use super::proposal::Report;
use super::state::ClusterState;

/// Why the cluster is not as wanted.
#[derive(Clone)]
pub(super) struct Blocker {
    /// Whether it is known.
    pub known: bool,
    pub reason: String,
    pub message: String,
}

impl Blocker {
    pub fn new(reason: impl Into<String>, message: String) -> Self {
        Self { known: true, reason: reason.into(), message }
    }
}

impl From<&Report> for Blocker {
    fn from(report: &Report) -> Self {
        Self::new(report.reason, report.message.clone())
    }
}

/// `waits for Hosts: workers general needs 3, 2 free match`, of the sets that have said that they lack some.
pub(super) fn waits_for_hosts(state: &ClusterState<'_>, wanted: impl Fn(Role) -> bool) -> Option<String> {
    let mut needs: Vec<String> = Vec::new();
    let mut whys: Vec<String> = Vec::new();
    for set in state.sets().filter(|set| wanted(set.spec.role) && !lacks_surge_alone(set)) {
        let supply = set.status.as_ref().and_then(|status| status.host_supply.as_ref());
        let Some(supply) = supply.filter(|supply| !supply.is_enough()) else {
            continue;
        };
        let name = set.name();
        let short = name.strip_prefix(&state.name).and_then(|rest| rest.strip_prefix('-')).unwrap_or(name);
        let title = match set.spec.role {
            Role::Worker => format!("workers {short}"),
            Role::ControlPlane | Role::Etcd => short.to_owned(),
        };
        needs.push(format!("{title} {}", supply.counts()));
        // Sets that look at the same Hosts lack them for the same reason: once is enough.
        whys.extend(supply.why.clone().filter(|why| !whys.contains(why)));
    }
    let parts: Vec<String> = needs.into_iter().chain(whys).collect();
    (!parts.is_empty()).then(|| format!("waits for Hosts: {}", parts.join("; ")))
}

/// Whether all that are wanted are there, and a Host is only lacking for one that joins for a change.
fn lacks_surge_alone(set: &MachineSet) -> bool {
    let ready = set.status.as_ref().map(|status| status.ready_replicas).unwrap_or_default();
    set.spec.surge > 0 && ready >= set.spec.replicas
}
