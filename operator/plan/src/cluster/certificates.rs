//! When the certificates of a cluster end: those of its kubeconfig, and those of its machines.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::observed::Access;
use crds::cluster::CertificateExpiry;
use crds::conditions::Statement;
use crds::names::condition;
use crds::{Machine, ObjectExt, Reason};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::certificates::WARNING;

/// Those of the kubeconfig, then of each name the one that ends first of all machines.
pub(super) fn expiries(access: &Access, machines: &[Arc<Machine>]) -> Vec<CertificateExpiry> {
    let expiry = |(name, end): &(&str, Time)| CertificateExpiry {
        name: (*name).to_owned(),
        expires_at: end.clone(),
        machine: None,
        issuer: None,
    };
    let mut expiries: Vec<CertificateExpiry> = access.certificates.iter().map(expiry).collect();
    let mut first: BTreeMap<&str, CertificateExpiry> = BTreeMap::new();
    for machine in machines {
        for seen in machine.status.iter().flat_map(|status| &status.certificates) {
            let found = CertificateExpiry {
                name: seen.name.clone(),
                expires_at: seen.expires_at.clone(),
                machine: Some(machine.name().to_owned()),
                issuer: seen.issuer.clone(),
            };
            let place = |one: &CertificateExpiry| (one.expires_at.0, one.machine.clone());
            let known = first.entry(&seen.name).or_insert_with(|| found.clone());
            if place(&found) < place(known) {
                *known = found;
            }
        }
    }
    // The kubeconfig's authority is the machines' as well.
    first.retain(|name, _| expiries.iter().all(|there| there.name != *name));
    expiries.extend(first.into_values());
    expiries
}

/// Of the kubeconfig: what the operator speaks to the cluster with.
pub(super) fn certificates_valid(access: &Access, now: &Time) -> Statement {
    let first = access.certificates.iter().min_by_key(|(_, end)| end.0);
    let type_ = condition::CERTIFICATES_VALID;
    let Some((name, end)) = first else {
        return Statement::new(type_, true, Reason::NoneSeen, "the kubeconfig holds no certificates");
    };
    let date = end.0.strftime("%Y-%m-%d");
    let left = end.0.duration_since(now.0);
    if left <= SignedDuration::ZERO {
        Statement::new(type_, false, Reason::Expired, format!("the certificate {name} ended on {date}"))
    } else if left < WARNING {
        Statement::new(type_, false, Reason::ExpiresSoon, format!("the certificate {name} ends on {date}"))
    } else {
        Statement::new(type_, true, Reason::Valid, format!("the first to end is {name}, on {date}"))
    }
}
