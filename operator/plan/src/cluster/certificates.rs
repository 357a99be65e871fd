//! When the certificates of a kubeconfig end.

use super::observed::Access;
use crds::Reason;
use crds::cluster::CertificateExpiry;
use crds::conditions::Statement;
use crds::names::condition;
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// A certificate with less left than this is spoken of.
const CERTIFICATE_WARNING: SignedDuration = SignedDuration::from_hours(30 * 24);
pub(super) fn expiries(access: &Access) -> Vec<CertificateExpiry> {
    let expiry = |(name, end): &(&str, Time)| CertificateExpiry { name: (*name).to_owned(), expires_at: end.clone() };
    access.certificates.iter().map(expiry).collect()
}

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
    } else if left < CERTIFICATE_WARNING {
        Statement::new(type_, false, Reason::ExpiresSoon, format!("the certificate {name} ends on {date}"))
    } else {
        Statement::new(type_, true, Reason::Valid, format!("the first to end is {name}, on {date}"))
    }
}
