//! Where a Machine stands with its Host: it holds one, may take one now, or has none.

use crds::step::Role;
use crds::{Host, Machine, ObjectExt, Reason};

use super::observed::Observed;
use crate::Next;
use crate::claims::{self, Offer, Share};
use crate::formed_cluster::{Standstill, standstill};
use crate::lifecycle::is_provisioned;
use crate::store::{self, Contradiction};

/// Looks again after this where the pool was shared out by what is not so any more.
const AGAIN_SECONDS: u64 = 5;

/// Where the Machine stands with its Host.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Hold<'a> {
    /// It holds the Host.
    Held(&'a Host),
    /// It may take the Host now.
    Take(&'a Host),
    /// It has none; something may have changed by then that nobody tells.
    Nothing { reason: Reason, message: String, next: Next },
}

pub(super) fn hold<'a>(observed: &Observed<'a>) -> Hold<'a> {
    let machine = observed.machine;
    let named = machine.spec.host_ref.as_ref().map(|host| host.name.as_str());
    let held = observed
        .hosts
        .iter()
        .copied()
        .find(|host| claims::holds(machine, host) && named.is_none_or(|named| named == host.name()));
    if let Some(host) = held {
        return Hold::Held(host);
    }
    let nothing = |reason, message: String| Hold::Nothing { reason, message, next: Next::OnChange };
    let cluster = &machine.spec.cluster_name;
    match standstill(observed.formed, observed.resumed_at) {
        None => {}
        Some(Standstill::NotThere) => {
            let message =
                format!("there is no {} in this namespace: make it, or delete the Machine", machine.spec.former());
            return nothing(Reason::ClusterNotFound, message);
        }
        Some(Standstill::Deleting) => {
            return nothing(Reason::ClusterDeleting, format!("cluster {cluster} is being deleted: no Host is claimed"));
        }
        Some(Standstill::Paused) => {
            return nothing(Reason::Paused, format!("cluster {cluster} is paused: no Host is claimed"));
        }
        Some(Standstill::NotBelieved) => {
            return nothing(Reason::LookingAtMachines, format!("no Host is claimed: {}", store::waiting(cluster)));
        }
    }
    let taken = match named {
        Some(named) => take_named(observed, named),
        None => take_any(observed),
    };
    match taken {
        // It may have been claimed since it was found clean.
        Hold::Take(host) if !store::was_asked(host.status.as_ref(), observed.resumed_at) => Hold::Nothing {
            reason: Reason::LookingAtMachines,
            message: format!(
                "waits for Host {}: no operator has worked for a while, it is looked at anew",
                host.name()
            ),
            next: Next::after_seconds(AGAIN_SECONDS),
        },
        taken => taken,
    }
}

pub(super) fn take_named<'a>(observed: &Observed<'a>, named: &str) -> Hold<'a> {
    let nothing = |reason, message: String| Hold::Nothing { reason, message, next: Next::OnChange };
    let Some(host) = observed.hosts.iter().copied().find(|host| host.name() == named) else {
        return nothing(
            Reason::HostNotFound,
            format!("there is no Host {named} in this namespace: make it, or delete the Machine"),
        );
    };
    let nobodys = host.spec.claim_ref.is_none() && !host.is_deleting() && host.spec.quarantine.is_none();
    let is_newer = Contradiction::find(host).is_some();
    if is_provisioned(observed.machine) && nobodys && !is_newer {
        // The claim was lost (an old backup, a hand edit) and the machine works: it is written again.
        return Hold::Take(host);
    }
    match claims::Pool::new(observed.hosts).why_not(host) {
        None => Hold::Take(host),
        Some(why) if host.spec.claim_ref.is_some() => {
            nothing(Reason::HostTaken, format!("Host {named} is {why}: delete this Machine, or that one"))
        }
        Some(why) => nothing(Reason::HostNotReady, format!("waits for Host {named}: {why}")),
    }
}

/// Whether a worker of a new cluster would choose before Machines of its control plane that are not made yet: then one
/// cluster's worker could take the last Host that its own control plane needs.
fn is_before_control_plane(observed: &Observed<'_>) -> bool {
    let machine = observed.machine;
    let Some(cluster) = observed.formed.filter(|cluster| !cluster.is_installed) else {
        return false;
    };
    let wanted = cluster.control_planes.saturating_add(cluster.etcd_machines);
    let chooses_first = |other: &&&Machine| {
        other.spec.former() == machine.spec.former() && other.spec.role != Role::Worker && !other.is_deleting()
    };
    let made = observed.machines.iter().filter(chooses_first).count();
    let looks = machine.spec.role == Role::Worker && claims::is_looking(machine);
    looks && i32::try_from(made).is_ok_and(|made| made < wanted)
}

pub(super) fn take_any<'a>(observed: &Observed<'a>) -> Hold<'a> {
    if is_before_control_plane(observed) {
        let message = "waits for a Host: control planes choose first, and their Machines are not made yet".to_owned();
        return Hold::Nothing { reason: Reason::NoHost, message, next: Next::after_seconds(1) };
    }
    let (message, next) = match observed.share {
        Some(Share::Host(name)) => match observed.hosts.iter().copied().find(|host| host.name() == name) {
            Some(host) if claims::Pool::new(observed.hosts).why_not(host).is_none() => return Hold::Take(host),
            // Another one is chosen once the change is seen that took it away.
            _ => (format!("waits for a Host: {name} is not free any more"), Next::after_seconds(AGAIN_SECONDS)),
        },
        Some(Share::Nothing(offer)) => (left_without(offer), Next::OnChange),
        None => ("waits for a Host".to_owned(), Next::after_seconds(AGAIN_SECONDS)),
    };
    Hold::Nothing { reason: Reason::NoHost, message, next }
}

fn left_without(offer: &Offer) -> String {
    let message = match offer.free {
        0 => "waits for a Host: no free one matches".to_owned(),
        free => format!("waits for a Host: {free} free match, and others are before it"),
    };
    match offer.why_unfit() {
        Some(unfit) => format!("{message}; {unfit}"),
        None => message,
    }
}
