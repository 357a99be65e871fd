//! Keys, the administrator's kubeconfig and the Cluster object, each once it can be had.

use std::collections::BTreeMap;

use crds::Cluster;
use crds::cluster::ClusterSpec;
use crds::names::{self, label};
use crds::references::{LocalRef, controller_ref};
use jiff::SignedDuration;

use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::observed::Observed;
use crate::cluster_deployment::pki;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::state::ClusterState;

/// A kubeconfig with less left than this is made anew.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(60 * 24);

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let observed = state.observed;
    let mut actions = Vec::new();
    if !observed.pki && !pki::is_missing(state) {
        actions.push(Action::MakePki);
    }
    let Some(endpoint) = state.endpoint() else {
        return Proposal::actions(actions);
    };
    let status = state.deployment.status.as_ref();
    let known = status.and_then(|status| status.endpoint.as_ref());
    if !observed.kubeconfig || known != Some(&endpoint) || is_about_to_end(observed) {
        actions.push(Action::MakeKubeconfig { endpoint });
    }
    let spec = ClusterSpec { kubeconfig_ref: LocalRef::new(names::kubeconfig_secret(&state.name)) };
    if observed.cluster.is_none_or(|cluster| cluster.spec != spec) {
        let mut cluster = Cluster::new(&state.name, spec);
        cluster.metadata.namespace = state.deployment.metadata.namespace.clone();
        cluster.metadata.owner_references = controller_ref(state.deployment).map(|owner| vec![owner]);
        cluster.metadata.labels = Some(BTreeMap::from([(label::CLUSTER.into(), state.name.clone())]));
        actions.push(Action::ApplyCluster(Box::new(cluster)));
    }
    Proposal::actions(actions)
}

/// Whether the administrator's certificate, as the Cluster shows it, ends soon.
fn is_about_to_end(observed: &Observed<'_>) -> bool {
    let status = observed.cluster.and_then(|cluster| cluster.status.as_ref());
    let certificates = status.map(|status| status.certificates.as_slice()).unwrap_or_default();
    certificates.iter().any(|certificate| {
        certificate.name == "admin-kubeconfig" && certificate.expires_at.0.duration_since(observed.now) < RENEW_BEFORE
    })
}
