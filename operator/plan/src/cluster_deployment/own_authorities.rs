//! Authorities that the cluster's owner brings.

use std::collections::BTreeMap;

use crds::cluster_deployment::EtcdTopology;

use super::problem::Problem;
use super::state::ClusterState;
use super::{endpoint, pki, restoring};
use crate::rotation::Subject;
use crate::rotation::own::{self, OwnAuthorities, Standard, Wish};

/// What they must be like.
fn standard<'a>(state: &ClusterState<'a>) -> Standard<'a> {
    let spec = &state.deployment.spec;
    Standard {
        now: state.observed.now,
        validity_days: spec.certificates.validity_days,
        secret: spec.certificates.ca_ref.as_ref().map(|one| one.name.as_str()).unwrap_or_default(),
        external_etcd: (spec.etcd.topology == EtcdTopology::External).then_some("etcd.secretRef"),
        haproxy: endpoint::held(state).map(|_| "controlPlane.endpoint.provider Keepalived"),
    }
}

/// Why no keys are made, and nothing is begun.
pub(super) fn problem(state: &ClusterState<'_>) -> Option<Problem> {
    if state.observed.pki || pki::is_missing(state) || restoring::source(state).is_some() {
        return None;
    }
    let (reason, message) = standard(state).problem(state.observed.own_authorities)?;
    Some(Problem { reason, message, ends_unseen: true })
}

/// The fingerprints of those that the cluster begins with.
pub(super) fn given(state: &ClusterState<'_>) -> BTreeMap<Subject, String> {
    own::given(state.observed.own_authorities)
}

/// What is to be done next about them.
pub(super) fn wish(state: &ClusterState<'_>) -> Wish {
    standard(state).wish(state.observed.own_authorities, state.observed.authorities)
}

/// Whether this one is the owner's.
pub(super) fn brings(state: &ClusterState<'_>, subject: Subject) -> bool {
    own::brings(state.observed.own_authorities, subject)
}

/// Why this one is not rotated by the annotation, and what to do instead.
pub(super) fn not_asked(state: &ClusterState<'_>, subject: Subject) -> Option<String> {
    standard(state).not_asked(state.observed.own_authorities, subject)
}

/// What a person does to have an authority rotated that is the owner's.
pub(super) fn advice(state: &ClusterState<'_>, subject: Subject) -> String {
    standard(state).advice(subject)
}

/// `ca, etcd-ca are those of Secret corp of spec.certificates.caRef`.
pub(super) fn met(state: &ClusterState<'_>) -> String {
    let known = state.observed.own_authorities.and_then(|own| own.as_ref().ok());
    standard(state).met(known.unwrap_or(&OwnAuthorities::new()))
}

/// `to that of Secret corp of spec.certificates.caRef`.
pub(super) fn towards(state: &ClusterState<'_>) -> String {
    format!("to that of {}", standard(state).title())
}
