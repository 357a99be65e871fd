//! What a MachineSet shows: counts, and the sentence about what it lacks.

use crds::Machine;
use crds::ObjectExt;
use crds::Reason;
use crds::conditions::{self, Statement};
use crds::kstatus::{self, Standing};
use crds::machine_set::MachineSetStatus;
use crds::names::{condition, label};
use crds::step::Role;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::members::Members;
use super::shrinking::is_ready;
use super::{Hold, Observed};
use crate::claims::{self, HostRequest};

pub(super) fn of(
    observed: &Observed<'_>,
    members: &Members<'_>,
    hold: Option<&Hold>,
    waits: Option<String>,
    held: Option<String>,
    available: i32,
) -> (MachineSetStatus, Option<String>) {
    let set = observed.set;
    let live = &members.live();
    let wanted = set.spec.replicas;
    let count = |holds: &dyn Fn(&Machine) -> bool| {
        i32::try_from(live.iter().filter(|machine| holds(machine)).count()).unwrap_or(i32::MAX)
    };
    let replicas = count(&|_| true);
    let ready = count(&is_ready);
    let leaving = members.own.len() - live.len();
    let hosts = hosts_available(observed, live);
    let scaling_up = wanted > replicas;
    let scaling_down = replicas > wanted || leaving > 0;
    let message = match hold {
        Some(hold) => hold.message.clone(),
        None if waits.is_some() => waits.unwrap_or_default(),
        None if hosts.status == Some(false) => hosts.message.clone(),
        None if scaling_up => format!("makes {} more", wanted - replicas),
        None if leaving > 0 => format!("{leaving} leaving, {ready} of {wanted} ready"),
        None if ready < wanted => waits_for_machines(live, ready, wanted),
        None => at_rest(members),
    };
    let all_ready = ready >= wanted && !scaling_up;
    let up = if scaling_up {
        Reason::MachinesMissing
    } else {
        Reason::ReplicasReached
    };
    let down = if held.is_some() {
        Reason::TooManyUnhealthy
    } else if scaling_down {
        Reason::MachinesLeaving
    } else {
        Reason::ReplicasReached
    };
    let is_ready = all_ready && !scaling_down;
    let why = match (scaling_up, scaling_down) {
        (true, _) => hold.map_or(up, |hold| hold.reason),
        (false, true) => down,
        (false, false) if all_ready => Reason::AllReady,
        (false, false) => Reason::MachinesNotReady,
    };
    let ready_told = Statement::new(
        condition::READY,
        is_ready,
        why,
        crate::sentence::cut(message.clone()),
    );
    let mut statements = vec![
        ready_told.clone(),
        Statement::new(
            condition::MACHINES_READY,
            all_ready,
            if all_ready {
                Reason::AllReady
            } else {
                Reason::MachinesNotReady
            },
            format!("{ready} of {wanted} ready"),
        ),
        Statement::new(
            condition::SCALING_UP,
            scaling_up && hold.is_none(),
            hold.map_or(up, |hold| hold.reason),
            match hold {
                Some(hold) => crate::sentence::cut(hold.message.clone()),
                None => format!("{replicas} of {wanted} Machines exist"),
            },
        ),
        Statement::new(
            condition::SCALING_DOWN,
            scaling_down,
            down,
            match held {
                Some(held) => crate::sentence::cut(held),
                None if scaling_down => {
                    format!("{replicas} of {wanted} Machines exist, {leaving} being deleted")
                }
                None => format!("no Machine more than the {wanted} wanted"),
            },
        ),
        hosts,
    ];
    let old = set.status.as_ref();
    let mut old_conditions = old.map(|status| status.conditions.clone()).unwrap_or_default();
    let standing = Standing::new(
        is_ready,
        live.iter().any(|machine| {
            machine
                .status
                .iter()
                .any(|status| kstatus::is_stalled(&status.conditions))
        }),
    );
    standing.report(&ready_told, &mut old_conditions, &mut statements);
    let version = set.spec.template.kubernetes_version.as_deref();
    let name = set.name();
    let status = MachineSetStatus {
        observed_generation: set.metadata.generation,
        selector: Some(format!(
            "{}={},{}={name}",
            label::CLUSTER,
            set.spec.cluster_name,
            label::MACHINE_SET
        )),
        message: Some(crate::sentence::cut(message.clone())),
        replicas,
        ready_replicas: ready,
        available_replicas: available,
        updated_replicas: count(&|machine| is_updated(machine, version)),
        conditions: conditions::state(
            &old_conditions,
            &statements,
            set.metadata.generation,
            &Time(observed.now),
        ),
    };
    let settled = all_ready && !scaling_down && hold.is_none_or(|hold| hold.reason == Reason::Manual);
    (status, (!settled).then_some(message))
}

fn at_rest(members: &Members<'_>) -> String {
    let offered = members.offered.iter();
    let names: Vec<&str> = offered
        .filter_map(|machine| machine.metadata.name.as_deref())
        .collect();
    match names.as_slice() {
        [] => "running".into(),
        names => format!(
            "running; {} with its label will be taken over once the count is raised",
            names.join(", ")
        ),
    }
}

fn waits_for_machines(live: &[&Machine], ready: i32, wanted: i32) -> String {
    let first = live.iter().find(|machine| !is_ready(machine));
    let name = first
        .and_then(|machine| machine.metadata.name.as_deref())
        .unwrap_or_default();
    let status = first.and_then(|machine| machine.status.as_ref());
    let says = status
        .and_then(|status| status.message.as_deref())
        .unwrap_or("not looked at yet");
    format!("{ready} of {wanted} ready; {name}: {says}")
}

fn is_updated(machine: &Machine, version: Option<&str>) -> bool {
    let seen = machine
        .status
        .as_ref()
        .and_then(|status| status.kubernetes_version.as_deref());
    match machine.spec.role {
        Role::Etcd => is_ready(machine),
        Role::ControlPlane | Role::Worker => seen.is_some() && seen == version,
    }
}

fn hosts_available(observed: &Observed<'_>, live: &[&Machine]) -> Statement {
    let needs = live.iter().filter(|machine| claims::is_looking(machine)).count();
    if needs == 0 {
        return Statement::new(
            condition::HOSTS_AVAILABLE,
            true,
            Reason::EnoughHosts,
            "no Machine looks for a Host",
        );
    }
    let template = &observed.set.spec.template;
    let host_request = HostRequest {
        selector: template.host_selector.as_ref(),
        hosts: template.hosts.as_deref(),
        spread_by: &template.spread_by,
    };
    let offer = claims::offer(&host_request, observed.hosts);
    let mut message = format!("needs {needs}, {} free match", offer.free);
    let enough = offer.free >= needs;
    if let Some(failed_hosts) = offer.why_unfit().filter(|_| !enough) {
        message.push_str(&format!("; {failed_hosts}"));
    }
    let reason = if enough {
        Reason::EnoughHosts
    } else {
        Reason::NotEnoughHosts
    };
    Statement::new(condition::HOSTS_AVAILABLE, enough, reason, message)
}
