//! The pool: which Hosts of a namespace can be claimed, why the others cannot, and what they offer to a wish.

use std::collections::BTreeMap;

use crds::ObjectExt;
use crds::names::condition;
use crds::{Host, Reason, conditions};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::host_request::HostRequest;
use super::identities::Identities;
use crate::store::Contradiction;

/// Why a Host cannot be claimed, as far as it says itself; `None` when it can. The condition `Ready` alone is not
/// believed: it may speak of the time before the last claim, or of another address.
pub fn why_not(host: &Host) -> Option<String> {
    if let Some(claim) = &host.spec.claim_ref {
        return Some(format!("held by Machine {}", claim.name));
    }
    if host.is_deleting() {
        return Some("being deleted".into());
    }
    if let Some(quarantine) = &host.spec.quarantine {
        return Some(format!("quarantined: {:?}", quarantine.reason));
    }
    if host.spec.unschedulable {
        return Some("unschedulable".into());
    }
    if Contradiction::find(host).is_some() {
        return Some(format!("not Ready: {}", Reason::MachineIsNewer));
    }
    let Some(status) = &host.status else {
        return Some("not probed yet".into());
    };
    match conditions::find(&status.conditions, condition::READY) {
        Some(ready) if is_of_the_past(ready, host) => return Some("not probed yet".into()),
        Some(ready) if ready.status == "True" => {}
        Some(ready) => return Some(format!("not Ready: {}", ready.reason)),
        None => return Some("not probed yet".into()),
    }
    if status.cleaned_epoch != Some(host.spec.claim_epoch) {
        return Some("not proved clean since its last claim".into());
    }
    None
}

/// Whether a condition was stated of an earlier spec.
fn is_of_the_past(condition: &Condition, host: &Host) -> bool {
    let generations = condition.observed_generation.zip(host.metadata.generation);
    generations.is_some_and(|(observed, now)| observed != now)
}

/// The Hosts of a namespace.
#[derive(Debug)]
pub struct Pool<'p, 'a> {
    hosts: &'p [&'a Host],
    identities: Identities<'a>,
}

impl<'p, 'a> Pool<'p, 'a> {
    /// Of all Hosts of a namespace.
    pub fn new(hosts: &'p [&'a Host]) -> Self {
        let identities = Identities::new(hosts.iter().copied());
        Self { hosts, identities }
    }

    /// Why one of these Hosts cannot be claimed; `None` when it can.
    pub fn why_not(&self, host: &'a Host) -> Option<String> {
        let double = || self.identities.double(host);
        why_not(host).or_else(|| double().map(|double| format!("not Ready: {}", double.reason())))
    }

    /// The Hosts that can be claimed.
    pub(super) fn free(&self) -> Vec<&'a Host> {
        let hosts = self.hosts.iter().copied();
        hosts.filter(|host| self.why_not(host).is_none()).collect()
    }

    /// What the pool offers to a wish.
    pub fn offer(&self, host_request: &HostRequest<'_>) -> Offer {
        let mut offer = Offer::default();
        for host in self.hosts.iter().copied().filter(|host| host_request.selects(host)) {
            match self.why_not(host).or_else(|| host_request.too_small(host)) {
                None => offer.free += 1,
                Some(why) if host.spec.claim_ref.is_none() => offer.unfit.push((host.name().to_owned(), why)),
                Some(_) => {}
            }
        }
        offer.unfit.sort();
        offer
    }
}

/// What the pool offers to a wish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Hosts that match and can be claimed.
    pub free: usize,
    /// Hosts that match, belong to nobody, and cannot be claimed: name and why.
    pub unfit: Vec<(String, String)>,
}

impl Offer {
    /// `4 match and are not to be taken: not Ready: Unreachable (h1, h2 and 1 more), unschedulable (h4)`.
    pub fn why_unfit(&self) -> Option<String> {
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (host, why) in &self.unfit {
            by_reason.entry(why).or_default().push(host);
        }
        let reasons: Vec<String> = by_reason
            .iter()
            .map(|(why, hosts)| match hosts.as_slice() {
                [first, second, rest @ ..] if !rest.is_empty() => {
                    format!("{why} ({first}, {second} and {} more)", rest.len())
                }
                hosts => format!("{why} ({})", hosts.join(", ")),
            })
            .collect();
        let (count, reasons) = (self.unfit.len(), reasons.join(", "));
        match count {
            0 => None,
            1 => Some(format!("1 matches and is not to be taken: {reasons}")),
            _ => Some(format!("{count} match and are not to be taken: {reasons}")),
        }
    }
}

/// What the Hosts of a namespace offer to a wish.
pub fn offer(host_request: &HostRequest<'_>, hosts: &[&Host]) -> Offer {
    Pool::new(hosts).offer(host_request)
}
