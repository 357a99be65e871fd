//! What is seen of the machines and of what goes on around them.

use crds::Conditions;
use crds::ObjectExt;
use crds::Reason;
use crds::cluster_deployment::EtcdTopology;
use crds::machine::DrainReason;
use crds::machine_set::MachineSetMode;
use crds::names::{annotation, condition};
use crds::remediation_policy::RemediationAction as Action;
use crds::step::Role;
use crds::{Machine, MachineSet, PlaybookRun, conditions};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::approval::Approval;
use super::told::{replaced, told};
use super::tried::{efforts_of, is_effort};
use crate::attempts::{self, RetryDecision};
use crate::claims::{self, HostRequest};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::departure::is_out;
use crate::disruption;
use crate::etcd::{self, Health};
use crate::machine_request;
use crate::remediation::{self, Effort, EffortResult, MachineHealth, RemediationInput, Rule, SetSeen, Spares, State};

/// Reasons of a machine that is about to be seen for the first time.
const NOT_SEEN_YET: [Reason; 4] =
    [Reason::NodeStarting, Reason::NodeNotSeenYet, Reason::NodeNotThereYet, Reason::ClusterNotThereYet];

/// All machines of the cluster that stay, and what goes on around them.
pub(super) fn input(
    state: &ClusterState<'_>,
    calm_since: Option<&Time>,
    lock_known: bool,
    changes: Option<&PlaybookRun>,
) -> RemediationInput {
    let observed = state.observed;
    let unreachable = unreachable(state);
    let contact_since = in_contact_since(state);
    let status = state.deployment.status.as_ref();
    let recorded = status.map(|status| status.repairs.as_slice()).unwrap_or_default();
    let approval = Approval::read(state);
    let too_many = approval.given || recorded.iter().any(|repair| repair.reason == Reason::TooManyUnhealthy);
    let machines: Vec<MachineHealth> =
        state.live.iter().map(|member| machine_health(state, member, contact_since, unreachable.is_some())).collect();
    let others = observed
        .deployments
        .iter()
        .filter(|other| other.metadata.uid != state.deployment.metadata.uid)
        .filter(|other| other.metadata.namespace == state.deployment.metadata.namespace)
        .filter_map(|other| other.status.as_ref())
        .flat_map(|status| &status.repairs);
    let under_repair = others.chain(&replaced(state)).filter(|repair| repair.action.is_some()).count();
    let sets: Vec<_> = state.sets().collect();
    RemediationInput {
        now: observed.now,
        unreachable,
        etcd: state.etcd_problem(),
        paused: state.deployment.spec.paused,
        lock_known,
        change: changes.map(works_on).or_else(|| change(state)),
        stacked: state.deployment.spec.etcd.topology == EtcdTopology::Stacked,
        elsewhere: under_repair,
        was_too_many: too_many,
        calm_since: calm_since.map(|time| time.0),
        spares: Spares::count(observed.hosts, observed.machines, &sets),
        sets: sets.iter().map(|set| set_seen(state, set)).collect(),
        approve: state.approve(&approval.value),
        approved: approval.given,
        machines,
    }
}

fn set_seen(state: &ClusterState<'_>, set: &MachineSet) -> (String, SetSeen) {
    let name = set.name().to_owned();
    let replaced = state.leaving.iter().filter(|member| {
        let told = told(state, member.name());
        claims::set_of(member.machine) == Some(&name)
            && told.is_some_and(|told| told.action == Some(Action::Replace))
            && !member.deleting_reason().is_some_and(is_out)
            && may_have_served(state, member)
    });
    let seen = SetSeen { most: disruption::most(set, Some(state.deployment)), replaced: replaced.count() };
    (name, seen)
}

/// Whether it was part of the cluster, and SSH reached it for all that is known.
fn may_have_served(state: &ClusterState<'_>, member: &ClusterMachine<'_>) -> bool {
    let efforts = efforts_of(state, member.uid());
    let silent = |last: &Effort| matches!(&last.result, EffortResult::Failed(failure) if failure.is_silence());
    member.is_provisioned() && !efforts.last().is_some_and(silent)
}

/// What the Cluster says of its API.
fn reachable<'a>(state: &ClusterState<'a>) -> Option<&'a Condition> {
    let status = state.observed.cluster?.status.as_ref()?;
    conditions::find(&status.conditions, condition::REACHABLE)
}

