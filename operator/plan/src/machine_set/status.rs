//! What a MachineSet shows: counts, and the sentence about what it lacks.

use crds::KubernetesVersion;
use crds::Machine;
use crds::ObjectExt;
use crds::Reason;
use crds::conditions::{self, Statement};
use crds::kstatus::{self, Standing};
use crds::machine_set::{HostSupply, MachineSetStatus};
use crds::names::{condition, label};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::hold::Hold;
use super::members::Members;
use super::observed::Observed;
use super::scale_down::is_ready;
use super::up_to_date;
use crate::claims::{self, HostRequest};
use crate::formed_cluster::is_node;
use crate::message::cut;

/// What the planner came to, as far as the status tells of it.
pub(super) struct Outcome<'a> {
    pub hold: Option<&'a Hold>,
    /// Why nothing more is made or deleted.
    pub waits: Option<String>,
    /// Why healthy Machines stay although they are too many.
    pub held: Option<String>,
    pub available: i32,
}

/// The set's live Machines in numbers.
struct Counts {
    wanted: i32,
    replicas: i32,
    ready: i32,
    leaving: usize,
}

impl Counts {
    fn is_scaling_up(&self) -> bool {
        self.wanted > self.replicas
    }

    fn is_scaling_down(&self) -> bool {
        self.replicas > self.wanted || self.leaving > 0
    }

    fn all_ready(&self) -> bool {
        self.ready >= self.wanted && !self.is_scaling_up()
    }
}

pub(super) fn set_status(
    observed: &Observed<'_>,
    members: &Members<'_>,
    outcome: &Outcome<'_>,
) -> (MachineSetStatus, Option<String>) {
    let set = observed.set;
    let live = &members.live();
    let count = |holds: &dyn Fn(&Machine) -> bool| {
        i32::try_from(live.iter().filter(|machine| holds(machine)).count()).unwrap_or(i32::MAX)
    };
    let counts = Counts {
        wanted: i32::try_from(set.spec.count()).unwrap_or(i32::MAX),
        replicas: count(&|_| true),
        ready: count(&is_ready),
        leaving: members.own.len() - live.len(),
    };
    let supply = host_supply(observed, live);
    let hosts = hosts_available(supply.as_ref());
    let message = message(members, outcome, &counts, &hosts);
    let settled = counts.all_ready() && !counts.is_scaling_down();
    let ready = ready(outcome, &counts, message.clone());
    let mut statements = vec![ready.clone()];
    statements.extend(scaling(outcome, &counts));
    statements.push(hosts);
    statements.push(up_to_date::statement(live));
    let old = set.status.as_ref();
    let mut old_conditions = old.map(|status| status.conditions.clone()).unwrap_or_default();
    let is_stalled = |machine: &&Machine| {
        let status = machine.status.as_ref();
        status.is_some_and(|status| kstatus::is_stalled(&status.conditions))
    };
    let standing = Standing::new(settled, live.iter().any(is_stalled));
    standing.report(&ready, &mut old_conditions, &mut statements);
    let version = set.spec.template.kubernetes_version;
    let status = MachineSetStatus {
        observed_generation: set.metadata.generation,
        selector: Some(format!("{}={},{}={}", label::CLUSTER, set.spec.cluster_name, label::MACHINE_SET, set.name())),
        message: Some(cut(message.clone())),
        replicas: counts.replicas,
        requested_replicas: i32::try_from(members.requested.len()).unwrap_or(i32::MAX),
        ready_replicas: counts.ready,
        available_replicas: outcome.available,
        updated_replicas: count(&|machine| is_updated(observed, machine, version)),
        host_supply: supply,
        conditions: conditions::state(&old_conditions, &statements, set.metadata.generation, &Time(observed.now)),
    };
    let is_done = settled && outcome.hold.is_none_or(|hold| hold.reason == Reason::Manual);
    (status, (!is_done).then_some(message))
}

fn message(members: &Members<'_>, outcome: &Outcome<'_>, counts: &Counts, hosts: &Statement) -> String {
    let Counts { wanted, ready, .. } = counts;
    match (outcome.hold, &outcome.waits) {
        (Some(hold), _) => hold.message.clone(),
        (None, Some(waits)) => waits.clone(),
        (None, None) if hosts.status == Some(false) => hosts.message.clone(),
        (None, None) if counts.is_scaling_up() => format!("makes {} more", wanted - counts.replicas),
        (None, None) if counts.leaving > 0 => {
            format!("{} leaving, {ready} of {wanted} ready", counts.leaving)
        }
        (None, None) if ready < wanted => waits_for_machines(&members.live(), *ready, *wanted),
        (None, None) => at_rest(members),
    }
}

