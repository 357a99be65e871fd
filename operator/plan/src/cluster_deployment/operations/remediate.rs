//! Remediates the cluster's sick machines: looks at the state for [`remediation`], makes the runs and deletions that it
//! decides on, and reports every decision, also not to act.

mod approval;
mod seen;
mod told;
mod tried;

use crds::Reason;
use crds::cluster_deployment::Repair;
use crds::conditions::Statement;
use crds::names::condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Area, Proposal, Record, Report, Round, Severity};
use crate::cluster_deployment::state::ClusterState;
use crate::message::cut;
use crate::remediation::{self, Decision, Removals};
use approval::Approval;
use told::{entry, replaced, summary, told};

pub(super) use seen::unreachable;

/// Entries that the status takes.
const MOST_TOLD: usize = 100;

/// Without the cluster's last token nothing begins, and beside a run that changes the control plane or etcd and begins
/// now, nothing there.
pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    let recorded = state.deployment.status.as_ref();
    let calm_since = recorded.and_then(|status| status.calm_since.clone());
    let nothing = |removals| recording(Vec::new(), None, None, removals).condition(condition::REMEDIATION, None);
    if state.installed.is_none() {
        return Proposal { removals: None, ..nothing(Removals::Unknown) };
    }
    let input = seen::input(state, calm_since.as_ref(), round.lock_is_known(), round.begins());
    let removals = Removals::decide(&input);
    if input.machines.iter().all(|machine_health| machine_health.rule.is_none()) {
        return nothing(removals);
    }
    let decided = remediation::decide(&input);
    let replaced = replaced(state);
    let (statement, clause) = summary(state, &input, &decided, &replaced);
    let approval = decided.too_many.then(|| Approval::read(state).value);
    let mut proposal =
        recording(entries(state, &decided.decisions, replaced), decided.calm_since.map(Time), approval, removals)
            .condition(condition::REMEDIATION, Some(statement));
    proposal.actions = decided.decisions.iter().filter_map(|decision| begin(state, decision)).collect();
    proposal.report = clause.map(|message| Report {
        area: Area::Remediation,
        reason: Reason::Repairing,
        message,
        severity: Severity::Progressing,
    });
    match decided.look_again {
        Some(at) => proposal.at(state, at),
        None => proposal,
    }
}

/// Names of the runs that decide what comes next, for machines that live.
pub(super) fn keeps(state: &ClusterState<'_>) -> Vec<String> {
    tried::needed(state)
}

/// What the status says of it.
fn recording(entries: Vec<Repair>, calm_since: Option<Time>, approval: Option<String>, removals: Removals) -> Proposal {
    let proposal = Proposal { records: vec![Record::Repairs { entries, calm_since, approval }], ..Proposal::default() };
    let proposal = match &removals {
        Removals::Held(why) => {
            let held = Statement::new(condition::REMOVALS_HELD, true, Reason::TooManyUnhealthy, cut(why.clone()));
            proposal.condition(condition::REMOVALS_HELD, Some(held))
        }
        Removals::Free => proposal.condition(condition::REMOVALS_HELD, None),
        Removals::Unknown => proposal,
    };
    Proposal { removals: Some(removals), ..proposal }
}

fn begin(state: &ClusterState<'_>, decision: &Decision) -> Option<Action> {
    let begin = decision.begin.as_ref()?;
    let mut live = state.live.iter();
    let machine = live.find(|machine| machine.name() == decision.machine)?;
    Some(tried::next(state, machine, begin))
}

/// An entry a machine; those about which something is done first, where there are too many.
fn entries(state: &ClusterState<'_>, decisions: &[Decision], replaced: Vec<Repair>) -> Vec<Repair> {
    let mut entries: Vec<Repair> = decisions.iter().map(entry).chain(replaced).collect();
    entries.sort_by(|a, b| (a.action.is_none(), &a.machine).cmp(&(b.action.is_none(), &b.machine)));
    entries.truncate(MOST_TOLD);
    entries.sort_by(|a, b| a.machine.cmp(&b.machine));
    for entry in &mut entries {
        let same = |before: &&Repair| before.reason == entry.reason && before.action == entry.action;
        let before = told(state, &entry.machine).filter(same);
        entry.since = before.map_or(Time(state.observed.now), |before| before.since.clone());
    }
    entries
}