/// Why the API is out of reach.
pub fn unreachable(state: &ClusterState<'_>) -> Option<String> {
    match reachable(state) {
        Some(reachable) => (reachable.status != "True").then(|| reachable.message.clone()),
        None => {
            let name = &state.name;
            Some(format!("the API of cluster {name} has not been looked at yet"))
        }
    }
}

/// Since when it is in reach without a gap.
fn in_contact_since(state: &ClusterState<'_>) -> Option<Timestamp> {
    let reachable = reachable(state).filter(|reachable| reachable.status == "True");
    reachable.map(|reachable| reachable.last_transition_time.0)
}

fn machine_health(
    state: &ClusterState<'_>,
    member: &ClusterMachine<'_>,
    contact_since: Option<Timestamp>,
    lost: bool,
) -> MachineHealth {
    let machine = member.machine;
    let status = machine.status.as_ref();
    let host = member.host_name().unwrap_or_default();
    let rule = remediation::holding(machine, state.observed.policies, Some(state.deployment));
    let efforts = efforts_of(state, member.uid());
    let own = |run: &PlaybookRun| is_effort(run, member.uid()).is_some();
    let busy = state.active_on(host).filter(|run| !own(run));
    let health = match health(state, member, contact_since, lost) {
        State::Well => counted(machine, rule.as_ref(), contact_since).unwrap_or(State::Well),
        other => other,
    };
    let fitting = match health {
        State::Sick { .. } | State::NeverStarted { .. } => {
            claims::offer(&HostRequest::from_machine(machine), state.observed.hosts).free
        }
        State::Well | State::NotJudged | State::Unknown => 0,
    };
    let annotations = machine.metadata.annotations.as_ref();
    MachineHealth {
        name: member.name().to_owned(),
        host: host.to_owned(),
        role: machine.spec.role,
        state: health,
        seen_at: (machine.spec.role == Role::Etcd)
            .then(|| etcd::look(machine, state.observed.runs, state.observed.now).at)
            .flatten(),
        set: claims::set_of(machine).map(str::to_owned),
        joined: status.is_some_and(|status| status.provisioned_at.is_some()),
        skipped: skipped(machine),
        busy: busy.and_then(|run| run.metadata.name.clone()),
        efforts,
        retry: attempts::asked_retry(annotations, machine.generation()),
        irreplaceable: irreplaceable(state, machine),
        fitting,
        told: told(state, member.name()).is_some(),
        rule,
    }
}

/// By what a person asks that nothing is done about the machine.
fn skipped(machine: &Machine) -> Option<String> {
    if machine.annotation(annotation::SKIP_REMEDIATION).is_some() {
        return Some(format!("the Machine has the annotation {}", annotation::SKIP_REMEDIATION));
    }
    let is_maintained = machine.spec.drain_for.contains(&DrainReason::Maintenance);
    is_maintained.then(|| "the Machine has Maintenance in spec.drainFor".to_owned())
}

fn irreplaceable(state: &ClusterState<'_>, machine: &Machine) -> Option<String> {
    if let Some(request) = machine_request::request_of(machine) {
        return Some(format!(
            "it was made for MachineRequest {request}, which makes no other: delete it, and request another"
        ));
    }
    let Some(name) = claims::set_of(machine) else {
        return Some("the Machine is of no MachineSet, so that none would be made in its place".into());
    };
    match state.set(name) {
        None => Some(format!("its MachineSet {name} is gone")),
        Some(set) if set.spec.mode == MachineSetMode::Manual => {
            Some(format!("its MachineSet {name} is in mode Manual: whoever makes its Machines replaces them"))
        }
        Some(_) => None,
    }
}