fn ready(outcome: &Outcome<'_>, counts: &Counts, message: String) -> Statement {
    let why = match (counts.is_scaling_up(), counts.is_scaling_down()) {
        (true, _) => outcome.hold.map_or(Reason::MachinesMissing, |hold| hold.reason),
        (false, true) if outcome.held.is_some() => Reason::TooManyUnhealthy,
        (false, true) => Reason::MachinesLeaving,
        (false, false) if counts.all_ready() => Reason::AllReady,
        (false, false) => Reason::MachinesNotReady,
    };
    let is_ready = counts.all_ready() && !counts.is_scaling_down();
    Statement::new(condition::READY, is_ready, why, cut(message))
}

/// `MachinesReady`, `ScalingUp` and `ScalingDown`.
fn scaling(outcome: &Outcome<'_>, counts: &Counts) -> [Statement; 3] {
    let (up, down) = (counts.is_scaling_up(), counts.is_scaling_down());
    let Counts { wanted, replicas, ready, leaving } = counts;
    let is_ready = match counts.all_ready() {
        true => Reason::AllReady,
        false => Reason::MachinesNotReady,
    };
    let (why_up, message_up) = match outcome.hold {
        Some(hold) => (hold.reason, cut(hold.message.clone())),
        None if up => (Reason::MachinesMissing, format!("{replicas} of {wanted} Machines exist")),
        None => (Reason::ReplicasReached, format!("{replicas} of {wanted} Machines exist")),
    };
    let (why_down, message_down) = match &outcome.held {
        Some(held) => (Reason::TooManyUnhealthy, cut(held.clone())),
        None if down => {
            (Reason::MachinesLeaving, format!("{replicas} of {wanted} Machines exist, {leaving} being deleted"))
        }
        None => (Reason::ReplicasReached, format!("no Machine more than the {wanted} wanted")),
    };
    [
        Statement::new(condition::MACHINES_READY, counts.all_ready(), is_ready, format!("{ready} of {wanted} ready")),
        Statement::new(condition::SCALING_UP, up && outcome.hold.is_none(), why_up, message_up),
        Statement::new(condition::SCALING_DOWN, down, why_down, message_down),
    ]
}

fn at_rest(members: &Members<'_>) -> String {
    let offered = members.offered.iter();
    let names: Vec<&str> = offered.filter_map(|machine| machine.metadata.name.as_deref()).collect();
    match names.as_slice() {
        [] => "running".into(),
        names => format!("running; {} with its label will be taken over once the count is raised", names.join(", ")),
    }
}

fn waits_for_machines(live: &[&Machine], ready: i32, wanted: i32) -> String {
    let first = live.iter().find(|machine| !is_ready(machine));
    let name = first.and_then(|machine| machine.metadata.name.as_deref()).unwrap_or_default();
    let status = first.and_then(|machine| machine.status.as_ref());
    let says = status.and_then(|status| status.message.as_deref()).unwrap_or("not looked at yet");
    format!("{ready} of {wanted} ready; {name}: {says}")
}

fn is_updated(observed: &Observed<'_>, machine: &Machine, version: Option<KubernetesVersion>) -> bool {
    let role = machine.spec.role;
    let seen = machine.status.as_ref().and_then(|status| status.kubernetes_version.as_deref());
    match is_node(observed.set.spec.cluster_kind, role, observed.formed) {
        true => seen.zip(version).is_some_and(|(seen, version)| seen.parse() == Ok(version)),
        false => is_ready(machine),
    }
}

/// What the pool has for the Machines that look for a Host; `None` when none does.
fn host_supply(observed: &Observed<'_>, live: &[&Machine]) -> Option<HostSupply> {
    let needs = live.iter().filter(|machine| claims::is_looking(machine)).count();
    if needs == 0 {
        return None;
    }
    let template = &observed.set.spec.template;
    let host_request = HostRequest {
        selector: template.host_selector.as_ref(),
        hosts: template.hosts.as_deref(),
        spread_by: &template.spread_by,
    };
    let offer = claims::offer(&host_request, observed.hosts);
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let why = offer.why_unfit().filter(|_| offer.free < needs);
    Some(HostSupply { needs: number(needs), free: number(offer.free), why: why.map(cut) })
}

fn hosts_available(supply: Option<&HostSupply>) -> Statement {
    let Some(supply) = supply else {
        return Statement::new(condition::HOSTS_AVAILABLE, true, Reason::EnoughHosts, "no Machine looks for a Host");
    };
    let reason = if supply.is_enough() { Reason::EnoughHosts } else { Reason::NotEnoughHosts };
    let message = match &supply.why {
        Some(why) => format!("{}; {why}", supply.counts()),
        None => supply.counts(),
    };
    Statement::new(condition::HOSTS_AVAILABLE, supply.is_enough(), reason, message)
}
