//! Says when the first certificate of the cluster ends that somebody verifies, in the condition `CertificatesValid`,
//! and long before that an authority does.

use crds::Reason;
use crds::conditions::Statement;
use crds::names::condition;
use jiff::{SignedDuration, Timestamp};

use super::renew_certificates;
use crate::certificates::{RenewalPolicy, WARNING, first_to_end};
use crate::cluster_deployment::ending_authority::{self, SOON, YEAR};
use crate::cluster_deployment::proposal::{Area, Proposal, Round};
use crate::cluster_deployment::state::ClusterState;
use crate::message::cut;

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    if state.installed.is_none() {
        return Proposal::default().condition(condition::CERTIFICATES_VALID, None);
    }
    let Some(first) = first(state) else {
        let message = "the machines have not been asked for their certificates yet";
        return stated(None, Reason::CertificatesNotSeen, message.into());
    };
    let warning = warning(state);
    let (now, end) = (state.observed.now, first.end);
    let left = end.duration_since(now);
    let ends = sentence(&first, left);
    let failing = renew_certificates::failing(state);
    // One that failed stays said while it is tried again.
    if let Some(report) = round.report(Area::Certificates).filter(|_| failing.is_none()) {
        let status = Some(left > SignedDuration::ZERO);
        return stated(status, Reason::RenewingCertificates, format!("{ends}; {}", report.message));
    }
    let more = failing.as_ref().map(|failing| format!("; {failing}")).unwrap_or_default();
    let authority = ending_authority::first(state);
    let soon = authority.as_ref().filter(|authority| authority.is_within(state, SOON));
    let advice = soon.map(|authority| format!("; {}", authority.told(state))).unwrap_or_default();
    if left <= SignedDuration::ZERO {
        stated(Some(false), Reason::Expired, format!("{ends}{more}{advice}"))
    } else if left < warning {
        stated(Some(false), Reason::ExpiresSoon, format!("{ends}{more}{advice}")).at(state, end)
    } else if let Some(failing) = failing {
        stated(Some(false), Reason::RenewalFailed, format!("{failing}; {ends}{advice}"))
    } else if let Some(authority) = soon {
        let warned = end.saturating_sub(warning).unwrap_or(end);
        stated(Some(false), Reason::AuthorityExpiresSoon, authority.told(state)).at(state, warned)
    } else if let Some(authority) = authority.as_ref().filter(|authority| authority.is_within(state, YEAR)) {
        let warned = end.saturating_sub(warning).unwrap_or(end).min(authority.before(SOON));
        stated(Some(true), Reason::AuthorityEndsInAYear, authority.told(state)).at(state, warned)
    } else {
        let warned = end.saturating_sub(warning).unwrap_or(end);
        let warned = authority.iter().map(|authority| authority.before(YEAR)).fold(warned, Timestamp::min);
        stated(Some(true), Reason::Valid, format!("the first to end is {}, on {}", first.what, day(end)))
            .at(state, warned)
    }
}

fn stated(status: Option<bool>, reason: Reason, message: String) -> Proposal {
    let statement = Statement::new(condition::CERTIFICATES_VALID, status, reason, cut(message));
    Proposal::default().condition(condition::CERTIFICATES_VALID, Some(statement))
}

fn sentence(first: &First, left: SignedDuration) -> String {
    let verb = if left <= SignedDuration::ZERO { "ended" } else { "ends" };
    format!("{} {verb} on {}", first.what, day(first.end))
}

fn day(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d").to_string()
}

/// With less left the end is spoken of. It comes after the renewal, which is due by then.
fn warning(state: &ClusterState<'_>) -> SignedDuration {
    let renewed = RenewalPolicy::from(&state.deployment.spec.certificates).renew_before;
    WARNING.min(renewed * 3 / 4)
}

/// The certificate that ends first.
struct First {
    end: Timestamp,
    /// For a sentence.
    what: String,
}

fn first(state: &ClusterState<'_>) -> Option<First> {
    let of_machines = state.live.iter().filter_map(|machine| {
        let certificate = first_to_end(&machine.machine.status.as_ref()?.certificates)?;
        let what = format!("certificate {} of {}", certificate.name, machine.title());
        Some(First { end: certificate.expires_at.0, what })
    });
    let of_machines: Vec<First> = of_machines.collect();
    if of_machines.is_empty() {
        return None;
    }
    let status = state.observed.cluster.and_then(|cluster| cluster.status.as_ref());
    let ours = status.into_iter().flat_map(|status| &status.certificates).filter(|row| row.machine.is_none());
    let ours =
        ours.map(|row| First { end: row.expires_at.0, what: format!("certificate {} of the operator", row.name) });
    of_machines.into_iter().chain(ours).min_by_key(|first| first.end)
}