fn health(
    state: &ClusterState<'_>,
    member: &ClusterMachine<'_>,
    contact_since: Option<Timestamp>,
    lost: bool,
) -> State {
    let status = member.machine.status.as_ref();
    let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    if !member.is_provisioned() {
        return never_started(state, member).unwrap_or(State::NotJudged);
    }
    if member.machine.spec.role == Role::Etcd {
        return state_of_member(state, member, contact_since, lost);
    }
    let Some(node) = conditions::find(conditions, condition::NODE_READY) else {
        return State::NotJudged;
    };
    match (node.status.as_str(), node.reason.as_str()) {
        ("True", _) if !lost => State::Well,
        (_, reason) if lost || reason == Reason::ClusterUnreachable => State::Unknown,
        (_, reason) if Reason::among(reason, &NOT_SEEN_YET) => State::NotJudged,
        _ => State::Sick {
            // What was before contact was lost says nothing of the time without it.
            since: node.last_transition_time.0.max(contact_since.unwrap_or(Timestamp::MIN)),
            what: match node.message.as_str() {
                "" => "its node is not Ready".into(),
                said => said.trim_end_matches('.').to_owned(),
            },
        },
    }
}

/// A machine whose node is Ready, and that is sick all the same by what its policy counts.
fn counted(machine: &Machine, rule: Option<&Rule>, contact_since: Option<Timestamp>) -> Option<State> {
    let conditions = &machine.status.as_ref()?.conditions;
    let bad = |type_: &str| conditions::find(conditions, type_).filter(|condition| condition.status == "False");
    let mut counted = rule?.remediation.unhealthy_conditions.iter();
    let condition = counted.find_map(|counted| bad(counted.type_()))?;
    Some(State::Sick {
        since: condition.last_transition_time.0.max(contact_since.unwrap_or(Timestamp::MIN)),
        what: condition.message.trim_end_matches('.').to_owned(),
    })
}

/// A machine of a dedicated etcd, which has no Node. While the API is out of reach it may be etcd as a whole that is
/// lost.
fn state_of_member(
    state: &ClusterState<'_>,
    member: &ClusterMachine<'_>,
    contact_since: Option<Timestamp>,
    lost: bool,
) -> State {
    let observed = state.observed;
    let healthy = member.machine.condition(condition::HEALTHY);
    let sick = healthy.filter(|healthy| healthy.status == "False");
    match etcd::look(member.machine, observed.runs, observed.now).health {
        _ if lost => State::Unknown,
        Health::Well => State::Well,
        Health::Unknown => State::NotJudged,
        Health::Sick(what) => State::Sick {
            since: sick
                .map_or(observed.now, |sick| sick.last_transition_time.0)
                .max(contact_since.unwrap_or(Timestamp::MIN)),
            what,
        },
    }
}

/// A machine that was tried in vain. One that waits for its turn, or whose runs do not begin, is not to blame.
fn never_started(state: &ClusterState<'_>, member: &ClusterMachine<'_>) -> Option<State> {
    let claimed = member.machine.condition(condition::HOST_CLAIMED)?;
    member.host.filter(|_| claimed.status == "True")?;
    let what = match state.retry_decision(member) {
        RetryDecision::Later { cause, .. } | RetryDecision::Halted { cause: Some(cause), .. } if cause.has_begun() => {
            format!("it has not become part of the cluster: {}: {}", cause.reason, cause.message)
        }
        _ => return None,
    };
    Some(State::NeverStarted { since: claimed.last_transition_time.0, what })
}

fn works_on(run: &PlaybookRun) -> String {
    let name = run.name();
    format!("run {name} works on {}", run.spec.hosts.join(", "))
}

/// What else goes on with the control plane and etcd.
fn change(state: &ClusterState<'_>) -> Option<String> {
    let of_control = |member: &&ClusterMachine<'_>| member.machine.spec.role != Role::Worker;
    let leaves = state.leaving.iter().filter(of_control).find(|member| !member.deleting_reason().is_some_and(is_out));
    if let Some(member) = leaves {
        return Some(format!("{} leaves", member.title()));
    }
    let members = || state.live.iter().chain(&state.leaving).filter(of_control);
    let run = state.active.iter().find(|run| {
        members().any(|member| {
            let host = member.host_name();
            let works = host.is_some_and(|host| run.spec.hosts.iter().any(|named| named == host));
            works && is_effort(run, member.uid()).is_none()
        })
    });
    if let Some(run) = run {
        return Some(works_on(run));
    }
    let joins = state.live.iter().filter(of_control).find(|member| {
        let joined = member.is_provisioned();
        // One that cannot join is in nobody's way.
        !joined
            && member.host.is_some()
            && !matches!(state.retry_decision(member), RetryDecision::Later { .. } | RetryDecision::Halted { .. })
    })?;
    Some(format!("{} joins", joins.title()))
}
