//! Blockers: why a cluster is not as wanted, as a reason for programs and a sentence for people.

use crds::Conditions;
use crds::ObjectExt;
use crds::names::condition;
use crds::step::Role;

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
        Self {
            known: true,
            reason: reason.into(),
            message,
        }
    }
}

impl From<&Report> for Blocker {
    fn from(report: &Report) -> Self {
        Self::new(report.reason, report.message.clone())
    }
}

/// `waits for Hosts: workers general needs 3, 2 free match`.
pub(super) fn waits_for_hosts(state: &ClusterState<'_>, wanted: impl Fn(Role) -> bool) -> Option<String> {
    let mut needs: Vec<String> = Vec::new();
    let mut whys: Vec<String> = Vec::new();
    for set in state.sets().filter(|set| wanted(set.spec.role)) {
        let hosts = set.condition(condition::HOSTS_AVAILABLE);
        let Some(hosts) = hosts.filter(|hosts| hosts.status == "False") else {
            continue;
        };
        let name = set.name();
        let short = name
            .strip_prefix(&state.name)
            .and_then(|rest| rest.strip_prefix('-'))
            .unwrap_or(name);
        let set = match set.spec.role {
            Role::Worker => format!("workers {short}"),
            Role::ControlPlane | Role::Etcd => short.to_owned(),
        };
        let (need, why) = hosts.message.split_once("; ").unwrap_or((&hosts.message, ""));
        needs.push(format!("{set} {need}"));
        // Sets that look at the same Hosts say the same of them: once is enough.
        if !why.is_empty() && !whys.iter().any(|told| told == why) {
            whys.push(why.to_owned());
        }
    }
    let parts: Vec<String> = needs.into_iter().chain(whys).collect();
    (!parts.is_empty()).then(|| format!("waits for Hosts: {}", parts.join("; ")))
}
