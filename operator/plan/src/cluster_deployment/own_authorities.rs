//! Authorities that the cluster's owner brings: whether the cluster can have them, and which of them it is to be
//! rotated to. Those that it has already are asked nothing more.

use std::collections::BTreeMap;

use crds::Reason;
use crds::cluster_deployment::EtcdTopology;
use jiff::SignedDuration;

use super::problem::Problem;
use super::state::ClusterState;
use super::{endpoint, pki, restoring};
use crate::moment::after;
use crate::rotation::Subject;
use crate::rotation::own::{OwnAuthorities, OwnAuthority};

/// What the Secret of `certificates.caRef` comes to in a cluster that stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// There is no such Secret in the spec.
    None,
    /// The cluster has all that it holds.
    Met,
    /// The cluster is to have this one of it, of this fingerprint.
    Rotate(Subject, String),
    /// Nothing of it is taken.
    Refused(Reason, String),
}

/// Why no keys are made, and nothing is begun.
pub(super) fn problem(state: &ClusterState<'_>) -> Option<Problem> {
    let says = |reason, message| Some(Problem { reason, message, ends_unseen: true });
    if state.observed.pki || pki::is_missing(state) || restoring::source(state).is_some() {
        return None;
    }
    match state.observed.own_authorities? {
        Err(problem) => says(problem.reason, problem.message.clone()),
        Ok(own) => {
            let message = own.iter().find_map(|(subject, authority)| refusal(state, *subject, authority))?;
            says(Reason::InvalidAuthority, message)
        }
    }
}

/// The fingerprints of those that the cluster begins with.
pub(super) fn given(state: &ClusterState<'_>) -> BTreeMap<Subject, String> {
    let own = known(state).into_iter().flatten();
    own.map(|(subject, authority)| (*subject, authority.fingerprint.clone())).collect()
}

/// What is to be done next about it.
pub(super) fn wish(state: &ClusterState<'_>) -> Wish {
    let own = match state.observed.own_authorities {
        None => return Wish::None,
        Some(Err(problem)) => return Wish::Refused(problem.reason, problem.message.clone()),
        // Of keys that cannot be read nothing is known.
        Some(Ok(_)) if state.observed.authorities.rings.is_empty() => return Wish::None,
        Some(Ok(own)) => own,
    };
    let mut differ = own.iter().filter(|(subject, authority)| differs(state, **subject, authority)).peekable();
    let Some((subject, authority)) = differ.peek().copied() else { return Wish::Met };
    match differ.find_map(|(subject, authority)| refusal(state, *subject, authority)) {
        Some(message) => Wish::Refused(Reason::InvalidAuthority, message),
        None => Wish::Rotate(*subject, authority.fingerprint.clone()),
    }
}

/// Whether the owner's one is neither the one that signs nor one that is trusted beside it while that is rotated.
fn differs(state: &ClusterState<'_>, subject: Subject, authority: &OwnAuthority) -> bool {
    // Nobody has that one here, and it is refused.
    if is_foreign(state, subject) {
        return true;
    }
    let ring = state.observed.authorities.rings.get(&subject);
    ring.is_some_and(|ring| !ring.trusted.contains(&authority.fingerprint))
}

fn is_foreign(state: &ClusterState<'_>, subject: Subject) -> bool {
    subject == Subject::EtcdCa && state.deployment.spec.etcd.topology == EtcdTopology::External
}

/// Why the cluster cannot have this one.
fn refusal(state: &ClusterState<'_>, subject: Subject, authority: &OwnAuthority) -> Option<String> {
    let (now, entry) = (state.observed.now, format!("{}.crt", subject.name()));
    let days = state.deployment.spec.certificates.validity_days;
    let lasts = SignedDuration::from_secs(state.deployment.spec.certificates.validity_seconds());
    let day = |at: jiff::Timestamp| at.strftime("%Y-%m-%d");
    let why = if is_foreign(state, subject) {
        format!("etcd is external, and so is its authority: remove {entry} and {}.key", subject.name())
    } else if authority.begins > now {
        format!("{entry} begins on {}: give one that is valid by now", day(authority.begins))
    } else if authority.ends <= now {
        format!(
            "{entry} ended on {}: give one that lasts {days} days or longer (certificates.validityDays)",
            day(authority.ends)
        )
    } else if authority.ends < after(now, lasts) {
        format!(
            "{entry} ends on {}, before a certificate would that is made now ({days} days, certificates.validityDays): give one that lasts longer, or lower validityDays",
            day(authority.ends)
        )
    } else if authority.is_retired {
        format!(
            "{entry} has a key that the cluster had before, and whatever that signed would be believed again: give one with another key"
        )
    } else if subject == Subject::Ca && !authority.is_self_signed && endpoint::held(state).is_some() {
        format!(
            "{entry} was issued by another authority, and HAProxy, which the control planes run (controlPlane.endpoint.provider Keepalived), believes self-signed ones only: give a self-signed one"
        )
    } else {
        return None;
    };
    Some(format!("{}: {why}", secret(state)))
}

/// `Secret corp of spec.certificates.caRef`.
fn secret(state: &ClusterState<'_>) -> String {
    let reference = state.deployment.spec.certificates.ca_ref.as_ref();
    format!("Secret {} of spec.certificates.caRef", reference.map(|one| one.name.as_str()).unwrap_or_default())
}

/// Whether this one is the owner's, as far as that is known: of a Secret that cannot be read each authority may be.
pub(super) fn brings(state: &ClusterState<'_>, subject: Subject) -> bool {
    let is_authority = matches!(subject, Subject::Ca | Subject::EtcdCa | Subject::FrontProxyCa);
    state
        .observed
        .own_authorities
        .is_some_and(|own| own.as_ref().map_or(is_authority, |own| own.contains_key(&subject)))
}

/// What a person does to have an authority rotated that is the owner's.
pub(super) fn advice(state: &ClusterState<'_>, subject: Subject) -> String {
    let name = subject.name();
    format!("put the one that follows it into {} ({name}.crt and {name}.key, in one edit)", secret(state))
}

/// `ca, etcd-ca are those of Secret corp of spec.certificates.caRef`.
pub(super) fn met(state: &ClusterState<'_>) -> String {
    let names: Vec<&str> = known(state).into_iter().flatten().map(|(subject, _)| subject.name()).collect();
    let verb = if names.len() == 1 { "is that" } else { "are those" };
    format!("{} {verb} of {}", names.join(", "), secret(state))
}

/// `to that of Secret corp of spec.certificates.caRef`.
pub(super) fn towards(state: &ClusterState<'_>) -> String {
    format!("to that of {}", secret(state))
}

fn known<'a>(state: &ClusterState<'a>) -> Option<&'a OwnAuthorities> {
    state.observed.own_authorities?.as_ref().ok()
}
